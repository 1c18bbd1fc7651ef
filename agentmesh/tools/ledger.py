"""Which agent read and wrote which content of a file, so that no agent overwrites what it has not seen.

The ledger is in the database: it outlives a worker, all workers share it, and a fork inherits what its parent saw.
"""

from __future__ import annotations

import hashlib

from agentmesh.domain.ids import AgentId
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.store import files
from agentmesh.store.files import Known
from agentmesh.store.tx import Database


class FileLedger:
    """The contents of files that agents have seen, as digests made by :func:`digest`; paths are absolute and resolved.

    A call adds the files that it has read to its context's ``seen``.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, agent_id: AgentId, path: str) -> Known:
        """Return the content of a file that this agent last saw, and the agent that last wrote it."""
        return self._database.run(files.known, agent_id, path, idempotent=True)

    def note_write(self, context: ToolContext, path: str, digest: str) -> None:
        """Record that this agent is about to write this content; call it while the directory is locked.

        So if the database does not answer, the file stays as it was. After a crash in between, the file is not what the
        agent last saw, so the agent has to read it again.
        """
        self._database.run(files.note_write, context.agent_id, _step(context), path, digest, idempotent=True)


def digest(content: bytes) -> str:
    """Return the name of a content in the ledger."""
    return hashlib.sha256(content).hexdigest()


def refuse_unseen(known: Known, agent_id: AgentId, shown: str, found: bytes, *, whole: bool) -> None:
    """Raise ToolError unless the file still has the content that this agent last saw.

    ``whole`` means that the call replaces everything: then a file that was never read is refused too.
    """
    now = digest(found)
    if known.seen == now or (known.seen is None and not (whole and found)):
        return
    who = _who(known, agent_id, now)
    if known.seen is None:
        raise ToolError(f"{shown} exists and you have not read it{who}.", "Read it first, then write or edit it.")
    raise ToolError(f"{shown} changed since you last read it{who}.", "Read it again, then make your change.")


def _step(context: ToolContext) -> int:
    """Return the transcript row that asks for the call: a fork inherits what was seen together with that step."""
    seq = context.own_lease.seq
    if seq is None:
        raise ValueError("a call of a tool has a step")
    return seq


def _who(known: Known, agent_id: AgentId, now: str) -> str:
    if known.writer is None or known.writer == agent_id:
        return ": a command or a person wrote it"
    if known.written == now:
        return f": agent {known.writer_name} wrote it"
    return f": agent {known.writer_name} wrote it, and then a command or a person changed it"
