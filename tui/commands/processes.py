"""Carries out /processes: commands that agents run in the background."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.store import processes as store
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_WIDTH = 60
_USAGE = "Write /processes stop 3, or /processes alone."


def processes(ctx: CommandContext, words: str = "") -> Done:
    """List the session's processes, or stop one."""
    first, _, number = words.strip().partition(" ")
    if not first:
        return _listed(ctx)
    number = number.strip()
    if first != "stop" or not (number.isascii() and number.isdigit() and 0 < int(number[:11]) < 2**31):
        raise UsageError(f"{one_line(words.strip(), 30)!r} stops no process.", hint=_USAGE)
    asked = ctx.run_idempotent(store.stop, ctx.session.id, int(number))
    return Done(f"Process {number} is being stopped." if asked else f"Process {number} has ended already.")


def _listed(ctx: CommandContext) -> Done:
    found = ctx.run_idempotent(store.listed, ctx.session.id)
    if not found:
        return Done("No command was started in the background.")
    columns = ["process", "state", "exit code", "matches", "agent", "started", "command"]
    return Done(table=QueryResult(columns, [], [_row(one) for one in found]))


def _row(one: store.Process) -> tuple[str | None, ...]:
    state = "running without a worker" if one.without_worker else one.state
    code = "" if one.exit_code is None else str(one.exit_code)
    matches = str(one.matches) if one.watch else ""
    started = f"{one.started_at.astimezone():%Y-%m-%d %H:%M:%S}"
    return (str(one.id), state, code, matches, one.agent_name, started, one_line(one.command, _WIDTH))
