"""Micro-benchmarks of the pure parts: nothing is read or written, no time is asserted (`make bench-micro`)."""
