"""Moves a session at rest to another database of the mesh: whole or not at all, and killable at any point.

1. The source notes the move. Nothing else changes there until the third step.
2. The rows are copied to the destination, sealed: no verb sees them. They get numbers that are free there, and are
   unpacked once for a try, which is undone.
3. The source deletes the session, if it is still what was copied, and notes where it has gone. This commit decides.
4. The destination unpacks the arrival in one commit, and the session lives there.

If the mover dies, ``resume`` asks the source how far it came. Before the third step the session has stayed, and what
has arrived is thrown away; after it the fourth is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError, DatabaseError, Interrupted, UsageError
from agentmesh.domain.ids import short
from agentmesh.domain.log import logger
from agentmesh.store import moves
from agentmesh.store.errors import translated

if TYPE_CHECKING:
    from agentmesh.app.databases import Databases
    from agentmesh.app.mesh import Mesh
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import Session

LOG = logger(__name__)

RESUME: Final = "Run `agentmesh sessions move --resume`: it looks how far the move came, and finishes or undoes it."


class MovedSession(NamedTuple):
    """A session that lives in another database now."""

    session_id: SessionId
    source: str
    destination: str
    rows: int
    offsets: Mapping[str, int]
    """For each table, the offset that was added to its numbers."""


class Outcome(StrEnum):
    """The end of a move that was left unfinished."""

    ARRIVED = "arrived"
    STAYED = "stayed"
    """It never left its source."""
    UNKNOWN = "unknown"
    """A database that knows more is not configured, did not answer, or is busy with it."""


class Resumed(NamedTuple):
    """A move that was left unfinished, and its end."""

    session_id: SessionId
    source: str
    destination: str
    outcome: Outcome


def move(databases: Databases, session: Session, source: Mesh, to: str) -> MovedSession:
    """Move a session to the database of this name, and remember it there.

    Raise SessionRunning, SessionChanged if it does not come to rest, UsageError if it is there or one of them cannot be
    written, Interrupted, or a DatabaseError. If the error does not say otherwise, the session has stayed as it was.
    """
    origin = source.settings.database or ""
    if to == origin:
        raise UsageError(f"The session {short(session.id)} is in the database {to} already.")
    destination = databases.mesh(to)
    for mesh in (source, destination):
        if mesh.settings.is_read_only:
            name = mesh.settings.database
            raise UsageError(f"The database {name} is configured as read_only, so no session moves from or to it.")
    with ExitStack() as stack:
        leaving = stack.enter_context(moves.patient_connection(source.database))
        arriving = stack.enter_context(moves.patient_connection(destination.database))
        this = moves.begin(leaving, session.id, to)
        try:
            with translated(destination.database.where):
                left = moves.leave(leaving, arriving, this, session.id, origin)
        except BaseException as error:
            outcome = _settle_now(source, destination, this)
            why = str(error) or "the move was interrupted"
            if outcome is Outcome.ARRIVED:
                databases.whereabouts.remember(str(session.id), to)
                raise DatabaseError(f"The session {short(session.id)} is in {to} now, although {why}") from error
            if isinstance(error, KeyboardInterrupt):
                stayed = f"The session {short(session.id)} has stayed in {origin}."
                raise Interrupted(why, hint=stayed if outcome is Outcome.STAYED else RESUME) from error
            if isinstance(error, AgentmeshError) and outcome is Outcome.UNKNOWN:
                error.hint = RESUME
            raise
    if _settle_now(source, destination, this) is not Outcome.ARRIVED:
        raise DatabaseError(f"The session {short(session.id)} has left {origin}, and is sealed in {to}.", hint=RESUME)
    databases.whereabouts.remember(str(session.id), to)
    return MovedSession(session.id, origin, to, left.rows, left.offsets)


def resume(databases: Databases) -> Iterator[Resumed]:
    """Finish or undo each move that was left, and yield its end.

    A move that is under way elsewhere, and has not departed, is called off; its mover says so.
    """
    answers = databases.ask(
        lambda mesh: (
            mesh.database.run(moves.unfinished, idempotent=True),
            mesh.database.run(moves.arrivals, idempotent=True),
        )
    ).some()
    sealed = {one.id: (name, one) for name, (_, arrived) in answers.items() for one in arrived}
    for name, (left, _) in answers.items():
        for one in left:
            at, _ = sealed.pop(one.id, (one.destination if one.destination in answers else None, None))
            outcome = _try_to_settle(databases.mesh(name), databases.mesh(at) if at else None, one.id)
            yield Resumed(one.session_id, name, at or one.destination, outcome)
    for at, arrival in sealed.values():
        source = next((name for name in answers if _began_in(databases.mesh(name), arrival.id)), None)
        outcome = _try_to_settle(databases.mesh(source), databases.mesh(at), arrival.id) if source else Outcome.UNKNOWN
        yield Resumed(arrival.session_id, source or arrival.source, at, outcome)


def _settle(source: Mesh, destination: Mesh | None, this: UUID) -> Outcome:
    """Finish a move if the session has departed; else call it off, and throw away what has arrived."""
    if source.database.run(moves.call_off, this, idempotent=True) != "departed":
        if destination is not None:
            try:
                with moves.patient_connection(destination.database) as arriving:
                    moves.discard(arriving, this)
            except AgentmeshError as error:  # the session has stayed all the same, and the copy is sealed
                LOG.warning("`agentmesh sessions move --resume` throws away what has arrived of it: %s", error)
        return Outcome.STAYED
    if destination is None:
        return Outcome.UNKNOWN
    with moves.patient_connection(destination.database) as arriving:
        if moves.unpack(arriving, this) is None:
            return Outcome.UNKNOWN  # another database has this name now
    source.database.run(moves.end, this, idempotent=True)
    return Outcome.ARRIVED


def _try_to_settle(source: Mesh, destination: Mesh | None, this: UUID) -> Outcome:
    """Settle a move; if a database does not let us, leave it to the next ``resume``."""
    try:
        return _settle(source, destination, this)
    except AgentmeshError as error:
        LOG.warning("the move %s is left unfinished: %s", this, error)
        return Outcome.UNKNOWN


def _settle_now(source: Mesh, destination: Mesh, this: UUID) -> Outcome:
    """Settle our own move; if a person interrupts that, leave it to ``resume``."""
    try:
        return _try_to_settle(source, destination, this)
    except KeyboardInterrupt:
        return Outcome.UNKNOWN


def _began_in(mesh: Mesh, this: UUID) -> bool:
    return mesh.database.run(moves.is_here, this, idempotent=True)
