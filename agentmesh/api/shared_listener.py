"""One LISTEN connection for all readers in a process that follow sessions, each in a thread of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmesh.domain.errors import UsageError
from agentmesh.store.tx import require_process

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.store.listener import Listener


class SharedListener:
    """Makes listeners that share one connection; the first one that starts opens it. Thread-safe."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._shares: frozenset[Subscription] = frozenset()
        self._listener: Listener | None = None
        self.closed = False
        """Whether no more notifications arrive: a waiting reader should check this when it wakes up."""

    def listener(self, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None], /) -> Subscription:
        """Return a listener; its callbacks must be quick."""
        return Subscription(self, on_notify, on_reconnect)

    def close(self) -> None:
        """Wake all readers and close the connection; idempotent."""
        with self._lock:
            self.closed = True
            listener, self._listener = self._listener, None
        self._everybody()
        if listener:
            listener.stop()

    def require_open(self) -> None:
        """Raise UsageError if the mesh is closed."""
        if self.closed:
            raise UsageError("the mesh is closed", hint="Open it again: agentmesh.open().")

    def join(self, share: Subscription) -> None:
        """Deliver the channels of a share to it from now on; raise UsageError in a forked process."""
        require_process(self._process)  # before the lock, which a thread of the parent may have held at the fork
        with self._lock:
            self.require_open()
            if self._listener is None:
                listener = self._mesh.listener(self._heard, self._everybody)
                listener.start()
                self._listener = listener
            listener = self._listener
            self._shares |= {share}
        try:
            listener.listen(*share.channels)
        except BaseException:
            with self._lock:
                self._shares -= {share}  # no leave: a failed listen has nothing to undo
            raise

    def leave(self, share: Subscription) -> None:
        """Deliver nothing more to it."""
        with self._lock:
            was_there, listener = share in self._shares, self._listener
            self._shares -= {share}
        if was_there and listener:
            listener.unlisten(*share.channels)

    def _heard(self, channel: str, payload: str) -> None:
        for share in self._shares:
            if channel in share.channels:
                share.on_notify(channel, payload)

    def _everybody(self) -> None:
        for share in self._shares:
            share.on_reconnect()


class Subscription:
    """A listener on the shared connection."""

    def __init__(
        self, hearing: SharedListener, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None]
    ) -> None:
        self._hearing = hearing
        self.on_notify = on_notify
        self.on_reconnect = on_reconnect
        self.channels: tuple[str, ...] = ()

    def listen(self, *channels: str) -> None:
        """Listen on these channels, once started."""
        self.channels += channels

    def start(self) -> None:
        """Begin; raise UsageError if the mesh is closed, or a connection's errors."""
        self._hearing.join(self)

    def stop(self) -> None:
        """End; idempotent."""
        self._hearing.leave(self)
