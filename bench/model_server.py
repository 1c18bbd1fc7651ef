"""The simulator in a process of its own, with the script of the orchestration figure; and the handle on that process.

The root forks K children at once, waits for all and sums up; each child reads a small file three times and answers in
50 streamed events. The request alone says who asks and how far it is, so agentmesh and the bare SDK get the same.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator

START: Final = "START"
"""First word of the root's prompt; the number of children follows."""
WORK: Final = "WORK"
"""The children's prompt."""
NOTE: Final = "note.txt"
"""The file that they read, in the working directory."""
ROOT_CALLS, CHILD_CALLS = 3, 4
"""Model calls of the root, and of each child."""

_EVENTS, _EVENT_SIZE = 50, 24
_ANSWER: Final = ("word " * _EVENTS * _EVENT_SIZE)[: _EVENTS * _EVENT_SIZE]


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
        self._process.wait()


def _respond(view: ChatRequestView) -> ScriptedReply:
    told = view.input_text
    if told.endswith(WORK):
        if view.step < CHILD_CALLS - 1:
            return ScriptedReply(tool_calls=(ScriptedCall("read", {"path": NOTE}),))
    elif view.step == 0:
        children = int(told.split()[-1])
        calls = (ScriptedCall("fork", {"name": f"child-{n}", "prompt": WORK}) for n in range(1, children + 1))
        return ScriptedReply(tool_calls=tuple(calls))
    elif view.step == 1:
        forked = [exchange.result["agent_id"] for exchange in view.exchanges() if exchange.name == "fork"]
        return ScriptedReply(tool_calls=(ScriptedCall("wait", {"timeout": 600, "from_agents": forked}),))
    return ScriptedReply(text=_ANSWER, chunk_size=_EVENT_SIZE)


if __name__ == "__main__":
    simulator = Simulator(_respond, record=False)
    print(simulator.start(), flush=True)
    threading.Event().wait()
