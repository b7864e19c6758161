"""The forms in which providers take and give messages: OpenAI, Anthropic, Gemini and Ollama.

Names are imported when they are first used: a turn that gives and takes texts needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactor_memory.lazy_names import names_of

if TYPE_CHECKING:
    from reactor_memory.forms.kept_messages import kept_fields as kept_fields
    from reactor_memory.forms.kept_messages import record_of as record_of
    from reactor_memory.forms.losses import not_shown as not_shown
    from reactor_memory.forms.provider_messages import checked_given as checked_given
    from reactor_memory.forms.provider_messages import no_message as no_message
    from reactor_memory.forms.provider_messages import read as read
    from reactor_memory.forms.requests import to_anthropic as to_anthropic
    from reactor_memory.forms.requests import to_gemini as to_gemini
    from reactor_memory.forms.requests import to_ollama as to_ollama
    from reactor_memory.forms.requests import to_openai as to_openai
    from reactor_memory.forms.requests import to_openai_responses as to_openai_responses
    from reactor_memory.forms.sdk_values import said_by_model as said_by_model

_HOME = {
    "checked_given": "provider_messages",
    "not_shown": "losses",
    "no_message": "provider_messages",
    "read": "provider_messages",
    "kept_fields": "kept_messages",
    "record_of": "kept_messages",
    "said_by_model": "sdk_values",
    "to_anthropic": "requests",
    "to_gemini": "requests",
    "to_ollama": "requests",
    "to_openai": "requests",
    "to_openai_responses": "requests",
}

__getattr__ = names_of(__name__, _HOME)
