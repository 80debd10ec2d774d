"""The loop, simulated: a synthetic web over real HTTP, worlds and scores."""
