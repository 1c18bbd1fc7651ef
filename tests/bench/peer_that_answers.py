"""A peer for the tests of bench/peers/process.py: does what it is told."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from bench.peers.process import serve


def _answer(told: dict[str, Any]) -> Any:
    ((what, value),) = told.items()
    if what == "print":
        print(value, flush=True)
        return "printed"
    if what == "fail":
        raise KeyError(value)
    if what == "exit":
        print(value, file=sys.stderr, flush=True)
        os._exit(7)
    if what == "sleep":
        time.sleep(value)
    return dict(os.environ) if what == "variables" else value


if __name__ == "__main__":
    serve(_answer)
