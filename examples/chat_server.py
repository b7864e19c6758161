"""A chat server whose agents are LangChain's, with tools; try it with ``python examples/chat_server.py MODEL``."""

import sys

import anyio

from reactor_memory.adapters.langchain import LangChainAgent
from reactor_memory.server.chat_server import serve_chat

if __name__ == "__main__":  # MODEL as in `init_chat_model`, such as google_genai:gemini-3.5-flash-lite
    anyio.run(serve_chat, LangChainAgent(sys.argv[1]))
