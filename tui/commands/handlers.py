"""What each call does, through the store: a function per command, named like it; ``changes`` has those of settings."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

from agentmesh.domain.errors import AgentmeshError, UsageError
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line, printable
from agentmesh.store import agents, mailbox, person, requests, sessions, waits
from agentmesh.tui.commands import budgets, calls, exports, fork, model_context, permissions, search, settings
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import Doing, label

_SETTLE = 8.0
"""Seconds that interrupted agents are given to come to rest; the last to rest may wake others."""
_LOOK = 0.3
_TITLE = 60
"""Characters of the first thing said that become the session's title."""


def say(doing: Doing, text: str) -> Done:
    """Write to the agent in view, as the user; in a capture that the screen did not show yet, keep the text instead."""
    if doing.insist(person.is_capturing, doing.in_view):
        return captured(doing, text)
    doing.insist(requests.set_attended, doing.session.id, True)  # a headless run may have said that nobody is here
    doing.insist(mailbox.send, None, doing.in_view, text, f"tui-{uuid.uuid4()}")
    doing.have_it_run()
    with suppress(AgentmeshError):  # it is sent: what fails now must not give the text back
        if not doing.read(sessions.get, doing.session.id).title:
            doing.read(person.rename_session, doing.session.id, one_line(text, _TITLE))
    return Done()


def captured(doing: Doing, text: str) -> Done:
    """Keep a text from every model."""
    doing.run(person.capture, doing.in_view, text)
    return Done()


def shell(doing: Doing, command: str) -> Done:
    """Run a shell command and keep its output where no model sees it."""
    finished = doing.shells.run(doing.in_view, command, doing.session.workdir, os.environ)
    output = printable(finished.output).rstrip("\n")
    if finished.exit_code:
        how = f"exit code {finished.exit_code}" if finished.exit_code > 0 else f"ended by signal {-finished.exit_code}"
        output = f"{output}\n[{how}]".lstrip("\n")
    content = {"command": f"!{command}", "output": output, "exit_code": finished.exit_code}
    doing.run(person.note, doing.in_view, content)
    return Done()


def goto(doing: Doing, who: str) -> Done:
    """Bring an agent into view, by its name or id."""
    return Done(goto=doing.agent(who).id)


def end_shell(doing: Doing) -> Done:
    """End the shell command that runs in the view; nothing when it has ended by itself."""
    doing.shells.end(doing.in_view)
    return Done()


def take_back(doing: Doing, mail: str) -> Done:
    """Withdraw an unread message; its text goes back into the prompt."""
    return Done(draft=doing.run(person.take_back, MailId(int(mail))))


def interrupt(doing: Doing, who: str | None = None) -> Done:
    """Stop an agent, all agents, or the shell command that was typed here."""
    if who is not None and who.lower() == "all":
        return _interrupt_all(doing, lambda _view: True)
    if who is None and doing.shells.end(doing.in_view):
        return Done("The command is ended.")
    ref = doing.agent(who)
    stopped = doing.read(agents.interrupt, ref.id)
    return Done(f"Interrupted {ref.name}." if stopped else f"{ref.name} was not running.")


def interrupt_tree(doing: Doing) -> Done:
    """Stop the agent in view and all its descendants."""
    views = doing.read(agents.view, doing.session.id)
    inside = {doing.in_view}
    for view in views:  # parents come before their children
        if view.parent_id in inside:
            inside.add(view.id)
    return _interrupt_all(doing, lambda view: view.id in inside)


def _interrupt_all(doing: Doing, meant: Callable[[AgentView], bool]) -> Done:
    """Interrupt agents, the deepest first, until they rest: the end of one may wake its parent."""
    stopped: dict[AgentId, str] = {}
    deadline = time.monotonic() + _SETTLE
    while True:
        views = [view for view in doing.read(agents.view, doing.session.id) if meant(view)]
        running = [view for view in views if view.status == AgentStatus.RUNNING and not view.external]
        for view in sorted(running, key=lambda view: -view.depth):
            if doing.read(agents.interrupt, view.id):
                stopped[view.id] = view.name
        if not running or time.monotonic() > deadline:
            break
        time.sleep(_LOOK)
    if not stopped:
        return Done("No agent was running.")
    return Done(f"Interrupted {', '.join(stopped.values())}." + (" Some still stop." if running else ""))


