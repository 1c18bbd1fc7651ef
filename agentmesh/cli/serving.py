"""Make sure that a worker runs a session's agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentmesh.cli.talk import complain, say
from agentmesh.domain.errors import DatabaseError, UsageError
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import short
from agentmesh.domain.rows import AgentView, Session

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.serving import Obstacle


def require_provider(mesh: Mesh, session: Session) -> None:
    """Raise NoModel, or UsageError for a Python program's session, if a worker of this process could not run it."""
    if obstacle := mesh.serving.obstacle(session):
        raise _refusal(obstacle, session)


def start_worker_if_none(mesh: Mesh, session: Session) -> None:
    """Start a worker in the background if none serves the session; print that, or why it would not help."""
    service = mesh.ensure_served(session)
    if service.obstacle:
        error = _refusal(service.obstacle, session)
        complain(
            f"No worker serves this session, and {error.message}.",
            error.hint if service.obstacle.needs else f"{error.hint} Then run `agentmesh worker`.",
        )
    if service.started and not _complained_of_pooler(mesh):
        say(
            "No worker served this session: one was started in the background; "
            "it ends when nothing has run and no screen was open for 60 s."
        )


def _complained_of_pooler(mesh: Mesh) -> bool:
    """Return whether the worker that was started cannot run because of a pooler; print that."""
    from agentmesh.store import health

    try:
        health.require_listen(mesh.database.direct_url)
    except DatabaseError as error:
        complain(f"No worker serves this session, and none can: {error.message}", error.hint)
        return True
    return False


def _refusal(obstacle: Obstacle, session: Session) -> UsageError:
    """Return an obstacle as an error of a command."""
    if obstacle.no_model and not obstacle.needs:
        return obstacle.no_model
    return UsageError(
        f"the session {short(session.id)} needs parts of a Python program: {', '.join(obstacle.needs)}",
        hint="Start the program that has them; its worker runs the session's agents.",
    )


def tell_unserved(mesh: Mesh, rows: Sequence[AgentView], *, one_session: bool = True) -> bool:
    """Print for each session that its running agents stand still, if no living worker serves them, and what to do.

    Print nothing while a worker is starting, and return False: whether it serves them is known once it is registered.
    """
    from agentmesh.store import sessions

    # Looked at first: a worker that registers between the two looks is found by the second.
    may_be_served_soon = mesh.serving.is_starting()
    running = [row for row in rows if row.is_working]
    wanted = {(row.session_id, row.model.partition("/")[0]) for row in running}
    unserved = {one for one in wanted if not mesh.serving.is_served(*one)}
    if unserved and may_be_served_soon:
        return False
    still = Counter(row.session_id for row in running if (row.session_id, row.model.partition("/")[0]) in unserved)
    for id_, count in still.items():
        session = mesh.database.run(sessions.get, id_, idempotent=True)
        which = "this session" if one_session else f"session {short(id_)}"
        who = f"its {plural(count, 'running agent')} {'stands' if count == 1 else 'stand'} still"
        what = f"the Python program that has {', '.join(session.needs)}" if session.needs else "agentmesh worker"
        say(f"No worker serves {which}, so {who}: {what} goes on with {'it' if count == 1 else 'them'}.")
    return True
