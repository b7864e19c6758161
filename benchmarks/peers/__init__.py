"""The same work through other libraries that keep conversations, interleaved with ours call by call."""
