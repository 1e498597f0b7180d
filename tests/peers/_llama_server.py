"""Serve a model file with the real llama.cpp server: `python _llama_server.py MODEL N_CTX SLOTS [API_KEY]`.

It is a process of its own, because llama.cpp aborts the whole process on some faults. The first line of its output
is its address. It ends when its input does, and so with the process that started it, however that ends.
"""

from __future__ import annotations

import os
import sys

import xllamacpp


def main() -> None:
    model, context, slots, *keys = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = int(context)
    params.n_parallel = int(slots)
    params.api_keys = keys
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    params.warmup = False
    # Two threads that wait for each other on a busy machine are ten times slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
