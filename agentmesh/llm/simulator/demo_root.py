"""The demo's root: look, fork four children in one step, wait, give more work, kill, set a timer, sum up."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmesh.domain.text import one_line
from agentmesh.llm.simulator import findings
from agentmesh.llm.simulator.demo_jobs import JOBS, more_work
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, Exchange

_PROMPT = re.compile(
    r"\s*(?:please )?(?:(?:run|show|start|give|do)(?: me)? )?(?:the |a )?demo(?![\w/-]|\.\w).*",
    re.IGNORECASE | re.DOTALL,
)
_REPORTERS = ("file-reader", "code-analyzer", "test-runner")
_TIMED = "test-runner"
"""The child that the timer wakes."""
_PATIENCE = 60
"""Seconds that the root waits for its children."""
_SHORT = 1
"""Seconds after which a child that still runs is called slow."""

HOW_TO_GO_ON = (
    "I am a scripted model: nothing here was thought, but the processes, the database, the messages and the tools were "
    "real. To use a real model:\n\n"
    '    OPENAI_BASE_URL=... OPENAI_API_KEY=... agentmesh run --model NAME "prompt"'
)


@dataclass(frozen=True, slots=True)
class _Child:
    """A child that was forked."""

    agent_id: str
    name: str


def is_demo_prompt(text: str) -> bool:
    """Whether the user asks for the demo."""
    return _PROMPT.fullmatch(text) is not None


def play_root(view: ChatRequestView, since: int) -> ScriptedReply | None:
    """Return the root's next step of the demo that message ``since`` asks for; None if the demo is over."""
    done = view.exchanges(since)
    if _is_over(view, since):
        return None
    look = _of(done, "glob")
    if not look:
        return ScriptedReply(
            text="I am a scripted model; I will look at this directory, fork four helpers, wait for them, and sum up.",
            tool_calls=(ScriptedCall("glob", {"pattern": "**/*"}), *([_TASK] if "task" in view.tools else [])),
        )
    if not _of(done, "fork"):
        calls = tuple(ScriptedCall("fork", {"name": job.name, "prompt": job.prompt}) for job in JOBS.values())
        return ScriptedReply(
            text=f"There is something to look at: {findings.listing(look[0]).count}. Four helpers, side by side:",
            tool_calls=calls,
        )
    children = _children(done)
    calls = tuple(_next_calls(done, children, findings.listing(look[0]).files))
    if calls:
        return ScriptedReply(text=_INTRO[calls[0].name], tool_calls=calls)
    if calls := tuple(_timer_calls(done, children.get(_TIMED))):
        return ScriptedReply(text=_TIMER_INTRO if calls[0].name == "send" else "", tool_calls=calls)
    return ScriptedReply(text=_summary(done, children, findings.listing(look[0])))


_FORM = {
    "type": "object",
    "properties": {"files": {"type": "integer"}, "first": {"type": "array", "items": {"type": "string"}}},
    "required": ["files", "first"],
}
_TASK = ScriptedCall(
    "task",
    {"description": "list the files", "prompt": "list files", "subagent_type": "explore", "schema": _FORM},
)
"""Runs at the same time as the root's own look: a sub-agent with a clean context; its result is JSON."""

_INTRO = {
    "wait": "Now I wait for the three that report.",
    "send": "One report raises a question, so its author gets more work; meanwhile I look after the slow one.",
    "kill": "It still runs, and I do not need it: I kill it. Then the second report.",
}
_TIMER_INTRO = "The test-runner gets a message that is due in a second: a timer, which is a row like all else."


def _next_calls(done: Sequence[Exchange], children: Mapping[str, _Child], files: tuple[str, ...]) -> list[ScriptedCall]:
    waits, reader, slow = _of(done, "wait"), children.get("file-reader"), children.get("slow-poke")
    reporters = [children[name].agent_id for name in _REPORTERS if name in children]
    if reporters and not waits:
        return [_wait(_PATIENCE, reporters)]
    calls = []
    if reader and not _of(done, "send"):
        calls.append(ScriptedCall("send", {"to": reader.agent_id, "message": more_work(findings.readable(files))}))
        if slow:
            calls.append(_wait(_SHORT, [slow.agent_id]))
        return calls
    if slow and not _of(done, "kill"):
        calls.append(ScriptedCall("kill", {"agent_id": slow.agent_id}))
    if reader and not _second_report(done, reader):
        calls.append(_wait(_PATIENCE, [reader.agent_id]))
    return calls


def _timer_calls(done: Sequence[Exchange], child: _Child | None) -> list[ScriptedCall]:
    """Return the call that sets the timer, then a wait for anyone: an idle agent does not end that."""
    if child is None:
        return []
    timer = _timer(done)
    if timer is None:
        return [ScriptedCall("send", {"to": child.agent_id, "message": more_work(""), "after": 1})]
    return [] if timer.error or _timed(done) else [ScriptedCall("wait", {"timeout": _PATIENCE})]


