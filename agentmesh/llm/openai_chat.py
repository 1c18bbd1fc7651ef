"""A ChatModel for any server that speaks Chat Completions: one provider, streamed, retried, cancellable.

openai is imported by ``warm`` or the first call (half a second), never with this module.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from dataclasses import dataclass, replace
from functools import partial as bind
from typing import TYPE_CHECKING

from agentmesh.domain.cancel import Cancel
from agentmesh.llm import prices, textcalls
from agentmesh.llm.assemble import Assembly, ErrorInStream
from agentmesh.llm.exchange import Exchange
from agentmesh.llm.failure import Answer, AttemptFailed, explain
from agentmesh.llm.pauses import Gate, Pass, Pauses, Visit
from agentmesh.llm.port import CallCancelled, CallFailed, ChatRequest, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.reading import Reader
from agentmesh.llm.request import Quirks, call_ids, encode, parameters
from agentmesh.llm.retry import RetryPolicy, Tries
from agentmesh.llm.usage import estimate

if TYPE_CHECKING:
    from agentmesh.llm.wire import Wire

_MODELS_TIMEOUT = 5.0
_NAMES_IN_ADVICE = 5


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request as it goes over the wire."""

    request: ChatRequest
    sent: tuple[str, ...]
    """Names of its parameters."""
    body: bytes


