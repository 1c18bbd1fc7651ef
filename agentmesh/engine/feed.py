"""Tell screens about working agents: activities, live text and new steps, in batches. They read rows for the rest.

At most ten NOTIFYs are sent per second and process, whatever the rate of tokens and steps. PostgreSQL serializes
commits with a NOTIFY, and each wakes every listener.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from itertools import chain
from typing import NamedTuple

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died, Loop, log_death
from agentmesh.store import status
from agentmesh.store.tx import Database

LOG = logger(__name__)

_INTERVAL = 0.1
_ACTIVITY_EVERY = 3
"""One flush in this many also writes activities."""
_PAYLOAD = 7_900
"""Bytes of one NOTIFY; PostgreSQL takes 7,999."""
_KEY = len('"00000000-0000-4000-8000-000000000000":[1000000,1000000,""],')
"""Bytes that an agent takes in it besides its text."""
_STEPS = _PAYLOAD // len(" 00000000-0000-4000-8000-000000000000")
"""The number of agents with stored rows that one NOTIFY can name."""
_REPEATED = 4
"""Payloads of one flush that repeat earlier text: a long answer must not hold up the others."""
_SHORTEST = 18
"""Bytes of text below which an agent's piece is left out: its row comes anyway."""


class Message:
    """The text that a model writes in one call: pieces with their places, so that a screen notices a gap."""

    def __init__(self, feed: Feed, session: SessionId, agent: AgentId, after: int) -> None:
        self.session, self.agent = session, agent
        self._feed = feed
        self._after = after
        self._said = 0
        self._pieces: list[str] = []
        self.is_over = False
        self._whole: list[str] = []
        """The text taken so far; a screen that opens in the middle of an answer asks for it."""

    def text(self, piece: str) -> None:
        """Add a piece."""
        self._feed.say(self, piece)

    def void(self) -> None:
        """Take back the text so far: the call is made again."""
        self._feed.say(self, None)

    def end(self, *, failed: bool) -> None:
        """Forget the text, because the call is over and its row comes.

        If it failed, also drop the text that was not told yet, because the error has it.
        """
        self._feed.end(self, failed=failed)

    # Called by the feed, which holds its lock:

    def add(self, piece: str | None) -> None:
        """Add a piece; with None, begin again."""
        if piece is None:
            self._said, self._pieces, self._whole = 0, [], []
        else:
            self._pieces.append(piece)

    def take(self) -> AnswerPiece:
        """Return the text that has gathered, as one piece."""
        text, place = "".join(self._pieces), self._said
        self._said, self._pieces = place + len(text), []
        self._whole.append(text)
        return AnswerPiece(self._after, place, text)

    def taken(self, place: int) -> AnswerPiece:
        """Return the taken text from a place on, as one piece."""
        self._whole = ["".join(self._whole)]
        return AnswerPiece(self._after, place, self._whole[0][place:])


class AnswerPiece(NamedTuple):
    """A part of an answer in progress, as screens hear of it."""

    after: int
    """The newest own row of the agent when its model was asked: the answer's row has a higher seq."""
    place: int
    """How many characters of the answer came before it."""
    text: str


class CallOutput(NamedTuple):
    """The newest lines that a running call has written."""

    session: SessionId
    agent: AgentId
    seq: int
    ordinal: int
    text: str


