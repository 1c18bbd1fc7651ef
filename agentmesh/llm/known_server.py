"""What is known of a provider's server and its models: as configured, as answers have shown, or as it says if asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.rows import Capability
from agentmesh.llm import constraint, listed, prices
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.port import CallFailed, Reply
from agentmesh.llm.preparing import Prepared
from agentmesh.llm.provider import Provider

_EMPTY_STREAMS = 2
"""Empty streams in a row, of answers that were whole without streaming, after which a model's answers come whole."""

List = Callable[[Cancel], Sequence[Mapping[str, Any]]]
"""Returns the server's list of models; raises CallFailed."""
Own = Callable[[str, Cancel], Any]
"""Returns a document that llama.cpp has beside its API, None if the server has none."""


class KnownServer:
    """The abilities of the models of one server; thread-safe."""

    def __init__(self, provider: Provider, capabilities: Capabilities, listing: List, own: Own) -> None:
        self._provider = provider
        self._capabilities = capabilities
        self._listing = listing
        self._own = own
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        """Models about which the server was asked."""
        self._renewed: set[str] = set()
        """Models about which the server was asked once more."""
        self._streams: dict[str, int] = {}
        """How often in a row a model's stream was empty although the same answer without streaming was not."""

    def of(self, model: str) -> Capability:
        """Return what the server has shown of a model."""
        return self._capabilities.of(self._provider, model)

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""
        known = self._provider.context_window or self.of(model).context_window
        return known or prices.context_window(self._provider, model)

    def slots(self, model: str) -> int | None:
        """Return how many conversations the server keeps and answers at once, or None if unknown."""
        return self._provider.slots or self.of(model).slots

    def learn_window(self, model: str, window: int | None) -> None:
        """Learn a context size that the server named in a refusal."""
        if listed.is_possible(window):
            self._learn(model, context_window=window)

    def learn_streams(self, model: str, *, is_streamed: bool) -> None:
        """Learn from an answer whether the model's streams lack answers: from two in a row that did."""
        with self._lock:
            empty = self._streams[model] = 0 if is_streamed else self._streams.get(model, 0) + 1
        if empty >= _EMPTY_STREAMS:
            self._learn(model, streams=False)

    def learn_from(self, prepared: Prepared, reply: Reply) -> None:
        """Learn from an answer whether the server caches, and whether it can be made to call a tool."""
        request = prepared.request
        if reply.usage.cached_tokens:
            self._learn(request.model, caches=True)
        if constraint.FORCED in prepared.features and not reply.tool_calls and reply.finish_reason == "stop":
            self._learn(request.model, forced_calls=constraint.after(request.settings))

    def find_out(self, model: str, cancel: Cancel, read: int) -> None:
        """Ask the server once about a model whose context size nobody knows; leave errors to later calls.

        ``read``: how many tokens the server counted in the request; 0 if it did not.
        """
        learned = self.of(model).context_window
        if learned is not None and read > learned and listed.is_possible(read):
            # The server was started with another window since; it has at least this one.
            self._learn(model, context_window=read)
            self.renew_window(model, cancel)
        elif self.context_window(model) is None and model not in self._asked:
            self._asked.add(model)
            self._ask_for_window(model, cancel)

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Ask the server again, once, for a context size that it was seen to have."""
        is_learned = self.of(model).context_window is not None
        if self._provider.context_window is None and is_learned and model not in self._renewed:
            self._renewed.add(model)
            self._ask_for_window(model, cancel)

    def _ask_for_window(self, model: str, cancel: Cancel) -> None:
        with contextlib.suppress(CallFailed):
            found = self._listing(cancel)
            window = listed.window_of(listed.windows(found), model)
            props = self._own("props", cancel) if listed.is_of_llama(found) else None
            self._learn(model, context_window=window or listed.slot_window(props), slots=listed.slots(props))

    def _learn(self, model: str, **found: Any) -> None:
        self._capabilities.learn(self._provider, model, **found)
