"""The announcement: cheap to import, as every process with the package installed imports it."""

from __future__ import annotations

import logging

from reactor_memory.extend import Plugin

logger = logging.getLogger("sample_plugin")


def _say_goodbye() -> None:
    logger.info("closed")


plugin = Plugin(
    name="sample",
    order=10,
    requires_settings={"plugins.options.sample.enabled": True},
    requires_packages=("msgspec",),
    provides={
        "record_store": {"sample": "sample_plugin.store:LinesStore"},
        "summarizer": {"shouting": "sample_plugin.summarizer:ShoutingSummarizer"},
        "strategy": {"storyteller": "sample_plugin.strategy:Storyteller"},
    },
    on_close=_say_goodbye,
)