class _Repeat:
    """An answer that a screen has missed the beginning of, and the length that the screen has received."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.place = 0


class Feed:
    """Collects what the process's agents do and publishes it in batches, on a thread of its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._dirty = threading.Event()
        self._stopping = threading.Event()
        self._activities: dict[AgentId, str] = {}
        self._messages: dict[AgentId, Message] = {}
        """Messages with text that has not been published."""
        self._streaming: dict[AgentId, Message] = {}
        """The answers in progress."""
        self._repeats: dict[tuple[AgentId, str], _Repeat] = {}
        """By agent and by the channel of the screen that asked."""
        self._outputs: dict[AgentId, CallOutput] = {}
        """Output of running calls that has not been published."""
        self._stepped: dict[SessionId, set[AgentId]] = defaultdict(set)
        """Agents whose new rows have not been published."""
        self._thread = Loop(self._run, "feed")

    def start(self, died: Died = log_death) -> None:
        """Begin to flush; ``died`` is called if an error ends the thread."""
        self._thread.died = died
        self._thread.start()

    def stop(self) -> None:
        """Flush once more and end; idempotent."""
        self._stopping.set()
        self._dirty.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def activity(self, agent: AgentId, words: str) -> None:
        """Publish what the agent is doing, in a few words."""
        with self._lock:
            is_first = agent not in self._activities
            self._activities[agent] = words
        if is_first:
            self._dirty.set()

    def output(self, output: CallOutput) -> None:
        """Show the newest output of a running call; it is published as rarely as activities."""
        with self._lock:
            is_first = not self._outputs
            self._outputs[output.agent] = output
        if is_first:
            self._dirty.set()

    def step(self, session: SessionId, agent: AgentId) -> None:
        """Publish that rows of the agent were stored by a commit that does not say so itself."""
        with self._lock:
            is_first = not self._stepped
            self._stepped[session].add(agent)
        if is_first:
            self._dirty.set()

    def message(self, session: SessionId, agent: AgentId, after: int) -> Message:
        """Return where a model call writes its stream; ``after`` is the newest own row in the request."""
        return Message(self, session, agent, after)

    def say(self, message: Message, piece: str | None) -> None:
        """Add a piece of an answer; with None, it begins again."""
        with self._lock:
            if message.is_over:
                return
            known = self._messages.get(message.agent)
            message.add(piece)
            if known is not message:  # false for most pieces, which come per token
                self._messages[message.agent] = self._streaming[message.agent] = message
            if piece is None:
                self._forget(message)  # every screen hears that it begins again
        if known is None:
            self._dirty.set()

    def end(self, message: Message, *, failed: bool) -> None:
        """Stop repeating an answer; if it failed, also drop the text that was not published yet."""
        with self._lock:
            message.is_over = True
            if failed and self._messages.get(message.agent) is message:
                del self._messages[message.agent]
            if self._streaming.get(message.agent) is message:
                del self._streaming[message.agent]
            self._forget(message)

    def repeat(self, agent: AgentId, channel: str) -> None:
        """Send a screen, on its own channel, the agent's answer so far, if one is in progress."""
        with self._lock:
            if message := self._streaming.get(agent):
                self._repeats[agent, channel] = _Repeat(message)
                self._dirty.set()

    def _forget(self, message: Message) -> None:
        self._repeats = {key: one for key, one in self._repeats.items() if one.message is not message}

    def _run(self) -> None:
        flushes = 0
        while not self._stopping.is_set():
            self._dirty.wait()
            self._dirty.clear()
            flushes += 1
            notifications = self._flush(with_activities=flushes % _ACTIVITY_EVERY == 1)
            self._stopping.wait(_INTERVAL * max(notifications, 1))
            with self._lock:
                waiting = bool(self._activities or self._repeats or self._outputs)
            if waiting:
                self._dirty.set()
        self._flush(with_activities=True)

    def _flush(self, *, with_activities: bool) -> int:
        """Publish everything that has gathered; return the number of NOTIFYs."""
        # Critical section: take everything that has gathered.
        with self._lock:
            pieces: dict[SessionId, dict[AgentId, AnswerPiece]] = defaultdict(dict)
            for agent, message in self._messages.items():
                pieces[message.session][agent] = message.take()
            self._messages = {}
            repeated = self._repeated()  # after the pieces were taken: the next ones go on where this ends
            stepped, self._stepped = self._stepped, defaultdict(set)
            activities = self._activities if with_activities else {}
            outputs: dict[SessionId, list[CallOutput]] = defaultdict(list)
            if with_activities:
                for output in self._outputs.values():
                    outputs[output.session].append(output)
                self._activities, self._outputs = {}, {}
        messages = [(status.session_channel(session), _payload(agents)) for session, agents in pieces.items()]
        messages += repeated
        messages += [(status.session_channel(session), _output_payload(outputs[session])) for session in outputs]
        messages += [
            (status.session_channel(session), hint) for session in stepped for hint in _steps(stepped[session])
        ]
        try:
            if activities:
                self._database.run(status.set_activities, activities, idempotent=True)
            if messages:
                self._database.run(status.publish, messages)
        except Exception as error:
            # Whatever it is, this thread must go on: it publishes for all agents of the process.
            silent = {*activities, *chain(*pieces.values()), *chain(*stepped.values())}
            is_known = isinstance(error, AgentmeshError)
            LOG.warning("screens were not told what %d agents do: %s", len(silent), error, exc_info=not is_known)
        return len(messages)

    def _repeated(self) -> list[tuple[str, str]]:
        """Return the next payloads for screens that asked, by channel; the lock is held."""
        found: list[tuple[str, str]] = []
        for (agent, channel), repeat in list(self._repeats.items()):
            left = repeat.message.taken(repeat.place)
            while left.text and len(found) < _REPEATED:
                piece = _oldest(left, _PAYLOAD - _KEY)
                found.append((channel, _live({str(agent): piece})))
                repeat.place += len(piece.text)
                left = AnswerPiece(left.after, repeat.place, left.text[len(piece.text) :])
            if not left.text:
                del self._repeats[agent, channel]
        return found


