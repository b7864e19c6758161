"""Which session a user talks in to an agent."""
