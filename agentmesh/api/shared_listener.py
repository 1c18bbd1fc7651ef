"""One LISTEN connection for everybody in a process who follows sessions, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmesh.domain.errors import UsageError

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.store.listener import Listener


class SharedListener:
    """Gives listeners that share one connection, made when the first of them starts; thread-safe."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._lock = threading.Lock()
        self._shares: frozenset[Subscription] = frozenset()
        self._listener: Listener | None = None
        self.closed = False
        """Whether nothing is heard any more: who waits should look at this when it is woken."""

    def listener(self, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None], /) -> Subscription:
        """Return a listener; its callbacks must be quick."""
        return Subscription(self, on_notify, on_reconnect)

    def close(self) -> None:
        """Wake everybody and end the connection; idempotent."""
        with self._lock:
            self.closed = True
            listener, self._listener = self._listener, None
        self._everybody()
        if listener:
            listener.stop()

    def join(self, share: Subscription) -> None:
        """Let a share hear its channels from now on."""
        with self._lock:
            if self.closed:
                raise UsageError("the mesh is closed", hint="Open it again: agentmesh.open().")
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
                self._shares -= {share}  # no leave: a listen that failed has left nothing to take back
            raise

    def leave(self, share: Subscription) -> None:
        """Let it hear nothing more."""
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
        """Hear these, once started."""
        self.channels += channels

    def start(self) -> None:
        """Begin; raise UsageError when the mesh is closed, and what a connection may fail with."""
        self._hearing.join(self)

    def stop(self) -> None:
        """End; idempotent."""
        self._hearing.leave(self)
