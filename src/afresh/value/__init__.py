"""What a crawl is worth: freshness, crawl value, the optimum under a budget, refresh probabilities."""