class OpenAIChat:
    """One provider's models; thread-safe."""

    def __init__(self, provider: Provider, policy: RetryPolicy | None = None, pauses: Pauses | None = None) -> None:
        """``pauses`` are shared with other clients; by default it has its own."""
        self.provider = provider
        self._policy = policy or RetryPolicy()
        self._pauses = pauses or Pauses(self._policy)
        self._lock = threading.Lock()
        self._wire: Wire | None = None
        self._quirks: dict[str, Quirks] = {}
        self._windows: dict[str, int] = {}

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Answer; raise CallCancelled when ``cancel`` is set, CallFailed when it fails for good."""
        gate = self._pauses.gate(self.provider.name, request.model)
        visit, tries = Visit(cancel, watch), Tries(self._policy)
        notes: list[str] = []
        while (entered := self._enter(gate, visit)) is not None:
            watch.sent()
            prepared = self._prepare(request)
            assembly = Assembly(watch)
            assembly.notes.extend(notes)
            try:
                with entered:
                    self._attempt(prepared, assembly, cancel, entered)
                    entered.answered()
                return self._whole(prepared, assembly)
            except AttemptFailed as caught:
                failure = caught
            partial = self._partial(prepared, assembly)
            if cancel.is_set():
                raise CallCancelled(partial or Reply(finish_reason="cut"))
            if failure.refused and partial is None:
                # It ends: only a parameter that was sent can be refused, and it is not sent again.
                self._learn(request.model, failure)
                notes.append(f"The server refuses the parameter {failure.refused}; it was left out or renamed.")
            elif failure.is_load:
                self._slow_down(gate, entered, failure, visit, partial)
            elif (pause := tries.pause(failure)) is not None:
                watch.retry(pause, failure.message)
                cancel.wait(pause)
            elif failure.kind == "wordless":
                return self._whole(prepared, assembly)
            else:
                raise self._final(failure, request.model, partial, cancel)
        raise CallCancelled(Reply(finish_reason="cut"))

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None where unknown."""
        return self.provider.context_window or self._windows.get(model) or prices.context_window(self.provider, model)

    def models(self, cancel: Cancel | None = None, seconds: float = _MODELS_TIMEOUT) -> tuple[str, ...]:
        """Return the names of the models that the server lists; raise CallFailed."""
        try:
            with Exchange(cancel or Cancel(), seconds):
                return self._open().models()
        except AttemptFailed as failure:
            raise failure.final(None) from None

    def warm(self) -> None:
        """Import and open what the first call would; what is wrong with the provider is told by that call."""
        with contextlib.suppress(AttemptFailed):
            self._open()
        self.context_window("")  # imports the tables of prices

    def close(self) -> None:
        """Close connections."""
        with self._lock:
            wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _open(self) -> Wire:
        from agentmesh.llm.wire import Wire

        with self._lock:
            if self._wire is None:
                self._wire = Wire(self.provider)
            return self._wire

    def _prepare(self, request: ChatRequest) -> _Prepared:
        fields = parameters(request, self._quirks.get(request.model, Quirks()))
        try:
            return _Prepared(request, tuple(fields), encode(fields, request))
        except ValueError as error:
            raise CallFailed(
                f"The request to {self.provider.name} (model {request.model}) cannot be written as JSON: {error}.",
                hint="Check the model's settings.",
                kind="bad_request",
            ) from None

    def _enter(self, gate: Gate, visit: Visit) -> Pass | None:
        try:
            return gate.enter(visit)
        except AttemptFailed as failure:
            raise failure.final(None) from None

    def _slow_down(
        self, gate: Gate, entered: Pass, failure: AttemptFailed, visit: Visit, partial: Reply | None
    ) -> None:
        what = "is asked too often" if failure.kind == "rate_limit" else "is overloaded"
        number = f" ({failure.status})" if failure.status else ""
        try:
            gate.slow_down(entered, failure, visit, f"{self.provider.named(gate.model)} {what}{number}")
        except AttemptFailed:
            raise failure.final(partial) from None

    def _attempt(self, prepared: _Prepared, assembly: Assembly, cancel: Cancel, entered: Pass) -> None:
        model, wire = prepared.request.model, self._open()
        with Exchange(cancel, self.provider.first_token_timeout) as exchange:
            try:
                with wire.chat(prepared.body, model, prepared.sent) as chunks:
                    entered.taken()
                    Reader(self.provider, model, exchange, assembly).read(chunks)
            except ErrorInStream as error:
                raise explain(Answer(None, error.error), self.provider, model, prepared.sent) from None

    def _reply(self, prepared: _Prepared, assembly: Assembly) -> Reply:
        usage = assembly.usage or estimate(len(prepared.body), assembly.characters)
        if usage.estimated:
            assembly.notes.append("The server reported no usage; it was estimated.")
        cost, models = assembly.cost_usd, (prepared.request.model, assembly.model)
        if cost is None:
            cost = prices.cost_usd(self.provider, models, usage)
        listed = prices.token_prices(self.provider, models, usage.input_tokens)
        return replace(assembly.reply(usage, cost, bind(call_ids, prepared.request), prepared.body), prices=listed)

    def _whole(self, prepared: _Prepared, assembly: Assembly) -> Reply:
        """Return an answer that came to its end."""
        reply = self._reply(prepared, assembly)
        if not self.provider.text_tool_calls:
            return reply
        return textcalls.read(reply, prepared.request, bind(call_ids, prepared.request), prepared.body)

    def _partial(self, prepared: _Prepared, assembly: Assembly) -> Reply | None:
        """Return what had come of an answer, None for nothing."""
        return replace(self._reply(prepared, assembly), finish_reason="cut") if assembly.touched else None

    def _learn(self, model: str, failure: AttemptFailed) -> None:
        with self._lock:
            known = self._quirks.get(model, Quirks())
            self._quirks[model] = known.learn(failure.refused, failure.message)

    def _final(self, failure: AttemptFailed, model: str, partial: Reply | None, cancel: Cancel) -> CallFailed:
        if failure.window:
            self._windows[model] = failure.window
        if failure.kind == "unknown_model":
            failure.hint = self._advise(model, cancel)
        return failure.final(partial)

    def _advise(self, model: str, cancel: Cancel) -> str:
        try:
            known = self.models(cancel)
        except CallFailed:
            known = ()
        close = difflib.get_close_matches(model, known, n=3, cutoff=0.4) or known[:_NAMES_IN_ADVICE]
        if not close:
            return "Choose another model."
        return f"It has {', '.join(self.provider.redact(name, 80) for name in close)}."
