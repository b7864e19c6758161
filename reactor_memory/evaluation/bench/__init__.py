"""What the library costs beside the bare driver: the works of `reactor-memory bench`, measured in one process."""
