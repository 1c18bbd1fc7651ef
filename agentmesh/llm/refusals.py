"""What servers refuse in requests: learned for all calls of a model, or left out of the attempts of one call."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from agentmesh.llm import history, wording
from agentmesh.llm.failure import AttemptFailed
from agentmesh.llm.port import ChatRequest
from agentmesh.llm.request import Quirks

_MOST_TURNS = 6
"""Contradictory refusals of one call after which it fails. Where the gateway draws a server each time, 1 in 64 does."""


class Refusals:
    """What the servers of a provider were seen to refuse, for each model; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Quirks] = {}

    def of(self, model: str) -> Quirks:
        """Return what is refused in requests to a model."""
        return self._known.get(model, Quirks())

    def learn(self, model: str, failure: AttemptFailed) -> None:
        """Learn from a refusal. It replaces an earlier one that it contradicts."""
        with self._lock:
            self._known[model] = self.of(model).learn(failure.refused, failure.message)


@dataclass(slots=True)
class LeftOut:
    """Parts that the attempts of one call leave out because the server refuses them."""

    refusals: Refusals
    limit: bool = False
    """The caller's limit of the answer."""
    images: bool = False
    stream: bool = False
    _seen: set[str] = field(default_factory=set)
    """What was refused in the call."""
    _turns: int = 0
    """How many refusals contradicted an earlier one of the call."""

    def leave_out(self, request: ChatRequest, failure: AttemptFailed) -> str:
        """Leave the refused part out of the next attempt; return a note on it, empty if there is to be none."""
        if failure.kind == "bad_image":
            self.images = True
            return f"The images were left out: {failure.message}"
        if failure.refused:
            # This ends: a server can refuse only what was sent, and it is sent again only after a contradiction.
            return self._refused(request.model, failure)
        if not self.limit and _is_told_too_much(request, failure):
            self.limit = True
            return f"The server refuses a limit of {request.answer_tokens:,} tokens; it was left out."
        return ""

    def _refused(self, model: str, failure: AttemptFailed) -> str:
        refused = failure.refused
        self._seen.add(refused)
        if (opposite := history.OPPOSITES.get(refused)) in self._seen:
            return self._contradicted(model, failure, f"{opposite} and {refused}")
        self.refusals.learn(model, failure)
        if refused in history.NAMES:
            return f"The server refuses {refused}; earlier answers were sent in another form."
        return f"The server refuses {refused}; it was left out or renamed."

    def _contradicted(self, model: str, failure: AttemptFailed, both: str) -> str:
        """Ask again, because a gateway may give the call to another server.

        Every other time, ask in the form that was just refused: two servers that take turns would refuse each change.
        """
        self._turns += 1
        if self._turns == _MOST_TURNS:
            failure.message = f"{failure.message} The server contradicts itself: it refuses {both}."
            failure.hint = (
                "Different servers seem to answer for this model. Name one at the gateway, or choose another."
            )
            return ""
        if self._turns % 2 == 0:
            self.refusals.learn(model, failure)
        return f"The server contradicts itself: it refuses {both}; it was asked again."


def _is_told_too_much(request: ChatRequest, failure: AttemptFailed) -> bool:
    """Whether the server refuses the caller's limit because its own is lower."""
    is_refused = failure.kind in ("bad_request", "context") and wording.is_bound_too_large(failure.message)
    return request.answer_tokens is not None and is_refused
