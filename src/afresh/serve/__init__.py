"""Hand copies out: `proxy` is the caching HTTP proxy beside the runner."""
