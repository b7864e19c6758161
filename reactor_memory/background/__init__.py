"""Background work: summaries grow here, outside of any call of the agent."""
