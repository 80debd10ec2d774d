"""The console: an API, a feed of changes, metrics, and pages for a browser. It reads, and hands wishes to the inbox."""
