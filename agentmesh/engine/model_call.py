"""The model call of a step: it waits for its turn at the server, shows screens how it goes, and says what it used."""

from __future__ import annotations

import time
from functools import partial as bind
from typing import Any, Final

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.rows import Agent
from agentmesh.engine import call_progress, keeping, recording
from agentmesh.engine.conversation import Conversation
from agentmesh.engine.engine import Engine
from agentmesh.llm.port import ChatRequest, Reply
from agentmesh.store.call import Lease

_LONG: Final = 1.0
"""Seconds of waiting for a warm prefix or a slot after which limits are looked at again."""


class ModelCall:
    """One model call of an agent's step, with all its attempts."""

    def __init__(self, engine: Engine, agent: Agent, lease: Lease, conversation: Conversation, cancel: Cancel) -> None:
        self._engine = engine
        self._agent = agent
        self._lease = lease
        self._conversation = conversation
        self._cancel = cancel
        self._began = time.monotonic()
        self._is_over = False
        self._unbooked: Reply | None = None
        """The answer until ``usage`` has said what it used."""
        self._times = call_progress.TokenTimes()

    def complete(self, request: ChatRequest) -> Reply:
        """Return the model's answer; another agent may first read the same prefix, or use the server's slot.

        Raise CallCancelled or CallFailed, or another AgentmeshError if the model's name or its settings are wrong.
        """
        engine, agent = self._engine, self._agent
        came = time.monotonic()
        goes = engine.prefixes.wait(
            agent, self._conversation, self._cancel, lambda why: engine.feed.activity(agent.id, why)
        )
        self._began = time.monotonic()
        self._times.began = goes.began
        may_retry = bind(keeping.may_retry, engine.database, self._lease, self._agent.model)
        may_send = bind(keeping.may_send, engine.database, self._lease)
        after = self._conversation.last_seq
        try:
            with call_progress.watched(
                engine.feed, engine.observer, agent, after, self._times, may_retry, may_send
            ) as watch:
                if self._began - came >= _LONG:
                    watch.may_send()
                reply = self._unbooked = engine.model.complete(request, self._cancel, watch)
            goes.began()  # a server that does not stream has read it too
            engine.prefixes.saw(agent.model, reply.usage, self._until_first)
        finally:
            self._is_over = True
            goes.ended()
        return reply

    def usage(self, reply: Reply, error: str | None = None) -> dict[str, Any]:
        """Return what it used, and tell the observer; ``error`` is the kind of its failure. Once for each call."""
        self._unbooked = None
        used = recording.usage(reply, self._agent.model, time.monotonic() - self._began, self._until_first, error)
        self._engine.observer.asked(self._agent, used)
        return used

    def lost(self) -> dict[str, Any] | None:
        """Return what an answer used that a defect keeps from its rows; None if ``usage`` has said it."""
        return self.usage(self._unbooked, "bug") if self._unbooked else None

    @property
    def last_token(self) -> float | None:
        """When its newest token came (monotonic); None before the first of an attempt, and when the call is over."""
        return None if self._is_over else self._times.last

    @property
    def _until_first(self) -> float | None:
        """Seconds until the first token; None if there was none."""
        return None if self._times.first is None else self._times.first - self._began
