"""A durable peer for the tests of bench/durable.py, without a database: takes at once, or hangs, or dies."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from bench.peers.process import serve


def _answer(told: Any) -> Any:
    how, role, after = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if told == "ready":
        return None
    _answered.append(told)
    if len(_answered) > after and role == "recipient":
        if how == "hangs":
            threading.Event().wait()
        if how == "dies":
            print("no memory left", file=sys.stderr, flush=True)
            os._exit(9)
    if isinstance(told, dict) and "rate" in told:
        return 1000.0 * told["rate"]
    now = time.monotonic_ns()
    return now if role == "sender" else (now + _LATER, now + _LATER)


_answered: list[Any] = []
_LATER = 3600 * 10**9
"""Nanoseconds that a message takes, so that it is slow whatever else is going on."""

if __name__ == "__main__":
    serve(_answer)
