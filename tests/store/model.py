"""What the verbs mean, in Python: a mesh without a database, for comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

USER = "user"


@dataclass
class Mail:
    """One message; ``sender`` is a name."""

    id: int
    sender: str
    body: str
    automatic: bool = False
    failed: bool = False


@dataclass(eq=False)
class Call:
    """The one call of an agent that has no result yet; a wait's is not one of them."""

    status: str
    """asking, delegated, open."""
    seq: int


@dataclass(eq=False)
class Task:
    """What a sub-agent works on."""

    parent: ModelAgent
    call: Call


@dataclass(eq=False)
class ModelAgent:
    """An agent and its mailbox."""

    name: str
    parent: ModelAgent | None
    status: str = "idle"
    unread: list[Mail] = field(default_factory=list)
    held: int = 0
    owner: int | None = None
    """Which worker runs it, by number."""
    fresh: bool = False
    """Its turn has begun, but its mail is not read."""
    interrupted: bool = False
    stopped: bool = False
    """A person has interrupted it since its last turn began."""
    owes: bool = False
    waits_for: list[str] | None = None
    """Names; empty: anyone; None: it waits for nobody."""
    ended: tuple[str, str] = ("output", "")
    call: Call | None = None
    task: Task | None = None
    reaped: bool = False

    @property
    def is_working(self) -> bool:
        """Whether it is in the middle of a turn: its mail is read, and it is inside no wait."""
        return self.owner is not None and not self.fresh and self.waits_for is None

    def from_(self, sender: str, *, automatic: bool = False) -> list[Mail]:
        return [mail for mail in self.unread if mail.sender == sender and mail.automatic is automatic]


