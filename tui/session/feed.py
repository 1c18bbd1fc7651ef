"""Reads a session for the screen: one LISTEN connection, and one thread that posts changes to the app.

A notification is a hint: it says what to read. A tick reads without one. The feed posts the rows and live text of an
agent in the order of their hints, so that a finished answer replaces the streamed text.
The feed reads rows before the board and posts both together, so every agent mentioned in a row is already on the board.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import AgentmeshError, SessionMoved, UnknownAgent, UnknownRequest
from agentmesh.domain.log import logger
from agentmesh.store import person, requests, sessions
from agentmesh.store.status import ask_for_text, screen_channel, session_channel
from agentmesh.tui.session.hints import HintBatch, Hints
from agentmesh.tui.session.messages import (
    BoardChanged,
    LinkChanged,
    Missed,
    Moved,
    Noticed,
    OutputShown,
    RequestSettled,
)
from agentmesh.tui.session.reading import Followed, read_board
from agentmesh.tui.session.watching import Watched, Watching
from agentmesh.tui.session.worker_check import WorkerCheck, sentence

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.store.listener import Listener
    from agentmesh.tui.session.schema_watch import SchemaWatch
    from agentmesh.tui.session.state import Board

LOG = logger(__name__)

_PACE = 0.1
"""Least seconds between two reads: no screen needs more than ten a second."""
_TICK = 2.0
_BUSY_TICK = 1.0
"""Most seconds between two reads. The second is for while agents run: nobody notifies of their activities."""
_FIRST = 0.05
"""Seconds to wait for the screen to ask for the first conversation."""
_AGAIN = 1.0
"""Seconds after a failure until the next attempt."""
_STOP_SECONDS = 2.0


class Feed:
    """Reads one session. All methods return at once, so the app's loop may call them."""

    def __init__(
        self,
        mesh: Mesh,
        session: Session,
        post: Callable[[Message], Any],
        schema: SchemaWatch,
        board: Board | None = None,
        databases: Databases | None = None,
    ) -> None:
        """``post`` is ``app.post_message``; it takes every message of ``session.messages``.

        ``board`` is a board that the screen shows already; the feed then begins without reading one.
        ``databases`` are all of them, if there are several.
        """
        self._mesh = mesh
        self._session = session
        self._post = post
        self._channel = screen_channel()
        self._hints = Hints(self._channel)
        self._requests: deque[Callable[[], None]] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
        self._worker_check = WorkerCheck(mesh, session)
        self._schema = schema
        # Used by the thread only:
        self._listener: Listener | None = None
        self._followed: dict[AgentId, Followed] = {}
        self._outbox: list[Message] = []
        """Messages with rows, to be posted with the board: a key pressed between the two would find no agent."""
        self._sought: AgentId | None = None
        self._databases = databases
        self._watching = Watching(mesh, post, databases)
        self._board = board
        self._posted_trouble: str | None = None

    def start(self) -> None:
        """Begin. The first message is a BoardChanged, or a LinkChanged that says why the board cannot be read.

        From now on the session is attended, so agents may ask.
        """
        self._hints.everything()
        self._thread.start()

    def stop(self) -> None:
        """End the threads and the connection; idempotent. (The one call that may take a moment.)"""
        self._stopping.set()
        self._hints.wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    def follow(self, agent: AgentId) -> None:
        """Post the agent's newest rows (RowsArrived with first=True), then appended rows, and its live text.

        Following the same agent again posts nothing.
        """
        self._request(lambda: self._follow(agent))

    def unfollow(self, agent: AgentId) -> None:
        """Post no more of the agent's rows."""
        self._request(lambda: self._unfollow(agent))

    def seek(self, agent: AgentId) -> None:
        """Put the agent on the next board, even if the session is too large to show all agents."""
        self._request(lambda: self._seek(agent))

    def older(self, agent: AgentId, before_seq: int) -> None:
        """Post OlderRows with the agent's rows right before this seq."""
        self._request(lambda: self._older(agent, before_seq))

    def see(self, agent: AgentId) -> None:
        """Note that a person has looked at the end of the agent's last turn."""
        self._request(lambda: self._see(agent))

    def watch(self, watched: Watched) -> None:
        """Post DetailsRead of these agents with every board, and LinesStreamed as they write."""
        self._request(lambda: self._watch(watched))

    def _request(self, request: Callable[[], None]) -> None:
        self._requests.append(request)
        self._hints.wake.set()

    # The thread "screen" runs everything from here on.

    def _run(self) -> None:
        try:
            self._attempt(self._begin)
            pace_until = tick_at = time.monotonic() + _PACE  # first let the screen be painted
            while not self._stopping.is_set():
                until = pace_until if self._hints.pending else tick_at
                self._hints.wake.wait(max(until - time.monotonic(), 0.0))
                self._hints.wake.clear()
                if self._stopping.is_set() or not self._attempt(self._serve):
                    continue
                now = time.monotonic()
                is_tick = now >= tick_at
                if is_tick or (self._hints.pending and now >= pace_until):
                    self._attempt(partial(self._look, is_tick))
                    now = time.monotonic()
                    pace_until = now + _PACE
                    next_tick = now + (_BUSY_TICK if self._is_busy else _TICK)
                    # Hints, such as streamed text, put off no tick: only a tick reads changes that nobody notifies of.
                    tick_at = next_tick if is_tick else min(tick_at, next_tick)
        finally:
            if self._listener:
                self._listener.stop()

    def _begin(self) -> None:
        """Show the session, then wait for the first request of the screen. Listening begins later, with a full read.

        Opening the LISTEN connection keeps the interpreter busy for 5 ms, in which the screen could not be painted.
        Only live text of these milliseconds is lost, like that before the start.
        """
        if self._board is None:
            self._show(self._read_board())
        self._hints.wake.clear()  # it was set to begin
        if not self._requests:
            self._hints.wake.wait(_FIRST)

    def _attempt(self, step: Callable[[], object]) -> bool:
        """Take a step. If it fails, say why, mark everything as to be read again, and return False."""
        try:
            step()
        except AgentmeshError as error:
            if isinstance(error, SessionMoved) and self._find_moved():
                return False
            self._post_trouble(sentence(error))
        except Exception:
            LOG.exception("the screen of session %s could not be read", self._session.id)
            self._post_trouble("the screen could not be read: see the log")
        else:
            return True
        self._stopping.wait(_AGAIN)
        self._hints.everything()
        return False

    def _find_moved(self) -> bool:
        """Find the session in the database that it has moved to, and end with word of it; False if it is not there."""
        if self._databases is None:
            return False
        try:
            mesh = self._databases.of_session(str(self._session.id))
            session = mesh.database.run(sessions.get, self._session.id, idempotent=True)
        except AgentmeshError:
            return False  # it has left, and not arrived: or no configured database has it
        self._post(Moved(mesh, session))
        self._stopping.set()
        return True

    def _serve(self) -> None:
        """Carry out the app's requests in order; a request that fails stays in the queue."""
        while self._requests:
            self._requests[0]()
            self._requests.popleft()

    def _look(self, is_tick: bool) -> None:
        """Read the things that the hints name, at a tick everything, and post them."""
        listener = self._listening()
        batch = self._hints.take()
        if listener.failed:
            self._post_trouble(sentence(listener.failed))
            return  # the listener says when it is back, and then everything is read
        everything = batch.everything or is_tick
        if everything:
            self._schema.look()
        board = None
        try:
            self._read_followed(batch, catch_up=everything)
            if batch.board or everything:
                board = self._read_board()
        finally:
            self._flush()
        self._watching.stream(batch.streams)
        if board:
            self._show(board)
        if board or batch.details:
            self._watching.read(is_tick)
        if board and everything:
            self._post_trouble(self._worker_check.check(board))

    def _read_followed(self, batch: HintBatch, *, catch_up: bool) -> None:
        """Read the news of the agents whose rows are shown into the outbox."""
        for agent, followed in self._followed.items():
            parts = batch.streams.get(agent, [])
            if parts or catch_up:
                followed.update(parts, catch_up=catch_up, anew=batch.everything)
            self._ask_for_text(agent, followed)
            if output := batch.outputs.get(agent):
                self._outbox.append(OutputShown(agent, output.key, output.text))

    def _ask_for_text(self, agent: AgentId, followed: Followed) -> None:
        """Ask for the beginning of an answer in progress that this screen has not seen."""
        face = self._board.get(agent) if self._board else None
        if followed.is_to_ask(may_stream=face is None or face.is_running):
            self._mesh.database.run(ask_for_text, agent, self._channel, idempotent=True)

    def _listening(self) -> Listener:
        """Return the listener. The first call starts it and marks the session as attended; it raises why that fails."""
        if self._listener is None:
            self._mesh.database.run(requests.set_attended, self._session.id, True, idempotent=True)
            listener = self._mesh.listener(self._hints.receive, self._hints.everything)
            listener.signals.lost = partial(self._lost, listener)
            listener.listen(session_channel(self._session.id), self._channel)
            listener.start()
            self._listener = listener
        return self._listener

    def _lost(self, listener: Listener) -> None:
        """Say at once that the connection is lost: a read may now hang for a while. (Runs in the listener's thread.)"""
        if listener.failed and self._listener is listener:
            self._post_trouble(sentence(listener.failed))

    def _read_board(self) -> Board:
        wanted = {*self._followed, *([self._sought] if self._sought else [])}
        return read_board(self._mesh.database, self._session.id, wanted)

    def _flush(self) -> None:
        """Post the rows and live text that were read."""
        for message in self._outbox:
            self._post(message)
        self._outbox.clear()

    def _show(self, board: Board) -> None:
        """Post a board, and its differences from the one before."""
        before, self._board = self._board, board
        self._post(BoardChanged(board))
        if before:
            from agentmesh.tui.session.notices import notices  # a first board has no notices

            for notice in notices(before, board):
                self._post(Noticed(notice.agent_id, notice.text, notice.severity))
            self._post_settled(before, board)
        if self._sought and self._sought not in board.faces:
            from agentmesh.store import agents

            missed, self._sought = self._sought, None
            with suppress(UnknownAgent):  # its session was deleted
                self._post(Missed(missed, self._mesh.database.run(agents.get, missed, idempotent=True).name))

    def _post_settled(self, before: Board, now: Board) -> None:
        """Post each request that no longer waits: somebody answered it, or its turn ended."""
        waiting = {request.id for request in now.requests}
        for request in before.requests:
            if request.id not in waiting:
                with suppress(UnknownRequest):  # its session was deleted
                    settled = self._mesh.database.run(requests.resolve, str(request.id), idempotent=True)
                    self._post(RequestSettled(settled))

    @property
    def root_model(self) -> str:
        """The model of the root on the newest board; empty before the first."""
        return self._board.root.view.model if self._board else ""

    @property
    def _is_busy(self) -> bool:
        return self._board is not None and bool(self._board.running)

    def _follow(self, agent: AgentId) -> None:
        if agent not in self._followed:
            followed = Followed(self._mesh.database, agent, self._outbox.append)
            followed.first()
            self._flush()
            self._followed[agent] = followed
            if self._listener:  # else the first look asks
                self._ask_for_text(agent, followed)
            if self._board and not self._board.is_whole:
                self._hints.board()  # its neighbours may not be on the board yet

    def _seek(self, agent: AgentId) -> None:
        self._sought = agent
        self._hints.board()

    def _see(self, agent: AgentId) -> None:
        self._mesh.database.run(person.see, agent, idempotent=True)
        self._hints.board()

    def _watch(self, watched: Watched) -> None:
        self._watching.watch(watched)
        self._hints.details()

    def _unfollow(self, agent: AgentId) -> None:
        self._followed.pop(agent, None)

    def _older(self, agent: AgentId, before_seq: int) -> None:
        Followed(self._mesh.database, agent, self._post).older(before_seq)

    def _post_trouble(self, trouble: str | None) -> None:
        if trouble != self._posted_trouble:
            self._posted_trouble = trouble
            self._post(LinkChanged(trouble))
