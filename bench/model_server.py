"""The simulator in a process of its own, with the script of the orchestration figure; and the handle on that process.

The root forks K children at once, waits for all and sums up; each child reads a small file three times and answers in
50 streamed events. An agent that only makes steps reads another line in each.

The request alone says who asks and how far it is, so agentmesh and every framework get the same;
and what was asked and answered is counted, so that nobody gets away with less.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator

START: Final = "START"
"""First word of the root's prompt; the number of children follows."""
TASKS: Final = "TASKS"
"""First word in its place, for children that are sub-agents of the tool ``task``."""
WORK: Final = "WORK"
"""The children's prompt."""
STEPS: Final = "STEPS"
"""Begins the prompt of an agent that only makes steps; their number follows."""
HI: Final = "hi"
"""A prompt that is answered at once."""
NOTE: Final = "note.txt"
"""The file that they read, in the working directory."""
ROOT_CALLS, CHILD_CALLS = 3, 4
"""Model calls of the root, and of each child."""

_EVENTS, _EVENT_SIZE = 50, 24
_ANSWER: Final = ("word " * _EVENTS * _EVENT_SIZE)[: _EVENTS * _EVENT_SIZE]


@dataclass(slots=True)
class Counts:
    """What the server was asked and has answered."""

    model_calls: int = 0
    streamed: int = 0
    """Of the calls, those that asked for a stream."""
    tool_calls: int = 0
    """Asked for by the model."""
    results: int = 0
    """Of tool calls, as they came back in the conversations that ended."""
    answered: int = 0
    """Characters of the answers."""
    tools: int = 0
    """Tool definitions that the requests carried."""
    system: int = 0
    """Characters of system prompt that the requests carried."""

    def minus(self, before: Counts) -> Counts:
        """Return what came since."""
        return Counts(*(now - then for now, then in zip(asdict(self).values(), asdict(before).values(), strict=True)))


class ModelServer:
    """The simulator, from here; use it as a context manager."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.model_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        self.pid = self._process.pid
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()

    def counts(self) -> Counts:
        """Return what there was until now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return Counts(**json.loads(self._process.stdout.readline()))


def calls(children: int) -> int:
    """Return how many model calls an orchestration is."""
    return ROOT_CALLS + CHILD_CALLS * children


def task_calls(children: int) -> int:
    """Return how many model calls an orchestration by tasks is: the root's wait is none of its own."""
    return calls(children) - 1


def program_work(asked: int, children: int, *, waits: bool) -> tuple[int, int, int, int, int]:
    """Return what so many model calls are, apart from their tools and system prompts.

    These are the model calls, those that streamed, the tool calls, their results, and the characters of all answers.
    ``waits``: the root calls the tool ``wait`` too.
    """
    called = children * CHILD_CALLS + waits
    return asked, asked, called, called, (children + 1) * len(_ANSWER)


def work(children: int, tools: int, system: int) -> Counts:
    """Return what an orchestration is, where each request carries so many tools and characters of system prompt."""
    asked, called = calls(children), children + 1 + (CHILD_CALLS - 1) * children
    return Counts(asked, asked, called, called, (children + 1) * len(_ANSWER), tools * asked, system * asked)


class _Counting:
    """The script, counted."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._lock = threading.Lock()

    def respond(self, view: ChatRequestView) -> ScriptedReply:
        """Answer a request."""
        reply = _respond(view)
        # Critical section: a few sums.
        with self._lock:
            self.counts.model_calls += 1
            self.counts.streamed += view.stream
            self.counts.tool_calls += len(reply.tool_calls)
            self.counts.tools += len(view.tools)
            self.counts.system += len(view.system)
            if not reply.tool_calls:
                self.counts.answered += len(reply.text)
                self.counts.results += len(view.exchanges())
        return reply


def _respond(view: ChatRequestView) -> ScriptedReply:
    told = view.input_text
    if told.endswith(WORK):
        if view.step < CHILD_CALLS - 1:
            return ScriptedReply(tool_calls=(ScriptedCall("read", {"path": NOTE}),))
    elif told.split()[-2:-1] == [STEPS]:
        if view.step < int(told.split()[-1]) - 1:
            return ScriptedReply(
                tool_calls=(ScriptedCall("read", {"path": NOTE, "offset": view.step + 1, "limit": 1}),)
            )
        return ScriptedReply(text="done")
    elif told == HI:
        pass
    elif told.split()[-2] == TASKS:
        if view.step == 0:
            given = ({"description": f"child {n}", "prompt": WORK} for n in range(1, int(told.split()[-1]) + 1))
            return ScriptedReply(tool_calls=tuple(ScriptedCall("task", each) for each in given))
    elif view.step == 0:
        children = int(told.split()[-1])
        calls = (ScriptedCall("fork", {"name": f"child-{n}", "prompt": WORK}) for n in range(1, children + 1))
        return ScriptedReply(tool_calls=tuple(calls))
    elif view.step == 1:
        forked = [exchange.result["agent_id"] for exchange in view.exchanges() if exchange.name == "fork"]
        return ScriptedReply(tool_calls=(ScriptedCall("wait", {"timeout": 600, "from_agents": forked}),))
    return ScriptedReply(text=_ANSWER, chunk_size=_EVENT_SIZE)


def main() -> None:
    """Serve; say what was counted, a line for each line of stdin."""
    counting = _Counting()
    simulator = Simulator(counting.respond, record=False)
    print(simulator.start(), flush=True)
    for _ in sys.stdin:
        print(json.dumps(asdict(counting.counts)), flush=True)


if __name__ == "__main__":
    main()