def _timer(done: Sequence[Exchange]) -> Exchange | None:
    return next((sent for sent in _of(done, "send") if "after" in sent.arguments), None)


def _timed(done: Sequence[Exchange]) -> Exchange | None:
    return next((wait for wait in _of(done, "wait") if "from_agents" not in wait.arguments), None)


def _wait(timeout: int, agents: list[str]) -> ScriptedCall:
    return ScriptedCall("wait", {"timeout": timeout, "from_agents": agents})


def _of(done: Sequence[Exchange], tool: str) -> list[Exchange]:
    return [exchange for exchange in done if exchange.name == tool]


def _is_over(view: ChatRequestView, since: int) -> bool:
    """Whether the summary was given: the script's last message has no tool calls."""
    tail = view.messages[since + 1 :]
    return any(
        message.get("role") == "assistant" and HOW_TO_GO_ON in str(message.get("content") or "") for message in tail
    )


def _children(done: Sequence[Exchange]) -> dict[str, _Child]:
    """Return the children that were really forked, by the requested name."""
    found = {}
    for exchange in _of(done, "fork"):
        result = exchange.result
        if isinstance(result, dict) and "agent_id" in result:
            asked = str(exchange.arguments.get("name"))
            found[asked] = _Child(str(result["agent_id"]), str(result.get("name", asked)))
    return found


def _second_report(done: Sequence[Exchange], reader: _Child) -> Exchange | None:
    return next((wait for wait in _of(done, "wait") if wait.arguments.get("from_agents") == [reader.agent_id]), None)


def _entry(exchange: Exchange | None, child: _Child | None) -> Mapping[str, Any]:
    entries = findings.wait_entries(exchange)
    return next((entry for entry in entries if child and entry.get("agent_id") == child.agent_id), {})


def _summary(done: Sequence[Exchange], children: Mapping[str, _Child], look: findings.Listing) -> str:
    waits = _of(done, "wait")
    first = waits[0] if waits else None
    lines = [f"What the helpers found here (glob saw {look.count}):", ""]
    for name in _REPORTERS:
        child = children.get(name)
        lines.append(f"- {child.name}: {_shown(_entry(first, child))}" if child else f"- {name} could not be forked.")
    if reader := children.get("file-reader"):
        lines.append(f"- {reader.name}, asked once more: {_shown(_entry(_second_report(done, reader), reader))}")
    if (timed := children.get(_TIMED)) and _timed(done):
        lines.append(f"- {timed.name}, woken by a timer: {_shown(_entry(_timed(done), timed))}")
    lines.append(f"- {_fate(done, children.get('slow-poke'))}")
    lines += [f"- {_delegated(task)}" for task in _of(done, "task")]
    errors = [one_line(exchange.error, 160) for exchange in done if exchange.error]
    lines += [f"- A call failed: {error}" for error in errors[:3]]
    return "\n".join([*lines, "", HOW_TO_GO_ON])


def _delegated(task: Exchange) -> str:
    """Describe the result of the task."""
    told = task.result if isinstance(task.result, dict) else {}
    found = told.get("result")
    if isinstance(found, dict):
        shown = one_line(json.dumps(found, ensure_ascii=False), 200)
        return f"{told.get('name', 'a task')}, in a context of its own, as JSON of a fixed form: {shown}"
    answer = str(found or task.error or "nothing").partition("\n")[0].rstrip(":. ")
    return f"{told.get('name', 'a task')}, in a context of its own: {one_line(answer, 200)}."


def _shown(entry: Mapping[str, Any]) -> str:
    """Describe a wait's result for one child."""
    status = entry.get("status")
    if status == "received":
        return one_line(str(entry.get("message", "")), 400)
    if status == "idle" and "output" in entry:
        return f"(sent nothing and ended idle with this output) {one_line(str(entry['output']), 400)}"
    if status == "idle":
        return f"ended without a message: {one_line(str(entry.get('error', 'no output')), 200)}"
    return {"running": "still running when the wait ended.", "dead": "was killed."}.get(str(status), "no answer.")


def _fate(done: Sequence[Exchange], slow: _Child | None) -> str:
    if slow is None:
        return "slow-poke could not be forked."
    short = next((wait for wait in _of(done, "wait") if wait.arguments.get("from_agents") == [slow.agent_id]), None)
    status = _entry(short, slow).get("status", "unknown")
    kill = next(iter(_of(done, "kill")), None)
    killed = isinstance(kill.result, dict) and bool(kill.result.get("killed")) if kill else False
    ending = "so it was killed." if killed else "and it could not be killed."
    return f"{slow.name}: {status} after a wait of {findings.count_of(_SHORT, 'second')}, {ending}"
