"""The edit tool: replace one piece of text in a file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.text import clip, storable
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.files import FilePlace, open_parent, writable_place
from agentmesh.tools.ledger import FileLedger, digest, refuse_unseen
from agentmesh.tools.replace import existing, locked, replacing
from agentmesh.tools.words import Described

_LIMIT = 16 << 20
"""Size limit, in bytes, of a file that may be edited."""
_DIFF_LIMIT = 16 * 1024
_DIFF_SOURCE_LIMIT = 1 << 20
"""Size limit, in bytes, of a file that is compared for a diff: larger ones take long."""
_MARK = "\ufeff"


class EditArgs(BaseModel):
    """Arguments of edit."""

    path: str
    old: str = Field(min_length=1)
    new: str
    replace_all: bool = False


class Edit(Described):
    """Replace text in a file."""

    name = "edit"
    effect = Effect.WRITE
    args: type[BaseModel] = EditArgs

    def __init__(self, ledger: FileLedger) -> None:
        self._ledger = ledger

    def run(self, args: EditArgs, context: ToolContext) -> Mapping[str, Any]:
        """Change the file atomically; refuse if its content is not what this agent last saw."""
        found = writable_place(context, args.path)
        if context.withheld is not None and context.withheld(found.shown):
            raise ToolError(
                f"A rule keeps {found.shown} from being read, and `edit` shows what it changes.",
                "Ask a person, or write the whole file if that is allowed.",
            )
        path, agent = str(found.path), context.agent_id
        context.writing(found.path)
        with open_parent(found, create=False) as parent, locked(parent, context.cancel):
            before = existing(parent, found, _LIMIT)
            if before is None:
                raise FileNotFoundError(path)  # open_parent turns it into a message with similar names
            raw, facts = before
            refuse_unseen(self._ledger.known(agent, path), agent, found.shown, raw, whole=False)
            text = _Text.read(raw, found)
            changed, count = _replaced(text.body, text.plain(args.old), text.plain(args.new), args.replace_all, found)
            content = text.bytes_of(changed)
            with replacing(parent, found.parts[-1], content, facts):
                self._ledger.note_write(context, path, digest(content))
        result = {"path": found.shown, "bytes": len(content), "replacements": count}
        return {**result, "diff": _diff(text.body, changed, found.shown)}


@dataclass(frozen=True, slots=True)
class _Text:
    """A file as text with plain newlines, and the details needed to write it back unchanged."""

    body: str
    newline: str
    mark: str

    @classmethod
    def read(cls, raw: bytes, found: FilePlace) -> _Text:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ToolError(f"{found.shown} is not UTF-8 text.", "Change it with a program, through `bash`.") from error
        mark = _MARK if text.startswith(_MARK) else ""
        text = text.removeprefix(_MARK)
        # Convert only a file that uses CRLF throughout; leave a mixed one byte for byte.
        crlf = "\r\n" in text and text.count("\r\n") == text.count("\n") == text.count("\r")
        return cls(text.replace("\r\n", "\n") if crlf else text, "\r\n" if crlf else "\n", mark)

    def plain(self, text: str) -> str:
        """Return a model's text with the newlines of the body."""
        return text if self.newline == "\n" else text.replace("\r\n", "\n")

    def bytes_of(self, body: str) -> bytes:
        """Return the file's bytes for this body."""
        text = body if self.newline == "\n" else body.replace("\n", self.newline)
        return (self.mark + text).encode("utf-8", "replace")


def _replaced(body: str, old: str, new: str, replace_all: bool, found: FilePlace) -> tuple[str, int]:
    if old == new:
        raise ToolError("The old and the new text are the same.", "Nothing was changed.")
    count = body.count(old)
    if count == 0:
        raise ToolError(f"The old text is not in {found.shown}.", _near(body, old))
    is_again = body.find(old, body.find(old) + 1) >= 0  # `count` skips what overlaps: "aa" is in "aaa" twice
    if is_again and not replace_all:
        raise ToolError(
            f"The old text is {max(count, 2)} times in {found.shown}.",
            "Include more lines around it so that it is there once, or set replace_all.",
        )
    return body.replace(old, new), count


def _near(body: str, old: str) -> str:
    """Return a hint at the line that is probably meant; models most often get whitespace wrong."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    for number, line in enumerate(body.splitlines(), 1):
        if wanted and line.strip() == wanted:
            return f"Line {number} differs in what follows it or in whitespace: read it again and copy it exactly."
    return "Read the file again and copy the text exactly, without line numbers."


def _diff(before: str, after: str, shown: str) -> str:
    if len(before) + len(after) > 2 * _DIFF_SOURCE_LIMIT:
        return "(the file is too large for a diff)"
    lines = difflib.unified_diff(list(StringIO(before)), list(StringIO(after)), f"a/{shown}", f"b/{shown}")
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return clip(storable(text), _DIFF_LIMIT)
