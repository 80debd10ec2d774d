"""Which URLs exist and which hosts are ready."""
