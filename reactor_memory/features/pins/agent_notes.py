"""Notes that an agent keeps of its own work in a session: its plan, what it rejected, what is open. Kept as pins.

A note stands where pins stand, whole. It is no fact of the ledger, so it has an anchor that none of these has.
"""

from __future__ import annotations

from reactor_memory.core.context.blocks import NOTICE, Frame, block_text
from reactor_memory.errors import InvalidInputError
from reactor_memory.features.pins.verbatim_pins import PART

ANCHOR = "note of the agent"
LONGEST_KEY = 80


def target_of(key: str) -> tuple[str, str]:
    """What the pin of a note is found by. Raises `InvalidInputError`."""
    if not key.strip() or len(key) > LONGEST_KEY or not key.isprintable():
        raise InvalidInputError("key", f"must be one line of 1 to {LONGEST_KEY} characters, such as plan")
    return ANCHOR, key.strip()


def note_text(key: str, text: str) -> str:
    """What contexts show of a note. Raises `InvalidInputError` for a text that says nothing or that no store keeps."""
    if not text.strip() or "\0" in text or text.encode(errors="ignore").decode() != text:
        raise InvalidInputError("text", "must say something, without NUL and lone surrogates; null removes the note")
    return block_text(Frame(part=PART, header=f"[Your note: {key.strip()}]", notice=NOTICE), text.strip().split("\n"))
