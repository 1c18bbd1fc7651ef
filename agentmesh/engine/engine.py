"""Everything needed to run agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentmesh.engine.feed import Feed
from agentmesh.engine.images import Images
from agentmesh.engine.messages import Reword
from agentmesh.engine.observer import Observer
from agentmesh.engine.prefixes import Prefixes
from agentmesh.engine.settings import SharedSettings
from agentmesh.engine.tool import Gate, Tool
from agentmesh.llm.port import ChatModel
from agentmesh.store.tx import Database
from agentmesh.workspace.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Engine:
    """Database, model and tools, and how they are used; shared by all agents of a process."""

    database: Database
    model: ChatModel
    tools: Mapping[str, Tool]
    gate: Gate
    feed: Feed
    output_limit: Callable[[Path], int] = lambda _workdir: 64 * 1024
    """Bytes of a tool's output that a model sees, by the working directory of its session."""
    task_silence: Callable[[Path], float] = lambda _workdir: 120.0
    """Seconds without a token, after the first one, that end a sub-agent's task; by the same directory."""
    compact_at: float = 0.8
    """Share of a model's window that a request may take before older rows become a summary."""
    foreign: Callable[[Mapping[str, Any]], Tool | None] = lambda _definition: None
    """Makes the tool for a definition in an agent's settings that is not in ``tools``; None if it cannot."""
    rewording: Callable[[Sequence[Mapping[str, Any]]], Reword | None] = lambda _told: None
    """Returns how results are written for an agent that was told these tools; None if as they are stored."""
    observer: Observer = field(default_factory=Observer)
    """Is told what agents do."""
    workspaces: Workspaces | None = None
    """Own trees and snapshots; None: agents work in the directories of their sessions, and nothing is kept."""
    prefix_gate: int = 0
    """Tokens of an inherited prefix that one agent lets the server read before others ask; 0: all ask at once."""
    settings: SharedSettings = field(init=False)
    images: Images = field(init=False)
    prefixes: Prefixes = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", SharedSettings(self.database))
        object.__setattr__(self, "images", Images(self.database, self.model))
        object.__setattr__(self, "prefixes", Prefixes(self.database, self.prefix_gate, slots=self.model.slots))
