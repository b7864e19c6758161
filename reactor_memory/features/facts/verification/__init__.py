"""Whether what a model states is covered by the words that it cites."""
