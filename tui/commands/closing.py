"""The line printed when the screen is left: which agents go on, what that may cost, and how to stop them."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import AgentmeshError, UnknownSession
from agentmesh.domain.figures import count, money, plural
from agentmesh.domain.ids import short
from agentmesh.store import board, sessions

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session


def close(mesh: Mesh, session: Session) -> str:
    """Do what the configuration says about agents that run; return the one line to print, empty for nothing.

    An untouched session is deleted, so that opening and closing leaves no trace.
    """
    try:
        left = mesh.database.run(board.left, session.id, idempotent=True)
        if left.untouched:
            mesh.database.run(sessions.delete_session, session.id, idempotent=True)
            return ""
        if left.running and mesh.settings.tui.on_exit == "interrupt":
            return _interrupt(mesh, session)
        return line(left, session, newest=_is_newest(mesh, session))
    except UnknownSession as error:  # deleted meanwhile, or moved to another database
        return f"{error.message}: {error.hint}"
    except AgentmeshError as error:
        return f"{error.message.rstrip('.')}. Agents that run go on; agentmesh ps shows them."


def line(left: board.Left, session: Session, *, newest: bool) -> str:
    """Return the closing line: the number of agents that go on, and the command that leads back."""
    back = "agentmesh -c" if newest else f"agentmesh --resume {short(session.id)}"
    if not left.running:
        return f"Go on with: {back}"
    which = "" if newest else f" --session {short(session.id)}"
    caps = []
    if left.cost_usd is not None:
        caps.append(money(max(left.cost_usd, Decimal(0))))
    if left.tokens is not None:
        caps.append(f"{count(max(left.tokens, 0))} tokens")
    spend = f", and may spend {' and '.join(caps)} more" if caps else ""
    verb = "goes" if left.running == 1 else "go"
    return (
        f"{plural(left.running, 'agent')} {verb} on in the background{spend}. "
        f"Back: {back}   Stop: agentmesh interrupt --all{which}"
    )


def _interrupt(mesh: Mesh, session: Session) -> str:
    from agentmesh.tui.commands.context import CommandContext
    from agentmesh.tui.commands.handlers import interrupt
    from agentmesh.tui.commands.shell import Shells

    return interrupt(CommandContext(mesh, session, Shells(), session.root_id, threading.Event()), "all").text


def _is_newest(mesh: Mesh, session: Session) -> bool:
    """Return whether ``-c`` leads back here; with several databases, another one may have a newer session.

    ``-c`` is for the directory, so it leads nowhere once that is gone.
    """
    if mesh.settings.name_among_several or not Path(session.workdir).is_dir():
        return False
    newest = mesh.database.run(sessions.newest, session.workdir, mesh.place.host, mesh.place.os_user, idempotent=True)
    return newest is not None and newest.id == session.id
