"""The grep tool: lines of files that match a regular expression."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from itertools import islice
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain import jsontext
from agentmesh.domain.pathglob import PathPattern
from agentmesh.domain.text import storable, storable_json
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools import searcher
from agentmesh.tools.files import FilePlace, changed, open_directory, open_either, place
from agentmesh.tools.glob import Readable, path_pattern, shown
from agentmesh.tools.guarded_run import FinishedProcess, Spawner
from agentmesh.tools.walk import Walk
from agentmesh.tools.wall.kinds import Walled
from agentmesh.tools.words import Described

_SECONDS = 20.0
"""Time limit of the walk, and again of the search."""
_MAX_FILES = 200_000
_MAX_MATCHES = 500
_FILE_BYTES = 10 << 20
_WIDTH = 400
"""Characters shown of a line."""
_LITERAL = re.compile(r"[\w \-/:,;=<>@!\"'#%&~`]+")
"""Patterns without special characters: a file that lacks the text needs no search line by line."""
_BY_COMMAND = "Use `bash`: `grep -an PATTERN FILE`; for UTF-16, `iconv -f UTF-16 FILE | grep -n PATTERN`."
_EVERYTHING = PathPattern.parse("**")


class GrepArgs(BaseModel):
    """Arguments of grep."""

    pattern: str = Field(min_length=1, max_length=2000)
    path: str = "."
    glob: str | None = None
    ignore_case: bool = False
    context: int = Field(default=0, ge=0, le=20)


class Grep(Described):
    """Search the contents of files."""

    name = "grep"
    effect = Effect.READ
    args: type[BaseModel] = GrepArgs

    def __init__(self, spawner: Spawner, seconds: float = _SECONDS) -> None:
        self._spawner = spawner
        self._seconds = seconds

    def run(self, args: GrepArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the first matches, sorted by path and line."""
        base = place(context, args.path)
        name = _file_name(base)
        if name is not None:
            base = FilePlace(base.root, base.parts[:-1], os.path.dirname(base.shown))
        with open_directory(base) as folder:
            walk = Walk(str(base.path), context.cancel, self._seconds, folder)
            readable = Readable(walk.files(_filter(args.glob, base)) if name is None else [name], base, context)
            paths = list(islice(readable, _MAX_FILES))
            complete = walk.complete and len(paths) < _MAX_FILES
            with tempfile.TemporaryFile() as listing:
                listing.write(os.fsencode("\0".join(paths)))
                listing.seek(0)
                finished = self._search(args, context, base, os.fstat(folder), listing.fileno())
        result = _result(finished, base, complete, args)
        unsearched = result.pop("unsearched")
        if name is not None and unsearched:
            raise ToolError(f"{shown(base, name)} is not searched: it is {next(iter(unsearched))}.", _BY_COMMAND)
        notes = [result.get("note"), _counted(unsearched), *readable.notes()]
        return {**result, **({"note": " ".join(filter(None, notes))} if any(notes) else {})}

    def _search(
        self, args: GrepArgs, context: ToolContext, base: FilePlace, facts: os.stat_result, listing: int
    ) -> FinishedProcess:
        """Search the listed files; ``facts`` identify the directory ``base``, which must still be the same."""
        request = {
            "root": str(base.path),
            "root_is": [facts.st_dev, facts.st_ino],
            "pattern": args.pattern.encode("utf-8", "replace").decode(),
            "literal": args.pattern if _LITERAL.fullmatch(args.pattern) and not args.ignore_case else None,
            "ignore_case": args.ignore_case,
            "context": args.context,
            "matches": _MAX_MATCHES,
            "bytes": context.output_limit,
            "file_bytes": _FILE_BYTES,
            "width": _WIDTH,
        }
        argv = [sys.executable, "-I", "-S", "-X", "utf8", searcher.__file__, json.dumps(request)]
        try:
            return self._spawner.run(
                Walled(argv, env={}),
                cwd=base.path,
                timeout=self._seconds,
                cancel=context.cancel,
                output_limit=4 * context.output_limit + 4096,
                stdin=listing,
            )
        except OSError as error:
            raise ToolError(f"The search could not be started: {error}.", "Try again.") from error


def _file_name(found: FilePlace) -> str | None:
    """Return the name of a file that can be read; None for a directory."""
    fd, is_directory = open_either(found)
    os.close(fd)
    return None if is_directory else found.parts[-1]


def _filter(glob: str | None, base: FilePlace) -> PathPattern:
    if glob is None:
        return _EVERYTHING
    return path_pattern(glob if "/" in glob else f"**/{glob}", base)


def _counted(unsearched: Mapping[str, int]) -> str:
    """Return how many files were not searched, for the model; "" if all were."""
    counted = ", ".join(f"{number} {reason}" for reason, number in unsearched.items())
    return f"Not searched: {counted}." if counted else ""


def _result(finished: FinishedProcess, base: FilePlace, complete: bool, args: GrepArgs) -> dict[str, Any]:
    if finished.stopped:
        raise ToolError("Interrupted.")
    matches: list[dict[str, Any]] = []
    last: dict[str, Any] = {}
    for line in finished.output.raw().splitlines():
        last = _parsed(line)
        if "line" in last:
            matches.append(storable_json({**last, "path": shown(base, last["path"])}))
    if "moved" in last:
        raise changed(base.shown)
    if "error" in last:
        hint = "Write special characters with a backslash: `\\(`, `\\.`."
        raise ToolError(f"The pattern {storable(args.pattern)} cannot be used: {last['error']}.", hint)
    if not finished.timed_out and "done" not in last:
        raise ToolError("The search ended without a result.", "Narrow the pattern or the path.")
    result: dict[str, Any] = {"matches": matches, "unsearched": last.get("unsearched", {})}
    if finished.timed_out or not complete:
        result["truncated"] = True
        result["note"] = "The search took too long and was ended: use a simpler pattern or a narrower path."
    elif last.get("more"):
        result["truncated"] = True
        result["note"] = f"There are more than these {len(matches)} matches: narrow the pattern or the path."
    return result


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = jsontext.parse(line)
    except ValueError:
        return {}  # the search was ended in the middle of this line
    return found
