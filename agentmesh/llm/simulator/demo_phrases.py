"""The demo model's answers to anything else: that it is scripted, and a few phrases on which it can act."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentmesh.domain.text import one_line
from agentmesh.llm.simulator import findings
from agentmesh.llm.simulator.demo_root import HOW_TO_GO_ON
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, Exchange, Mail

_PHRASES = """\
- "demo": several agents look at this directory and report
- "list files": what glob finds here
- "fork": a child lists the files and sends me the result
- "task": a sub-agent with a clean context lists them
- "wait 5": I wait up to five seconds for a message
- "send NAME TEXT", "kill NAME": to another agent, to a child of mine
- "run COMMAND": bash, if the permissions allow it"""
_SHOWN = 20

SUMMARY_REQUEST = "will be replaced by a summary"
"""Part of the message in which an engine asks for a summary of the conversation."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase, the call that it asks for, and the text made from the call's result."""

    pattern: re.Pattern[str]
    call: Callable[[re.Match[str]], ScriptedCall]
    say: Callable[[Exchange], str]


def _say_files(exchange: Exchange) -> str:
    found = findings.listing(exchange)
    if exchange.error or not found.files:
        return _error(exchange) or "There are no files here."
    names = [f"- {one_line(name, 100)}" for name in found.files[:_SHOWN]]
    rest = [f"- and {len(found.files) - _SHOWN:,} more"] if len(found.files) > _SHOWN else []
    return "\n".join([f"There are {found.count}:" if len(found.files) != 1 else "There is 1 file:", *names, *rest])


def _say_wait(exchange: Exchange) -> str:
    entries = findings.wait_entries(exchange)
    if exchange.error or not entries:
        outcome = exchange.result.get("outcome", "?") if isinstance(exchange.result, dict) else "?"
        return _error(exchange) or f"Nothing came (outcome {outcome})."
    return "\n".join(f"{entry.get('name')} ({entry.get('status', 'user')}): {_words(entry)}" for entry in entries)


def _words(entry: object) -> str:
    told = entry if isinstance(entry, dict) else {}
    return one_line(str(told.get("message") or told.get("output") or told.get("error") or ""), 400)


def _say_kill(exchange: Exchange) -> str:
    rows = exchange.result.get("killed") if isinstance(exchange.result, dict) else None
    names = [str(row.get("name")) for row in rows or [] if isinstance(row, dict)]
    return _error(exchange) or (f"Killed: {', '.join(names)}." if names else "Nothing was left to kill.")


def _say_task(exchange: Exchange) -> str:
    told = exchange.result if isinstance(exchange.result, dict) else {}
    return _error(exchange) or f"{told.get('name')} ({told.get('status')}): {told.get('result')}"


def _say_sent(exchange: Exchange) -> str:
    return _error(exchange) or "Sent."


def _say_output(exchange: Exchange) -> str:
    code = exchange.result.get("exit_code") if isinstance(exchange.result, dict) else None
    return _error(exchange) or f"{findings.output(exchange)[:2000].rstrip()}\n\nExit code {code}."


def _error(exchange: Exchange) -> str:
    return f"That did not work: {one_line(exchange.error, 300)}" if exchange.error else ""


def _phrase(pattern: str, call: Callable[[re.Match[str]], ScriptedCall], say: Callable[[Exchange], str]) -> _Phrase:
    return _Phrase(re.compile(rf"\s*{pattern}[.!]?\s*", re.IGNORECASE | re.DOTALL), call, say)


_FORK = _phrase(
    "(?:please )?fork(?: .{0,100})?",
    lambda _m: ScriptedCall("fork", {"name": "helper", "prompt": "list files"}),
    _say_wait,
)
_LIST = _phrase(
    "(?:please )?(?:list|show)(?: me)?(?: the| all)? files(?: here)?",
    lambda _m: ScriptedCall("glob", {"pattern": "**/*"}),
    _say_files,
)
_ALL = (
    _LIST,
    _FORK,
    _phrase(
        "(?:please )?task(?: .{0,100})?",
        lambda _m: ScriptedCall("task", {"description": "list the files", "prompt": "list files"}),
        _say_task,
    ),
    _phrase(
        r"wait(?: (?:for )?(\d{1,4})(?: ?s| seconds)?)?",
        lambda m: ScriptedCall("wait", {"timeout": int(m[1] or 10)}),
        _say_wait,
    ),
    _phrase(r"send (\S+) (.+)", lambda m: ScriptedCall("send", {"to": m[1], "message": m[2]}), _say_sent),
    _phrase(r"kill (\S+?)", lambda m: ScriptedCall("kill", {"agent_id": m[1]}), _say_kill),
    _phrase(r"run (.+)", lambda m: ScriptedCall("bash", {"command": m[1].strip().strip("`")}), _say_output),
)