def kill(doing: Doing, who: str | None = None) -> Done:
    """End an agent and its descendants; the view leaves the dead."""
    ref = doing.agent(who)
    parent = doing.read(agents.get, ref.id).parent_id
    killed = doing.run(agents.kill, ref.id)
    if not killed:
        return Done(f"{label(ref)} was dead already.")
    more = len(killed) - 1
    text = f"Killed {label(ref)}" + (f" with {more} descendant{'s' if more > 1 else ''}." if more else ".")
    return Done(text, goto=parent if doing.in_view in {one.id for one in killed} else None)


def reap(doing: Doing, who: str | None = None) -> Done:
    """Take the dead out of the rotation."""
    count = doing.read(sessions.reap, doing.session.id, doing.agent(who).id if who is not None else None)
    return Done(f"{count} agent{'s' if count > 1 else ''} left the rotation." if count else "Nobody is dead.")


def send(doing: Doing, who: str, message: str) -> Done:
    """Send mail from the agent in view."""
    ref = doing.agent(who)
    doing.insist(mailbox.send, doing.in_view, ref.id, message, f"tui-{uuid.uuid4()}")
    doing.have_it_run()
    return Done(f"Sent to {label(ref)}.")


def wait(doing: Doing, timeout: str, *who: str) -> Done:
    """Let the agent in view wait; the result comes as a row."""
    named = [str(doing.agent(one).id) if one.lower() == "parent" else one for one in who]
    targets = doing.read(waits.targets, doing.session.id, named) if named else None
    wrong = next((target for target in targets or () if "error" in target), None)
    if wrong:
        raise UsageError(wrong["error"], hint=wrong["hint"])
    if doing.run(waits.wait_begin, doing.in_view, targets, float(timeout)) is None:
        doing.have_it_run()
    return Done()


def capture(doing: Doing) -> Done:
    """Begin a capture."""
    return Done() if doing.run(person.begin_capture, doing.in_view) else Done("A capture is open already.")


def cancel(doing: Doing) -> Done:
    """End the capture."""
    doing.run(person.cancel_capture, doing.in_view)
    return Done()


def retry(doing: Doing) -> Done:
    """Run the agent in view again after an error."""
    doing.run(person.retry, doing.in_view)
    doing.have_it_run()
    return Done()


DEEDS: Mapping[str, Callable[..., Done]] = MappingProxyType(
    {
        calls.SAY: say,
        calls.CAPTURED: captured,
        calls.SHELL: shell,
        calls.END_SHELL: end_shell,
        calls.INTERRUPT_TREE: interrupt_tree,
        calls.TAKE_BACK: take_back,
        calls.ANSWER: permissions.answer,
        "agents": goto,
        "budget": budgets.budget,
        "cancel": cancel,
        "capture": capture,
        "clear": model_context.clear,
        "compact": model_context.compact,
        "context": model_context.context,
        "cost": budgets.cost,
        "export": exports.export,
        "fork": fork.fork,
        "interrupt": interrupt,
        "kill": kill,
        "mark": model_context.mark,
        "mode": settings.mode,
        "model": settings.model,
        "new": settings.new,
        "permissions": permissions.permissions,
        "reap": reap,
        "rename": settings.rename,
        "retry": retry,
        "rewind": model_context.rewind,
        "search": search.search,
        "send": send,
        "sql": settings.sql,
        "system": settings.system,
        "timeline": exports.timeline,
        "tools": settings.tools,
        "wait": wait,
    }
)
"""By the call's name; each takes the call's arguments."""
