"""Token counters, exact and estimated, and what a message costs."""
