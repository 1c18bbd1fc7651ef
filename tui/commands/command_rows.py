"""Leaves a row for each command that acts on the mesh; commands that only show or choose leave none."""

from __future__ import annotations

from contextlib import suppress

from agentmesh.domain import commands
from agentmesh.domain.budgets import parse_words
from agentmesh.domain.errors import AgentmeshError, DeadAgent
from agentmesh.store import person
from agentmesh.tui.commands.calls import YES, Call, Done
from agentmesh.tui.commands.context import CommandContext

ACTING = frozenset(
    {
        "background",
        "cancel",
        "capture",
        "clear",
        "compact",
        "fork",
        "interrupt",
        "kill",
        "mark",
        "merge",
        "reap",
        "redo",
        "rename",
        "reply",
        "retry",
        "rewind",
        "send",
        "task",
        "title",
        "undo",
    }
)
"""Without ``wait``, whose verb writes the row, and ``new``, which does not change this session."""
SETTING = frozenset({"later", "limits", "mode", "model", "permissions", "processes", "system", "todo", "tools"})
"""These act with an argument, and only show without one."""


def record(ctx: CommandContext, call: Call, done: Done) -> None:
    """Leave a row of the command with the agent in view; if that is dead, with the agent that comes into view.

    The command is done by then, so a failure to write the row is ignored.
    """
    if not (call.typed.lstrip().startswith("/") and _acts(call)) or done.session or done.question:
        return
    content = commands.row_content(call.name, [one for one in call.args if one != YES], done.text)
    with suppress(AgentmeshError):
        try:
            ctx.run(person.note, ctx.in_view, content)
        except DeadAgent:
            ctx.run(person.note, done.goto or ctx.session.root_id, content)


def _acts(call: Call) -> bool:
    if call.name in ("fork", "rewind") and call.args == ("@",):  # lists rows
        return False
    if call.name == "merge" and "--preview" in call.args[-1:]:
        return False
    if call.name == "budget":
        return parse_words(" ".join(call.args).split())[1] is not None
    return call.name in ACTING or (call.name in SETTING and bool(call.args))
