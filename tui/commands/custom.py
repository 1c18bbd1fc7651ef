"""Carries out a custom command that runs commands, shows files, or is for a child: asks first what needs a yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.config.custom_commands import CustomCommand
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import UsageError
from agentmesh.domain.shape import Shape
from agentmesh.domain.text import one_line, visible
from agentmesh.store import agents, person
from agentmesh.tui.commands.calls import CUSTOM, YES, Done, Question
from agentmesh.tui.commands.context import CommandContext
from agentmesh.tui.commands.fork import fork_with

if TYPE_CHECKING:
    from agentmesh.app.custom_message import MessageText

_NAMED = 5
"""Missing files that a sentence names."""


def custom(say: Callable[[CommandContext, str, str], Done], ctx: CommandContext, *args: str) -> Done:
    """Make the message of a custom command and send it, or give it to a child; ``say`` sends to the agent in view.

    ``args``: the command's name and its arguments; after a yes, YES and the digest of what was agreed to come first.
    """
    from agentmesh.app.custom_message import CustomMessage

    agreed, (name, arguments) = (args[1], args[2:]) if args[0] == YES else ("", args)
    command, is_here = _command(ctx, name)
    if command.makes_child and ctx.run_idempotent(person.is_capturing, ctx.in_view):
        raise UsageError(f"a capture is open, and /{name} makes a child", hint="/cancel ends it; the text stays.")
    message = CustomMessage(ctx.mesh, ctx.in_view, command, arguments, is_here=is_here)
    if message.asks and agreed != message.digest:
        return Done(question=_question(command, message.asks, (YES, message.digest, name, arguments)))
    cancel = Cancel()
    with ctx.shells.cancelling(ctx.in_view, cancel):
        filled = message.run(agreed=bool(agreed), cancel=cancel)
    if not filled.text.strip():
        raise UsageError(f"/{name} says nothing without arguments", hint=f"Usage: {command.usage}")
    missing = ", ".join(one_line(visible(one), 60) for one in filled.missing[:_NAMED])
    remark = f"No file of text here: {missing}." if missing else ""
    done = _to_child(ctx, command, filled) if command.makes_child else say(ctx, filled.text, filled.words)
    return done._replace(text=" ".join(filter(None, (done.text, remark))))


def _command(ctx: CommandContext, name: str) -> tuple[CustomCommand, bool]:
    """Return a command, and whether the session's files are here."""
    is_here = ctx.session.host == HostAndUser.here().host
    command = ctx.mesh.custom_commands(Path(ctx.session.workdir) if is_here else None).now().get(name)
    if command is None:
        raise UsageError(f"there is no command /{name} any more", hint="Its file is gone, or cannot be read.")
    return command, is_here


def _question(command: CustomCommand, asks: Sequence[str], args: tuple[str, ...]) -> Question:
    lines = [f"It is {command.kind}: {command.source}", *asks]
    text = f"Run this for the message of /{command.name}?"
    return Question(text, "\n".join(lines), CUSTOM, args, refused="Nothing was run or sent")


def _to_child(ctx: CommandContext, command: CustomCommand, filled: MessageText) -> Done:
    """Give the message to a new child, and go to it."""
    context = "none" if command.is_subtask else None
    shape = Shape(command.model or None, None, context, type=command.agent or None)
    made, remark = fork_with(ctx, command.name.replace(":", "-"), filled.text, words=filled.words, shape=shape)
    ctx.ensure_served()
    cache = ctx.run_idempotent(agents.fork_cache, made.id)
    forked = f"Forked {made.name} for /{command.name}{f' ({cache})' if cache else ''}."
    return Done(f"{forked} {remark}".rstrip(), goto=made.id)
