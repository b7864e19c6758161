"""A chat memory that summarises every six messages, offline.

python examples/chat_memory.py
"""

from __future__ import annotations

import asyncio

from reactor_memory import Message, Settings, open_memory

TALK = [
    ("I need a flight to Lisbon on 12 May.", "There is one at 9:40, number TP 571."),
    ("Take that one, a window seat please.", "Booked: seat 14A, reference QX7PLM."),
    ("And a hotel near the Rossio for 3 nights.", "The Avenida has a room for 120 euros a night."),
    ("Fine, book it under Garcia.", "Done, reference HT-2291."),
]


async def main() -> None:
    settings = Settings(
        store={"url": "memory://"},
        chat_memory={"strategy": "summarize", "summarize_every_n": 6, "retention": "archive"},
    )
    async with open_memory(settings) as memory:
        chats = memory.chat_memory
        for question, answer in TALK:
            await chats.add_messages("trip", [Message.user(question), Message.assistant(answer)], user_id="u1")
        for message in await chats.get_messages("trip", view="effective", user_id="u1"):
            print(f"{message.role}: {message.content}\n")
        for record in await chats.list_summarization_metadata("trip", user_id="u1"):
            print(f"One summary stands for {len(record.summarized_message_ids)} messages.")


if __name__ == "__main__":
    asyncio.run(main())
