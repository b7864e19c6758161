"""``python -m examples.chat_server``, then open http://127.0.0.1:8000/."""

from __future__ import annotations

import uvicorn

from examples.chat_server.app import create_app
from examples.chat_server.models import chosen_model

if __name__ == "__main__":
    model = chosen_model()
    print(f"The agents talk through {model.get_name()}.")
    uvicorn.run(create_app(model=model), host="127.0.0.1", port=8000)
