"""Which channels this process wants to hear, and which ones PostgreSQL knows. It does no I/O and serves any thread.

Callers add and take back wishes, which are counted per channel. The listener's thread takes the differences in batches
and reports when a batch is committed. Then the callers that asked for its channels go on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from agentmesh.domain.errors import DatabaseError


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes that one command makes."""

    listen: frozenset[str]
    unlisten: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.listen or self.unlisten)


@dataclass(slots=True, eq=False)
class Ticket:
    """A caller's place in the queue for LISTEN."""

    channels: frozenset[str]
    settled: threading.Event = field(default_factory=threading.Event)
    refused: bool = False
    """Whether it was settled because nothing is listened to any more."""


class Subscriptions:
    """The wanted and the active channels of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: Counter[str] = Counter()
        self._active: set[str] = set()  # committed, and no UNLISTEN under way
        self._dirty: set[str] = set()  # channels in which the two may differ
        self._tickets: list[Ticket] = []
        self._closed = False

    def want(self, channels: Collection[str]) -> Ticket:
        """Ask for the channels once more; the ticket is settled when all of them are active."""
        ticket = Ticket(frozenset(channels))
        # Critical section: counts, differences and the ticket belong together.
        with self._lock:
            if self._closed:
                raise DatabaseError("The listener has stopped.")
            self._wanted.update(ticket.channels)
            if ticket.channels <= self._active:
                ticket.settled.set()
            else:
                self._dirty |= ticket.channels - self._active
                self._tickets.append(ticket)
        return ticket

    def unwant(self, channels: Collection[str]) -> bool:
        """Take back one wish per channel; return whether any channel is now wanted by nobody."""
        with self._lock:
            # Unknown channels are ignored: after a failed listen() the caller may still clean up.
            known = {channel for channel in channels if self._wanted[channel] > 0}
            self._wanted.subtract(known)
            freed = {channel for channel in known if self._wanted[channel] == 0}
            for channel in freed:
                del self._wanted[channel]
            self._dirty |= freed
            return bool(freed)

    def next_batch(self, limit: int) -> Batch:
        """Take up to ``limit`` differences; channels to be dropped count as inactive from now on."""
        with self._lock:
            taken = {self._dirty.pop() for _ in range(min(limit, len(self._dirty)))}
            wanted = {channel for channel in taken if channel in self._wanted}
            batch = Batch(frozenset(wanted - self._active), frozenset((taken - wanted) & self._active))
            self._active -= batch.unlisten
            return batch

    def committed(self, batch: Batch) -> None:
        """Record that PostgreSQL committed the batch, and settle the tickets that waited for it."""
        with self._lock:
            self._active |= batch.listen
            waiting = []
            for ticket in self._tickets:
                if ticket.channels <= self._active:
                    ticket.settled.set()
                else:
                    waiting.append(ticket)
            self._tickets = waiting

    def disconnected(self) -> None:
        """Record that nothing is active any more; everything wanted must be listened to again."""
        with self._lock:
            self._active.clear()
            self._dirty = set(self._wanted)

    def abandon(self, ticket: Ticket) -> None:
        """Give up waiting: remove the wish and the ticket."""
        with self._lock:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
        self.unwant(ticket.channels)

    def close(self) -> None:
        """Refuse every wish from now on, and those that are waiting."""
        with self._lock:
            self._closed = True
            tickets, self._tickets = self._tickets, []
        for ticket in tickets:
            ticket.refused = True
            ticket.settled.set()