def play_phrase(view: ChatRequestView, since: int, text: str, mail: Sequence[Mail]) -> ScriptedReply:
    """Return the next step of the work that the last message asks for."""
    message = mail[-1] if mail else None
    said = message.message if message else _prompt_of(view, text)
    phrase, found = (None, None) if message and message.automatic else _recognize(said)
    done = view.exchanges(since)
    if phrase is None or found is None:
        return ScriptedReply(text=f"Noted: {one_line(said, 120)}") if message else _help(view, done)
    call = phrase.call(found)
    if view.tools and call.name not in view.tools:
        return ScriptedReply(text=f"I have no tool {call.name} here.")
    asked = next((exchange for exchange in done if exchange.name == call.name), None)
    if asked is None:
        return ScriptedReply(text="Scripted, but real:", tool_calls=(call,))
    if phrase is _FORK and not asked.error and not any(exchange.name == "wait" for exchange in done):
        child = str(asked.result.get("agent_id")) if isinstance(asked.result, dict) else ""
        return ScriptedReply(tool_calls=(ScriptedCall("wait", {"timeout": 60, "from_agents": [child]}),))
    if phrase is _LIST and "report" in view.tools and not asked.error:
        seen = findings.listing(asked)
        result = {"files": len(seen.files), "first": [one_line(name, 100) for name in seen.files[:3]]}
        return ScriptedReply(tool_calls=(ScriptedCall("report", result),))
    answer = phrase.say(done[-1] if phrase is _FORK else asked)
    return _deliver(done, answer, _reply_to(view, message, said))


def _recognize(said: str) -> tuple[_Phrase | None, re.Match[str] | None]:
    for phrase in _ALL:
        if found := phrase.pattern.fullmatch(said):
            return phrase, found
    return None, None


def _prompt_of(view: ChatRequestView, text: str) -> str:
    """Return the prompt, without the introduction of a fork."""
    return view.fork.prompt if view.fork is not None and view.last_input == view.fork.index else text


def _reply_to(view: ChatRequestView, message: Mail | None, said: str) -> str:
    """Return the recipient of the answer: the agent that wrote, or the parent that forked; empty for the user."""
    if message is not None:
        return message.sender_id
    return "parent" if view.fork is not None and view.fork.by_parent and said == view.fork.prompt else ""


def _deliver(done: Sequence[Exchange], answer: str, to: str) -> ScriptedReply:
    if not to:
        return ScriptedReply(text=answer)
    if any(exchange.name == "send" and exchange.arguments.get("to") == to for exchange in done):
        return ScriptedReply(text="I have sent my report.")
    return ScriptedReply(tool_calls=(ScriptedCall("send", {"to": to, "message": answer}),))


def _help(view: ChatRequestView, done: Sequence[Exchange]) -> ScriptedReply:
    """Look at the directory, so that something small and real happens, and list the known phrases."""
    if not done and (not view.tools or "glob" in view.tools):
        return ScriptedReply(
            text="I am a scripted model and understand only a few phrases.",
            tool_calls=(ScriptedCall("glob", {"pattern": "*"}),),
        )
    seen = f"This directory has {findings.listing(done[0]).count} at its top. " if done and not done[0].error else ""
    return ScriptedReply(text=f"{seen}I understand:\n\n{_PHRASES}\n\n{HOW_TO_GO_ON}")


def play_summary(view: ChatRequestView) -> ScriptedReply:
    """Answer an engine that wants a summary: repeat the last message."""
    said = [text for _, text in view.own_inputs()][:-1]
    asked = f" The last that was said to me: {one_line(said[-1], 200)}" if said else ""
    return ScriptedReply(text=f"I am a scripted model and remember little.{asked}")
