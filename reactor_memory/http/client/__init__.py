"""The service from the side of those who call it. It needs nothing beyond the core of the package."""

from reactor_memory.http.client.calling import Token
from reactor_memory.http.client.following import FollowedResponse
from reactor_memory.http.client.memory_service import MemoryServiceClient
from reactor_memory.http.client.retrying import Retries
from reactor_memory.http.client.writing import ResponseWriter

__all__ = ["FollowedResponse", "MemoryServiceClient", "ResponseWriter", "Retries", "Token"]
