"""Long-term notes that an agent keeps about a user."""
