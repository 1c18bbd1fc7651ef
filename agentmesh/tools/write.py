"""The write tool: a new file, or new content for one that this agent knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.tools.files import open_parent, writable_place
from agentmesh.tools.ledger import FileLedger, digest, refuse_unseen
from agentmesh.tools.replace import existing, locked, replacing
from agentmesh.tools.words import Described

_LIMIT = 64 << 20
"""Size limit, in bytes, of a file that may be replaced."""


class WriteArgs(BaseModel):
    """Arguments of write."""

    path: str
    content: str


class Write(Described):
    """Write a whole file."""

    name = "write"
    effect = Effect.WRITE
    args: type[BaseModel] = WriteArgs

    def __init__(self, ledger: FileLedger) -> None:
        self._ledger = ledger

    def run(self, args: WriteArgs, context: ToolContext) -> Mapping[str, Any]:
        """Write the file atomically; refuse if it holds content that this agent has not seen."""
        found = writable_place(context, args.path)
        path, agent = str(found.path), context.agent_id
        context.writing(found.path)
        content = args.content.encode("utf-8", "replace")
        with open_parent(found, create=True) as parent, locked(parent, context.cancel):
            old = existing(parent, found, _LIMIT)
            if old is not None:
                refuse_unseen(self._ledger.known(agent, path), agent, found.shown, old[0], whole=True)
            with replacing(parent, found.parts[-1], content, old[1] if old else None):
                self._ledger.note_write(context, path, digest(content))
        return {"path": found.shown, "bytes": len(content), "created": old is None}
