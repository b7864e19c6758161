"""The service from the side of those who call it. It needs nothing beyond the core of the package."""

from reactor_memory.client.calls import Token
from reactor_memory.client.memory_service import MemoryServiceClient
from reactor_memory.client.reader import FollowedResponse
from reactor_memory.client.retries import Retries
from reactor_memory.client.writer import ResponseWriter

__all__ = ["FollowedResponse", "MemoryServiceClient", "ResponseWriter", "Retries", "Token"]
