"""A chat server on reactor-memory: ``python -m examples.chat_server`` (see README.md)."""
