"""A graph of LangGraph that keeps what it learns of a user, and reads the facts of an earlier session.

python examples/langgraph_store.py
"""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

from reactor_memory import Message, Settings, open_memory
from reactor_memory.adapters.langgraph import ReactorMemoryStore, facts_namespace, label_of

USER = "ann@example.com"
MEMORIES = ("memories", label_of(USER))


class Talk(TypedDict):
    said: str
    known: list[str]


async def learn(state: Talk, runtime: Runtime[Any]) -> dict[str, Any]:
    assert runtime.store is not None
    await runtime.store.aput(MEMORIES, state["said"], {"text": state["said"]})
    return {}


async def recall(state: Talk, runtime: Runtime[Any]) -> dict[str, Any]:
    assert runtime.store is not None
    own = await runtime.store.asearch(MEMORIES, query="vegetarian food", limit=1)
    facts = await runtime.store.asearch(facts_namespace("earlier", user_id=USER), query="order number", limit=1)
    return {"known": [own[0].value["text"], facts[0].value["value"]]}


async def main() -> None:
    summary = {"trigger_message_count": 4, "recent_message_count": 2, "segment_message_count": 2}
    async with open_memory(Settings(store={"url": "memory://"}, summary=summary)) as memory:
        earlier = [Message.user("My order number is A-1042."), Message.assistant("Noted.")]
        filler = [Message.user("Go on."), Message.assistant("Yes.")]
        await memory.save_history("earlier", [*earlier, *filler, *filler], user_id=USER)
        await memory.drain()

        graph = StateGraph(Talk).add_node(learn).add_node(recall).add_edge(START, "learn").add_edge("learn", "recall")
        agent = graph.compile(store=ReactorMemoryStore(memory, user_id=USER))
        for said in ("eats vegetarian food only", "takes the train"):
            result = await agent.ainvoke({"said": said, "known": []})
        print("Known:", "; ".join(result["known"]))


if __name__ == "__main__":
    asyncio.run(main())
