"""Embedders (`reactor_memory.searching.Embedder`)."""
