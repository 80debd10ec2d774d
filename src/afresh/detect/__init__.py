"""Did it really change: fingerprints of the content that matters, and their comparison."""
