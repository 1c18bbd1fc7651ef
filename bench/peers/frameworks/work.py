"""The work that every framework does: what its tools do, and its process, which does it as often as it is asked.

Standard library only: this runs in the peers' environments. Each framework is told the model server's address, the
system prompt and the tools' definitions, and gives back how it has one conversation; so requests are the same as ours
as far as the framework sends what it was given.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.peers.process import serve

ENOUGH: Final = 100
"""Steps that a conversation may take, where a framework wants a limit."""
PATIENCE: Final = 600.0
"""Seconds of every client's timeouts: 200 connections at once may take longer to open than the default allows."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a framework is told."""

    base_url: str
    workdir: str
    system: str
    tools: list[dict[str, Any]]
    """Definitions as the protocol has them: type and function."""


@dataclass(slots=True)
class Said:
    """What one conversation has streamed."""

    events: int = 0
    """Pieces of text that the framework handed out one by one."""
    answer: int = 0
    """Characters of the last answer."""

    def heard(self, piece: str) -> None:
        """Note a piece of text."""
        if piece:
            self.events += 1
            self.answer += len(piece)


Converse = Callable[["Work", str], Awaitable[Said]]
"""Has one conversation from its prompt to its answer; its tools are the work's ``call``."""
Prepare = Callable[[Told], Converse]


class Work:
    """One orchestration: the root's conversation and those of the children that it forks."""

    def __init__(self, told: Told, converse: Converse) -> None:
        self._told = told
        self._converse = converse
        self._children: list[asyncio.Task[Said]] = []
        self.events = 0

    async def run(self, prompt: str) -> Said:
        """Do it; return what the root said, with the events of all."""
        said = await self._converse(self, prompt)
        children = [child.result() for child in self._children]
        return Said(said.events + sum(child.events for child in children), said.answer)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Run a tool; return its result as JSON."""
        if name == "fork":
            self._children.append(asyncio.create_task(self._speak(arguments["prompt"])))
            return json.dumps({"agent_id": str(len(self._children)), "name": arguments["name"]})
        if name == "wait":
            await asyncio.gather(*self._children)
            return json.dumps({"outcome": "complete", "results": []})
        return json.dumps({"content": Path(self._told.workdir, arguments["path"]).read_text()})

    async def _speak(self, prompt: str) -> Said:
        return await self._converse(self, prompt)


def main(prepare: Prepare) -> None:
    """Serve: first what the framework is told, then prompts."""
    with asyncio.Runner() as runner:
        state: list[tuple[Told, Converse]] = []

        def answer(value: dict[str, Any]) -> Any:
            began, used = time.perf_counter(), time.process_time()
            if not state:
                told = Told(**value)
                state.append((told, prepare(told)))
                return {"processor": time.process_time()}
            run: Coroutine[Any, Any, Said] = Work(*state[0]).run(value["prompt"])
            said = runner.run(run)
            return {
                "seconds": time.perf_counter() - began,
                "processor": time.process_time() - used,
                "events": said.events,
                "answer": said.answer,
            }

        serve(answer)
