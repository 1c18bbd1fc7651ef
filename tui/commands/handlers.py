"""Carries out calls through the store: one function per command, named like it. Larger ones have their own modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.app.interrupting import interrupt_until_rest
from agentmesh.app.retrying import retry_each, retry_failed
from agentmesh.domain.errors import AgentmeshError, Refused, UsageError
from agentmesh.domain.figures import listed, plural
from agentmesh.domain.ids import MailId
from agentmesh.domain.rows import AgentView, Ref
from agentmesh.domain.text import one_line, printable
from agentmesh.store import agents, person, requests, sessions, waits
from agentmesh.store.send_many import audience_of, send_many
from agentmesh.tui.commands import (
    attachments,
    budgets,
    calls,
    diff,
    exports,
    fork,
    later,
    limits,
    model_context,
    permissions,
    processes,
    reply,
    search,
    settings,
    todo,
    trees,
)
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext, new_key

_NAMED = 5
"""Agents that a sentence names; it counts the others."""
_TITLE = 60
"""Characters of the first message that become the session's title."""


def say(ctx: CommandContext, text: str, words: str | None = None) -> Done:
    """Write to the agent in view, as the user; keep the text if a capture is open that the screen does not show yet.

    ``words``: the part of the text whose ``@names`` are images; None is all of it.
    """
    if ctx.run_persistently(person.is_capturing, ctx.in_view):
        return captured(ctx, text)
    return _said(ctx, text, urgent=False, words=words)


def urgent(ctx: CommandContext, text: str) -> Done:
    """Write to the agent in view, as the user: calls that it has not started are not run. A capture goes on."""
    return _said(ctx, text, urgent=True)


def _said(ctx: CommandContext, text: str, *, urgent: bool, words: str | None = None) -> Done:
    # A headless run may have said that nobody is here.
    ctx.run_persistently(requests.set_attended, ctx.session.id, True)
    shown = attachments.of(ctx, ctx.in_view, text if words is None else words)
    ctx.send(None, ctx.in_view, text, shown.references, urgent=urgent)
    with suppress(AgentmeshError):  # the message is sent: a failure here must not return its text
        if not ctx.run_idempotent(sessions.get, ctx.session.id).title:
            ctx.run_idempotent(person.rename_session, ctx.session.id, one_line(text, _TITLE))
    return Done(shown.remark)


def say_to(ctx: CommandContext, who: str, text: str) -> Done:
    """Write to another agent than the one in view, as the user."""
    ref = ctx.agent(who)
    ctx.run_persistently(requests.set_attended, ctx.session.id, True)
    shown = attachments.of(ctx, ref.id, text)
    ctx.send(None, ref.id, text, shown.references)
    return Done(" ".join(filter(None, [f"Sent to {ref.label}.", shown.remark])))


def captured(ctx: CommandContext, text: str) -> Done:
    """Keep a text from every model."""
    ctx.run(person.capture, ctx.in_view, text)
    return Done()


def shell(ctx: CommandContext, command: str) -> Done:
    """Run a shell command and keep its output where no model sees it."""
    workdir = ctx.session.workdir
    if not Path(workdir).is_dir():
        is_here = ctx.session.host == HostAndUser.here().host
        hint = "Bring it back." if is_here else f"The session is of the host {ctx.session.host}."
        raise UsageError(f"there is no directory {workdir} here", hint=hint)
    finished = ctx.shells.run(ctx.in_view, command, workdir, os.environ)
    output = printable(finished.output).rstrip("\n")
    if finished.exit_code:
        how = f"exit code {finished.exit_code}" if finished.exit_code > 0 else f"ended by signal {-finished.exit_code}"
        output = f"{output}\n[{how}]".lstrip("\n")
    content = {"command": f"!{command}", "output": output, "exit_code": finished.exit_code}
    ctx.run(person.note, ctx.in_view, content)
    return Done()


def goto(ctx: CommandContext, who: str) -> Done:
    """Bring an agent into view, by its name or id."""
    return Done(goto=ctx.agent(who).id)


