"""What an agent is sent, in Python: rows are played forward, one after another, each changing what is sent so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FOR_MODEL = ("user", "assistant", "tool_result", "mail")


@dataclass
class ModelAgent:
    """An agent with its own rows: (seq, kind, content)."""

    name: str
    parent: ModelAgent | None = None
    forked_at: int = 0
    clean: bool = False
    rows: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)

    def add(self, kind: str, content: dict[str, Any]) -> int:
        self.rows.append((len(self.rows) + 1, kind, content))
        return len(self.rows)

    def sent(self, upto: int | None = None) -> list[tuple[str, int]]:
        """Return (name of the agent, seq) of what is sent after its rows up to this one."""
        inherited = self.parent.sent(self.forked_at) if self.parent and not self.clean else []
        then: dict[int, list[tuple[str, int]]] = {0: inherited}
        now = inherited
        for seq, kind, content in self.rows[:upto]:
            if kind in FOR_MODEL:
                now = [*now, (self.name, seq)]
            elif kind == "summary":
                own = [(name, at) for name, at in now if name == self.name and self.rows[at - 1][1] != "summary"]
                now = [(self.name, seq), *(row for row in own if row[1] > content["upto"])]
            elif content.get("event") == "cleared":
                now = []
            elif content.get("event") == "rewound":
                now = then[content["keep"]]
            then[seq] = now
        return now

    def marks(self) -> list[int]:
        """Return the seqs of the marks in force, the newest first."""
        found: list[int] = []
        for seq, kind, content in self.rows:
            if kind == "mark":
                found.append(seq)
            elif content.get("event") == "cleared":
                found = []
            elif content.get("event") == "rewound":
                found = [mark for mark in found if mark <= content["to"]]
        return found[::-1]
