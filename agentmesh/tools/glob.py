"""The glob tool: files by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.pathglob import BadPattern, PathPattern
from agentmesh.domain.text import storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.files import FilePlace, open_directory, place
from agentmesh.tools.walk import Walk
from agentmesh.tools.words import Described

_MAX_FILES = 1000
_SECONDS = 20.0


class GlobArgs(BaseModel):
    """Arguments of glob."""

    pattern: str = Field(min_length=1)
    path: str = "."


class Glob(Described):
    """Find files by name."""

    name = "glob"
    effect = Effect.READ
    args: type[BaseModel] = GlobArgs

    def run(self, args: GlobArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the first files that match, sorted by path."""
        base = place(context, args.path)
        with open_directory(base) as folder:
            pattern = path_pattern(args.pattern, base)
            walk = Walk(str(base.path), context.cancel, _SECONDS, folder)
            readable = Readable(walk.files(pattern), base, context)
            found = list(islice(readable, _MAX_FILES + 1))
        result: dict[str, Any] = {"files": [storable(shown(base, path)) for path in found[:_MAX_FILES]]}
        notes = []
        if len(found) > _MAX_FILES:
            result["truncated"] = True
            notes = [f"There are more than {_MAX_FILES} files: use a narrower pattern or path."]
        if not walk.complete:
            result["truncated"] = True
            notes = [f"The search was ended after {_SECONDS:g} s: use a narrower pattern or path."]
        if notes := [*notes, *readable.notes()]:
            result["note"] = " ".join(notes)
        return result


class Readable:
    """The files of a walk that no rule withholds from a call; counts the others."""

    def __init__(self, paths: Iterable[str], base: FilePlace, context: ToolContext) -> None:
        """``paths`` are relative to ``base``."""
        self._paths = paths
        self._base = base
        self._withheld = context.withheld
        self._left_out = 0

    def __iter__(self) -> Iterator[str]:
        for path in self._paths:
            if self._withheld is not None and self._withheld(shown(self._base, path)):
                self._left_out += 1
            else:
                yield path

    def notes(self) -> list[str]:
        """Return the note for the model, if files were left out."""
        if not self._left_out:
            return []
        files = "1 file is" if self._left_out == 1 else f"{self._left_out} files are"
        return [f"{files} left out: permission rules keep them from being read."]


def path_pattern(pattern: str, base: FilePlace) -> PathPattern:
    """Compile a model's pattern, which may start with the absolute path of the base."""
    root = f"{base.path}/"
    if pattern.startswith(root):
        pattern = pattern.removeprefix(root)
    if pattern.startswith(("/", "~")):
        where = "the working directory" if base.shown == "." else base.shown
        raise ToolError(f"The pattern {pattern} starts outside {where}.", "Use a pattern relative to `path`.")
    try:
        return PathPattern.parse(pattern)
    except BadPattern as error:
        raise ToolError(f"The pattern {pattern} cannot be used: {error}.", "Name the directory in `path`.") from error


def shown(base: FilePlace, path: str) -> str:
    """Return a path below the base in the form that models read."""
    return path if not base.parts else f"{base.shown.rstrip('/')}/{path}"