def end_shell(ctx: CommandContext) -> Done:
    """End the shell command that runs in the view; nothing when it has ended by itself."""
    ctx.shells.end(ctx.in_view)
    return Done()


def take_back(ctx: CommandContext, mail: str) -> Done:
    """Withdraw an unread message; its text goes back into the prompt."""
    return Done(draft=ctx.run(person.take_back, MailId(int(mail))))


def interrupt(ctx: CommandContext, who: str | None = None) -> Done:
    """Stop an agent, all agents, or the shell command that was typed here."""
    if who is not None and who.lower() == "all":
        return _interrupt_all(ctx, lambda _view: True)
    if who is None and ctx.shells.end(ctx.in_view):
        return Done("The command is ended.")
    ref = ctx.agent(who)
    stopped = ctx.run_idempotent(agents.interrupt, ref.id)
    return Done(f"Interrupted {ref.name}." if stopped else f"{ref.name} was not running.")


def background(ctx: CommandContext, who: str | None = None) -> Done:
    """Let the task of a sub-agent go on in the background."""
    ref = ctx.agent(who)
    ctx.run(agents.background, ref.id)
    return Done(f"{ref.name} works on in the background; its result comes as a message.")


def interrupt_tree(ctx: CommandContext) -> Done:
    """Stop the agent in view and all its descendants."""
    views = ctx.run_idempotent(agents.view, ctx.session.id)
    inside = {ctx.in_view}
    for view in views:  # parents come before their children
        if view.parent_id in inside:
            inside.add(view.id)
    return _interrupt_all(ctx, lambda view: view.id in inside)


def _interrupt_all(ctx: CommandContext, meant: Callable[[AgentView], bool]) -> Done:
    stopped = interrupt_until_rest(
        ctx.mesh.database, lambda: filter(meant, ctx.run_idempotent(agents.view, ctx.session.id))
    )
    if not stopped.interrupted:
        return Done("No agent was running.")
    names = listed([ref.name for ref in stopped.interrupted], _NAMED)
    return Done(f"Interrupted {names}." + (" Some still stop." if stopped.running else ""))


def kill(ctx: CommandContext, who: str | None = None) -> Done:
    """End an agent and its descendants; the view leaves the dead."""
    ref = ctx.agent(who)
    parent = ctx.run_idempotent(agents.get, ref.id).parent_id
    killed = ctx.run(agents.kill, ref.id)
    if not killed:
        return Done(f"{ref.label} was dead already.")
    more = len(killed) - 1
    text = f"Killed {ref.label}" + (f" with {more:,} below it." if more else ".")
    return Done(text, goto=parent if ctx.in_view in {one.id for one in killed} else None)


def reap(ctx: CommandContext, who: str | None = None) -> Done:
    """Take the dead out of the rotation."""
    count = ctx.run_idempotent(sessions.reap, ctx.session.id, ctx.agent(who).id if who is not None else None)
    return Done(f"{plural(count, 'agent')} left the rotation." if count else "Nobody is dead.")


def rename(ctx: CommandContext, who: str, name: str) -> Done:
    """Give an agent another name."""
    ref = ctx.agent(who)
    named = ctx.run_idempotent(agents.rename, ref.id, name)
    return Done(f"{ref.label} is {named} now." if named != ref.name else f"{ref.label} has this name already.")


def send(ctx: CommandContext, who: str, message: str) -> Done:
    """Send mail from the agent in view: to an agent, to several (``a,b``), or to ``children`` or ``session``."""
    audience = audience_of(who)
    if audience or "," in who:
        named = [] if audience else [ctx.agent(one.strip()) for one in who.split(",")]
        _refuse_in_view(ctx, named)
        whom = audience or list(dict.fromkeys(ref.id for ref in named))
        sent = ctx.run_persistently(send_many, ctx.in_view, whom, message, new_key())
        ctx.ensure_served()
        return Done(f"Sent to {listed([one.name for one in sent], _NAMED)}.")
    ref = ctx.agent(who)
    _refuse_in_view(ctx, [ref])
    ctx.send(ctx.in_view, ref.id, message)
    return Done(f"Sent to {ref.label}.")


