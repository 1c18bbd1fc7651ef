"""Match lines with a regular expression; runs alone, as ``python -I -S line_matcher.py PATTERN``, with lines on stdin.

It is a process of its own because Python's ``re`` holds the interpreter lock and cannot be interrupted. The kernel ends
it if one line takes more than about a second, or all lines take more than a minute of processor time.

Standard library only, nothing of agentmesh. Writes ``{"ready": true}`` or ``{"error": ...}``, then each matching line.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import time

_MEMORY = 1 << 30
_LINE_SECONDS = 1.0
_ALL_SECONDS = 60


def main() -> None:
    """Match until the end of the input."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_ALL_SECONDS, _ALL_SECONDS))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process, even inside re
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        pattern = re.compile(sys.argv[1])
    except (re.error, OverflowError) as error:
        _say({"error": str(error)})
        return
    except (MemoryError, RecursionError):
        _say({"error": "it needs too much memory"})
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    _say({"ready": True})
    rest = b""
    while data := os.read(sys.stdin.fileno(), 1 << 16):
        *lines, rest = (rest + data).split(b"\n")
        _match(pattern, lines)


def _match(pattern: re.Pattern[str], lines: list[bytes]) -> None:
    """Compare lines. The timer is not set for each one, because that takes longer than to compare most of them."""
    set_at = 0.0
    for raw in lines:
        now = time.monotonic()
        if now - set_at > _LINE_SECONDS / 4:
            signal.setitimer(signal.ITIMER_REAL, _LINE_SECONDS * 1.25)
            set_at = now
        line = raw.decode("utf-8", "replace")
        if pattern.search(line):
            signal.setitimer(signal.ITIMER_REAL, 0)  # the reader may be slow; that is not the pattern's time
            set_at = 0.0
            _say({"line": line})
    signal.setitimer(signal.ITIMER_REAL, 0)


def _say(fact: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
