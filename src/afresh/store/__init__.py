"""Keep copies and history: what was acknowledged survives, and a copy is whole or absent."""
