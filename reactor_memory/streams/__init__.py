"""Stores of responses that are being written (`reactor_memory.responses.ResponseStore`)."""
