"""The settings of the service over HTTP: those of a memory, who may call, and what is accepted."""

from __future__ import annotations

from reactor_memory.settings.service_sections import AuthSettings, ChatServerSettings, HttpSettings
from reactor_memory.settings.settings import Settings


class ServiceSettings(Settings):
    """As `Settings`, with the sections that only the service reads."""

    auth: AuthSettings = AuthSettings()
    http: HttpSettings = HttpSettings()
    chat_server: ChatServerSettings = ChatServerSettings()