class Model:
    """Agents by name, the root first."""

    def __init__(self) -> None:
        self.agents = {"root": ModelAgent("root", None)}
        self.requests: dict[UUID, tuple[ModelAgent, Call]] = {}
        """All that were ever made."""
        self._ids = 0

    def fork(self, parent: str, name: str, prompt: str | None, sender: str) -> None:
        child = self.agents[name] = ModelAgent(name, self.agents[parent])
        if prompt is not None:
            self.deliver(child, sender, prompt)

    def deliver(self, to: ModelAgent, sender: str, body: str, *, automatic: bool = False, failed: bool = False) -> None:
        self._ids += 1
        wakes = to.status == "idle"
        if automatic and to.stopped and self.agents[sender].stopped and not any(m.id > to.held for m in to.unread):
            to.held, wakes = self._ids, False
        to.unread.append(Mail(self._ids, sender, body, automatic, failed))
        if wakes:
            to.status, to.fresh, to.interrupted, to.stopped = "running", True, False, False

    def send(self, sender: str, to: str, body: str) -> None:
        self.deliver(self.agents[to], sender, body)
        if sender != USER:
            self.agents[sender].owes = False

    def subtree(self, name: str) -> list[ModelAgent]:
        top = self.agents[name]
        return [top] + [
            each for child in self.agents.values() if child.parent is top for each in self.subtree(child.name)
        ]

    def kill(self, name: str) -> set[str]:
        dying = [agent for agent in self.subtree(name) if agent.status != "dead"]
        for agent in dying:
            agent.status, agent.owner, agent.waits_for = "dead", None, None
            self.end_task(agent)
            agent.call = None
        return {agent.name for agent in dying}

    def reap(self) -> int:
        hidden = [agent for agent in self.agents.values() if agent.status == "dead" and not agent.reaped]
        for agent in hidden:
            agent.reaped = True
        return len(hidden)

    def claim(self, worker: int) -> set[str]:
        free = [agent for agent in self.agents.values() if agent.status == "running" and agent.owner is None]
        for agent in free:
            agent.owner = worker
        return {agent.name for agent in free}

    def release(self, worker: int) -> None:
        for agent in self.agents.values():
            agent.owner = None if agent.owner == worker else agent.owner

    def read(self, me: ModelAgent, mails: list[Mail]) -> None:
        me.unread = [mail for mail in me.unread if mail not in mails]
        me.owes = me.owes or any(me.parent and m.sender == me.parent.name and not m.automatic for m in mails)

    def begin(self, me: ModelAgent) -> list[str]:
        due = [mail for mail in me.unread if me.fresh or mail.sender == USER]
        me.fresh = False
        self.read(me, due)
        return [mail.body for mail in due]

    def end_turn(self, me: ModelAgent, text: str, *, failed: bool) -> None:
        me.ended = ("error" if failed else "output", text)
        me.call = None
        if me.owes and not me.task and me.parent and me.parent.status != "dead":
            me.owes = False
            self.deliver(me.parent, me.name, text, automatic=True, failed=failed)
        me.interrupted, me.waits_for = False, None
        if any(mail.id > me.held for mail in me.unread):
            me.stopped = False
            self.read(me, list(me.unread))
        else:
            me.status, me.owner, me.fresh = "idle", None, False
            if me.task:
                me.owes = False
                self.end_task(me)

    def interrupt(self, me: ModelAgent) -> bool:
        """Interrupt an agent, and first those that work for it."""
        for helper in reversed(self.helpers(me)):
            self.interrupt_one(helper)
        return self.interrupt_one(me)

    def interrupt_one(self, me: ModelAgent) -> bool:
        me.stopped = True
        if me.status != "running":
            return False
        if not me.interrupted:
            me.interrupted = True
            me.held = max([me.held, *(mail.id for mail in me.unread)])
        if me.owner is None:
            self.stop(me)
        return True

    def stop(self, me: ModelAgent) -> None:
        if me.waits_for is not None:
            self.take(me, me.waits_for, "interrupted")
        self.end_turn(me, "interrupted by the user", failed=True)

    # A person and sub-agents

    def ask(self, me: ModelAgent, request: UUID, call: Call) -> None:
        me.call = call
        self.requests[request] = (me, call)

    def answer(self, request: UUID, *, yes: bool) -> bool:
        """Return whether the request still waited for this."""
        me, call = self.requests[request]
        if me.call is not call or call.status != "asking":
            return False
        call.status = "open"
        if not yes:
            me.call = None
        return True

    def give_task(self, me: ModelAgent, name: str, prompt: str, call: Call) -> None:
        child = self.agents[name] = ModelAgent(name, me)
        me.call, child.task = call, Task(me, call)
        self.deliver(child, me.name, prompt)

    def end_task(self, child: ModelAgent) -> None:
        """Give the call of a sub-agent's parent its result, if it still waits for that."""
        if child.task and child.task.parent.call is child.task.call:
            child.task.parent.call = None
        child.task = None

    def helpers(self, me: ModelAgent) -> list[ModelAgent]:
        found = [agent for agent in self.agents.values() if agent.task and agent.task.parent is me]
        return found + [each for agent in found for each in self.helpers(agent)]

    # Waits

    def unmet(self, me: ModelAgent, names: list[str]) -> list[str]:
        return [name for name in names if self.agents[name].status == "running" and not me.from_(name)]

    def circle(self, me: ModelAgent, names: list[str]) -> bool:
        reached: list[str] = self.unmet(me, names)
        for name in reached:
            agent = self.agents[name]
            if agent is me:
                return True
            met_by = self.unmet(agent, agent.waits_for or []) + [a.name for a in self.helpers(agent)]
            reached += [x for x in met_by if x not in reached]
        return False

    def take(self, me: ModelAgent, names: list[str], final: str | None) -> dict[str, Any] | None:
        """Return the result of the wait if it ends now, in the shape of the tool but with names only."""
        user = [] if final == "interrupted" else me.from_(USER)[:1]
        entries, taken, met = self._listed(me, names) if names else self._anyone(me)
        if not user and not met and final is None:
            return None
        me.waits_for = None
        self.read(me, taken + user)
        outcome = "interrupted" if final == "interrupted" else "user" if user else "complete" if met else final
        return {"outcome": outcome, "results": entries + [{"name": USER, "message": mail.body} for mail in user]}

    def _listed(self, me: ModelAgent, names: list[str]) -> tuple[list[dict[str, Any]], list[Mail], bool]:
        entries, taken = [], []
        for name in names:
            agent, mails, reports = self.agents[name], me.from_(name), me.from_(name, automatic=True)
            entry: dict[str, Any] = {"name": name, "status": "received" if mails else agent.status}
            newest_first = [mail.body for mail in reversed(reports)]
            if mails:
                entry |= {"message": mails[0].body}
                entry |= {"more": len(mails) - 1} if len(mails) > 1 else {}
                entry |= {"earlier_output": newest_first} if reports else {}
            elif agent.status != "running" and reports:
                entry["error" if reports[-1].failed else "output"] = newest_first[0]
                entry |= {"earlier_output": newest_first[1:]} if len(reports) > 1 else {}
            elif agent.status == "idle":
                entry[agent.ended[0]] = agent.ended[1]
            if mails or agent.status != "running":
                taken += reports + mails[:1]
            entries.append(entry)
        return entries, taken, not self.unmet(me, names)

    def _anyone(self, me: ModelAgent) -> tuple[list[dict[str, Any]], list[Mail], bool]:
        mails = [mail for mail in me.unread if mail.sender != USER]
        if not mails:
            return [], [], False
        first = mails[0]
        key = "message" if not first.automatic else "error" if first.failed else "output"
        status = self.agents[first.sender].status if first.automatic else "received"
        entry = {"name": first.sender, "status": status, key: first.body}
        return [entry | ({"more": len(mails) - 1} if len(mails) > 1 else {})], [first], True
