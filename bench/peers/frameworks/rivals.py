"""The frameworks as the benchmark sees them: each a warm process, asked to do the orchestration."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from bench.machine import memory
from bench.peers.environments import REQUIREMENTS, NotInstalledError, environment
from bench.peers.process import Peer, PeerError

SDK: Final = "openai SDK"
FRAMEWORKS: Final[Mapping[str, str]] = {
    "openai-agents": "openai_agents",
    "pydantic-ai": "pydantic_ai",
    "langgraph": "langgraph",
    "autogen-agentchat": "autogen",
}
"""Name of each, and of its module and its file of requirements."""
_PINNED: Final = {"pydantic-ai": "pydantic-ai-slim"}
"""The package in whose name a framework's version is pinned, where it is another."""
_MODULES: Final = "bench.peers.frameworks"
_EVENTS: Final = 50


@dataclass(frozen=True, slots=True)
class Ran:
    """One orchestration of a framework."""

    seconds: float
    processor: float
    """Seconds."""


class Rival:
    """A framework's process; a context manager lends it."""

    def __init__(self, name: str, release: str, peer: Peer, told: Mapping[str, Any]) -> None:
        self.name = name
        self.release = release
        self._peer = peer
        self.prepared = float(peer.ask(told, seconds=300)["processor"])
        """Processor seconds from its process's start until it could begin: what its imports cost."""

    @property
    def memory(self) -> float:
        """Resident bytes."""
        return memory(self._peer.pid)

    def run(self, prompt: str, children: int) -> Ran:
        """Let it orchestrate; raise PeerError when it handed out less than every streamed event."""
        done = self._peer.ask({"prompt": prompt}, seconds=600)
        if done["events"] < _EVENTS * (children + 1):
            raise PeerError(f"{self.name} handed out {done['events']} events of {_EVENTS * (children + 1)}")
        return Ran(done["seconds"], done["processor"])


@contextmanager
def rivals(told: Mapping[str, Any]) -> Iterator[tuple[list[Rival], dict[str, NotInstalledError | PeerError]]]:
    """Lend the bare SDK, which comes first, and every framework that can be had; and say why the others cannot."""
    with ExitStack() as stack:
        found, absent = [], dict[str, NotInstalledError | PeerError]()
        sdk = stack.enter_context(Peer(Path(sys.executable), f"{_MODULES}.bare_sdk"))
        found.append(Rival(SDK, version("openai"), sdk, told))
        for name, module in FRAMEWORKS.items():
            try:
                peer = stack.enter_context(Peer(environment(module), f"{_MODULES}.{module}"))
                found.append(Rival(name, _release(name, module), peer, told))
            except (NotInstalledError, PeerError) as error:
                absent[name] = error
        yield found, absent


def _release(name: str, module: str) -> str:
    """Return the version that is pinned for a framework."""
    package = _PINNED.get(name, name)
    lines = (REQUIREMENTS / f"{module}.txt").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))
