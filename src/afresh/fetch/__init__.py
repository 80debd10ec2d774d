"""Get the bytes: every way to fetch is one method, and every outcome is a value."""
