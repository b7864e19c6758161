"""Implementations of the summarizer plug point, and what they share."""
