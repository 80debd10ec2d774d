"""Which page next: schedulers that spend a budget at a constant rate where it gains most."""
