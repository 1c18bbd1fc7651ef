"""Search files for a regular expression; runs alone, as ``python -I -S searcher.py REQUEST``, with paths on stdin.

It is a process of its own because Python's ``re`` holds the interpreter lock and cannot be interrupted. Here a pattern
that never ends can be killed, one that needs too much memory fails alone, and other agents keep running.

Standard library only, nothing of agentmesh. Writes one JSON object per line: matches, then ``{"done": ...}`` with the
number of files that were not searched, by reason.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import resource
import sys
from collections.abc import Iterator
from typing import Any

_MEMORY = 1 << 30
_BINARY_PROBE = 8192


class _Unsearched(Exception):
    """A file cannot be searched; the text says why, as in "it is binary"."""


def main() -> None:
    """Answer the request given as the first argument."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    request: dict[str, Any] = json.loads(sys.argv[1])
    try:
        pattern = re.compile(request["pattern"], re.IGNORECASE if request["ignore_case"] else 0)
        paths = os.fsdecode(sys.stdin.buffer.read()).split("\0")
        root = os.open(request["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if _identity(root) != request["root_is"]:  # a link has taken the place of a part of its path
            _say(moved=True)
            return
        unsearched: dict[str, int] = {}
        more = _search(pattern, root, request, [path for path in paths if path], unsearched)
        _say(done=True, more=more, unsearched=unsearched)
    except OSError:
        _say(moved=True)
    except (re.error, OverflowError) as error:
        _say(error=str(error))
    except (MemoryError, RecursionError):
        _say(error="it needs too much memory")


def _identity(fd: int) -> list[int]:
    facts = os.fstat(fd)
    return [facts.st_dev, facts.st_ino]


def _search(
    pattern: re.Pattern[str], root: int, request: dict[str, Any], paths: list[str], unsearched: dict[str, int]
) -> bool:
    """Write the matches of all files, and count those not searched; return whether there are more than the limit."""
    matches, room = int(request["matches"]), int(request["bytes"])
    needle = request["literal"]
    for path in paths:
        try:
            text = _text(root, path, int(request["file_bytes"]))
        except _Unsearched as reason:
            unsearched[str(reason)] = unsearched.get(str(reason), 0) + 1
            continue
        if needle is not None and needle not in text:
            continue
        for match in _matches(pattern, text.split("\n"), int(request["context"]), int(request["width"])):
            line = json.dumps({"path": path, **match})
            room -= len(line)
            matches -= 1
            if room < 0 or matches < 0:
                return True
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    return False


def _matches(pattern: re.Pattern[str], lines: list[str], context: int, width: int) -> Iterator[dict[str, Any]]:
    last = len(lines) - (lines[-1] == "")
    for number, raw in enumerate(lines[:last], 1):
        line = raw.removesuffix("\r")
        found = pattern.search(line)
        if found is None:
            continue
        match: dict[str, Any] = {"line": number, "text": _cut(line, width, found.start())}
        if context:
            match["before"] = [_cut(text, width) for text in lines[max(number - 1 - context, 0) : number - 1]]
            match["after"] = [_cut(text, width) for text in lines[number : min(number + context, last)]]
        yield match


def _cut(line: str, width: int, place: int = 0) -> str:
    """Return at most ``width`` characters of a line, those around ``place``."""
    line = line.removesuffix("\r")
    if len(line) <= width:
        return line
    start = max(min(place - width // 4, len(line) - width), 0)
    cut = line[start : start + width]
    return ("…" if start else "") + cut + ("…" if start + width < len(line) else "")


def _text(root: int, path: str, limit: int) -> str:
    """Return a file's text without its byte order mark."""
    try:
        fd = _open(root, path)
        with open(fd, "rb") as file:
            if os.fstat(fd).st_size > limit:
                raise _Unsearched(f"over {limit >> 20} MiB")
            raw = file.read(limit)
    except OSError as error:
        raise _Unsearched("linked" if error.errno == errno.ELOOP else "unreadable") from error
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _Unsearched("in UTF-16")
    if b"\0" in raw[:_BINARY_PROBE]:
        raise _Unsearched("binary")
    return raw.decode("utf-8-sig", "replace")


def _open(root: int, path: str) -> int:
    """Open a file directory by directory, never through a link; ``root`` stays open."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    *directories, name = path.split("/")
    fd = os.dup(root)
    try:
        for directory in directories:
            below = os.open(directory, flags | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        return os.open(name, flags, dir_fd=fd)
    finally:
        os.close(fd)


def _say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
