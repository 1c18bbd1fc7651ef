"""What an agent is sent, in Python: rows are played forward, one after another, each changing what is sent so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_Before = tuple[list[tuple[str, int]], list[int]]
"""What was sent before a rewind, and the marks then."""

FOR_MODEL = ("user", "assistant", "tool_result", "mail")


@dataclass
class ModelAgent:
    """An agent with its own rows: (seq, kind, content)."""

    name: str
    parent: ModelAgent | None = None
    forked_at: int = 0
    clean: bool = False
    begins: tuple[str, int] | None = None
    """The first row that it inherits; None: all that its parent was sent."""
    rows: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    def add(self, kind: str, content: dict[str, Any]) -> int:
        self.rows.append((len(self.rows) + 1, kind, content))
        return len(self.rows)

    def sent(self, upto: int | None = None) -> list[tuple[str, int]]:
        """Return (name of the agent, seq) of what is sent after its rows up to this one."""
        return self._played(upto)[0]

    def marks(self) -> list[int]:
        """Return the seqs of the marks in force, the newest first."""
        return self._played()[1][::-1]

    def rewinds(self) -> int:
        """Return how many rewinds can be lifted, one after another."""
        return len(self._played()[2])

    def _played(self, upto: int | None = None) -> tuple[list[tuple[str, int]], list[int], list[_Before]]:
        """Return what is sent, the marks in force, and what each rewind that can be lifted took away."""
        now = inherited = self.parent.sent(self.forked_at) if self.parent and not self.clean else []
        if self.begins:
            now = inherited = inherited[inherited.index(self.begins) :]
        then: dict[int, list[tuple[str, int]]] = {0: inherited}
        marks: list[int] = []
        lifts: list[_Before] = []
        for seq, kind, content in self.rows[:upto]:
            event = content.get("event") if kind == "event" else None
            if kind in FOR_MODEL:
                now, lifts = [*now, (self.name, seq)], []
            elif kind == "summary":
                own = [(name, at) for name, at in now if name == self.name and self.rows[at - 1][1] != "summary"]
                now, lifts = [(self.name, seq), *(row for row in own if row[1] > content["upto"])], []
            elif kind == "mark":
                marks = [*marks, seq]
            elif event == "cleared":
                now, marks, lifts = [], [], []
            elif event == "rewound":
                lifts = [*lifts, (now, marks)]
                now, marks = then[content["keep"]], [mark for mark in marks if mark <= content["to"]]
            elif event == "restored":
                (now, marks), lifts = lifts[-1], lifts[:-1]
            then[seq] = now
        return now, marks, lifts