def _steps(agents: set[AgentId]) -> list[str]:
    """Return ``steps agent agent ...`` lines, as many as are needed."""
    ids = [str(agent) for agent in agents]
    return [f"steps {' '.join(ids[first : first + _STEPS])}" for first in range(0, len(ids), _STEPS)]


def _payload(agents: dict[AgentId, AnswerPiece]) -> str:
    """Return ``live {agent: [after, place, text]}``, each text cut to its newest part so that all fit."""
    most = _PAYLOAD // (_KEY + _SHORTEST)
    room = _PAYLOAD // min(len(agents), most) - _KEY
    shown = {str(agent): _newest(piece, room) for agent, piece in list(agents.items())[:most]}
    return _live(shown)


def _output_payload(outputs: list[CallOutput]) -> str:
    """Return ``output {agent: [seq, ordinal, text]}``, each text cut to its last part so that all fit."""
    most = _PAYLOAD // (_KEY + _SHORTEST)
    room = _PAYLOAD // min(len(outputs), most) - _KEY
    shown = {}
    for one in outputs[:most]:
        shown[str(one.agent)] = one.seq, one.ordinal, _newest(AnswerPiece(0, 0, one.text), room).text
    return status.OUTPUT + json.dumps(shown, separators=(",", ":"))


def _live(shown: dict[str, AnswerPiece]) -> str:
    return "live " + json.dumps(shown, separators=(",", ":"))


def _oldest(piece: AnswerPiece, room: int) -> AnswerPiece:
    """Return the beginning of a piece, with text of at most ``room`` bytes as JSON."""
    text = piece.text[:room]
    while len(json.dumps(text)) - 2 > room:
        text = text[: len(text) * 2 // 3]
    return AnswerPiece(piece.after, piece.place, text)


def _newest(piece: AnswerPiece, room: int) -> AnswerPiece:
    """Return the end of a piece, with text of at most ``room`` bytes as JSON."""
    text = piece.text[-room:]
    while len(json.dumps(text)) - 2 > room:
        text = text[-(len(text) * 2 // 3) :] if len(text) > 1 else ""
    return AnswerPiece(piece.after, piece.place + len(piece.text) - len(text), text)
