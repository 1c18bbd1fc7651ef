"""Carries out /processes: commands that agents run in the background."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.store import processes as store
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_WIDTH = 60
_AGENT = 16
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
    columns = ["no.", "state", "agent", "started", "command"]  # the command begins within 80 columns
    return Done(table=QueryResult(columns, [], [_row(one) for one in found]))


def _row(one: store.Process) -> tuple[str | None, ...]:
    state = "no worker" if one.without_worker else one.state
    if one.exit_code is not None:
        state += f" {one.exit_code}"
    if one.watch:
        state += f", {one.matches} match{'es' * (one.matches != 1)}"
    started = f"{one.started_at.astimezone():%m-%d %H:%M}"
    return (str(one.id), state, one_line(one.agent_name, _AGENT), started, one_line(one.command, _WIDTH))