def _refuse_in_view(ctx: CommandContext, recipients: Sequence[Ref]) -> None:
    """Refuse mail to the agent in view, whose mail it is; what the database says then is meant for agents."""
    if me := next((ref for ref in recipients if ref.id == ctx.in_view), None):
        raise UsageError(
            f"/send writes to others in the name of {me.name}", hint=f"To write to {me.name}, type the text alone."
        )


def wait(ctx: CommandContext, timeout: str, *who: str) -> Done:
    """Let the agent in view wait; the result comes as a row."""
    named = [str(ctx.agent(one).id) if one.lower() == "parent" else one for one in who]
    targets = ctx.run_idempotent(waits.targets, ctx.session.id, named) if named else None
    wrong = next((target for target in targets or () if "error" in target), None)
    if wrong:
        raise UsageError(wrong["error"], hint=wrong["hint"])
    if ctx.run(waits.wait_begin, ctx.in_view, targets, float(timeout)) is None:
        ctx.ensure_served()
    return Done()


def capture(ctx: CommandContext) -> Done:
    """Begin a capture."""
    return Done() if ctx.run(person.begin_capture, ctx.in_view) else Done("A capture is open already.")


def cancel(ctx: CommandContext) -> Done:
    """End the capture."""
    ctx.run(person.cancel_capture, ctx.in_view)
    return Done()


def retry(ctx: CommandContext, *who: str) -> Done:
    """Run the agent in view, others, or all whose last turn failed, again."""
    refused: list[Refused] = []
    if [one.lower() for one in who] == ["all"]:
        retried = retry_failed(ctx.mesh.database, ctx.session.id)
        if not retried:
            return Done("No agent's last turn failed.")
    else:
        chosen = dict.fromkeys(ctx.agent(one) for one in who or [None])
        retried, refused = retry_each(ctx.mesh.database, chosen)
        if not retried:
            raise refused[0]
    ctx.ensure_served()
    if not who:
        return Done()
    but = "".join(f" But {error.message}." for error in refused)
    return Done(f"Running again: {listed([ref.name for ref in retried], _NAMED)}.{but}")


def _custom(ctx: CommandContext, *args: str) -> Done:
    """Carry out a custom command. Its modules are imported only now, because the screen starts with this module."""
    from agentmesh.tui.commands.custom import custom

    return custom(say, ctx, *args)


HANDLERS: Mapping[str, Callable[..., Done]] = MappingProxyType(
    {
        calls.SAY: say,
        calls.SAY_TO: say_to,
        calls.TASK: fork.task,
        calls.CAPTURED: captured,
        calls.SHELL: shell,
        calls.CUSTOM: _custom,
        calls.CUSTOM_CHILD: _custom,
        calls.END_SHELL: end_shell,
        calls.INTERRUPT_TREE: interrupt_tree,
        calls.TAKE_BACK: take_back,
        calls.ANSWER: permissions.answer,
        "agents": goto,
        "background": background,
        "budget": budgets.budget,
        "cancel": cancel,
        "capture": capture,
        "clear": model_context.clear,
        "compact": model_context.compact,
        "context": model_context.context,
        "cost": budgets.cost,
        "diff": diff.diff,
        "export": exports.export,
        "fork": fork.fork,
        "interrupt": interrupt,
        "kill": kill,
        "later": later.later,
        "limits": limits.limits,
        "mark": model_context.mark,
        "merge": trees.merge,
        "mode": settings.mode,
        "model": settings.model,
        "new": settings.new,
        "permissions": permissions.permissions,
        "processes": processes.processes,
        "reap": reap,
        "redo": trees.redo,
        "rename": rename,
        "reply": reply.reply,
        "retry": retry,
        "rewind": trees.rewind,
        "search": search.search,
        "send": send,
        "sql": settings.sql,
        "system": settings.system,
        "title": settings.title,
        "timeline": exports.timeline,
        "todo": todo.todo,
        "tools": settings.tools,
        "undo": trees.undo,
        calls.URGENT: urgent,
        "wait": wait,
    }
)
"""By the call's name; each takes the call's arguments."""
