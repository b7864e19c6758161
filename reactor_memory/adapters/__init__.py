"""The interfaces of agent frameworks, each by a module of its own that needs the extra of its name."""
