"""The interfaces of agent frameworks over this library: translation only, each an extra of the package.

Nothing here is imported by the rest of the library, and this package imports no framework: import the module of yours,
such as `reactor_memory.adapters.openai_agents`. Without its extra that raises `MissingExtraError`.
"""
