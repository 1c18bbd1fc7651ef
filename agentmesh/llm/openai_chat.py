"""A ChatModel for any server that speaks Chat Completions: one provider, with streaming, retries and cancellation.

``warm`` or the first call imports openai, which takes half a second; importing this module does not.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from dataclasses import dataclass, replace
from functools import partial as bind
from typing import TYPE_CHECKING

from agentmesh.domain.cancel import Cancel
from agentmesh.llm import picture, prices, textcalls, vision, wording
from agentmesh.llm.assemble import Assembly, ErrorInStream
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.exchange import Exchange
from agentmesh.llm.failure import AttemptFailed, FailedAnswer, explain
from agentmesh.llm.pauses import Pass, PauseGate, Pauses, Visit
from agentmesh.llm.port import LIMIT, CallCancelled, CallFailed, ChatRequest, Prices, Reply, Watch
from agentmesh.llm.provider import BOUND_NAMES, Provider
from agentmesh.llm.reading import Reader
from agentmesh.llm.request import (
    EMPTY_CONTENT,
    IMAGES,
    Quirks,
    call_ids,
    encode,
    has_empty_content,
    parameters,
    with_null_content,
)
from agentmesh.llm.retry import RetryPolicy, Tries
from agentmesh.llm.usage import at_least, estimate

if TYPE_CHECKING:
    from agentmesh.llm.wire import Wire

_MODELS_TIMEOUT = 5.0
_NAMES_IN_ADVICE = 5


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request in its wire form."""

    request: ChatRequest
    sent: tuple[str, ...]
    """Names of its parameters, and of other features that a server may refuse."""
    body: bytes
    bounds: Bounds


class OpenAIChat:
    """One provider's models; thread-safe."""

    def __init__(self, provider: Provider, policy: RetryPolicy | None = None, pauses: Pauses | None = None) -> None:
        """``pauses`` may be shared with other clients; by default the client has its own."""
        self.provider = provider
        self._policy = policy or RetryPolicy()
        self._pauses = pauses or Pauses(self._policy)
        self._lock = threading.Lock()
        self._wire: Wire | None = None
        self._quirks: dict[str, Quirks] = {}
        self._windows: dict[str, int] = {}

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Return the answer; raise CallCancelled if ``cancel`` is set, CallFailed if the call fails for good."""
        gate = self._pauses.gate(self.provider.name, request.model)
        visit, tries = Visit(cancel, watch), Tries(self._policy)
        notes: list[str] = []
        kept: Reply | None = None
        is_told, is_shown = True, True
        while (entered := self._enter(gate, visit, kept)) is not None:
            watch.sent()
            prepared = self._prepare(request, is_told=is_told, is_shown=is_shown)
            assembly = Assembly(watch, prepared.bounds)
            assembly.notes.extend(notes)
            try:
                with entered:
                    self._attempt(prepared, assembly, cancel, entered)
                    entered.answered()
                return self._whole(prepared, assembly)
            except AttemptFailed as caught:
                failure = caught
            partial = self._partial(prepared, assembly)
            kept = partial or kept  # keep what had arrived before the server went away
            if cancel.is_set():
                raise CallCancelled(kept or Reply(finish_reason="cut"))
            if failure.kind == "bad_image" and partial is None:
                is_shown = False
                notes.append(f"The images were left out: {failure.message}")
            elif failure.refused and partial is None:
                # This ends: a server can refuse only a parameter that was sent, and it is not sent again.
                self._learn(request.model, failure)
                notes.append(f"The server refuses {failure.refused}; it was left out or renamed.")
            elif is_told and self._is_told_too_much(request, failure) and partial is None:
                is_told = False
                notes.append(f"The server refuses a limit of {request.answer_tokens:,} tokens; it was left out.")
            elif self._policy.waits_out(failure):
                self._slow_down(gate, entered, failure, visit, kept)
            elif (pause := tries.pause(failure)) is not None:
                watch.retry(pause, failure.message)
                cancel.wait(pause)
            elif failure.kind == "wordless":
                return self._whole(prepared, assembly)
            else:
                raise self._final(failure, request.model, kept, cancel)
        raise CallCancelled(kept or Reply(finish_reason="cut"))

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""
        return self.provider.context_window or self._windows.get(model) or prices.context_window(self.provider, model)

    def models(self, cancel: Cancel | None = None, seconds: float = _MODELS_TIMEOUT) -> tuple[str, ...]:
        """Return the names of the models that the server lists; raise CallFailed."""
        try:
            with Exchange(cancel or Cancel(), seconds) as exchange:
                return self._open().models(exchange)
        except AttemptFailed as failure:
            raise failure.final(None) from None

    def sees(self, model: str) -> bool:
        """Return whether the model is sent images: as configured, as its server has shown, or as its name says."""
        if IMAGES in self._quirks.get(model, Quirks()).without:
            return False
        return vision.sees(model) is not False if self.provider.vision is None else self.provider.vision

    def answer_tokens(self, model: str) -> int:  # noqa: ARG002  required by the protocol
        """Return the limit of output tokens for one answer of any of its models."""
        return self.provider.answer_tokens

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return the listed prices for a request of this size, None if unknown."""
        return prices.token_prices(self.provider, (model,), input_tokens)

    def warm(self) -> None:
        """Import and open what the first call needs; leave errors of the provider to that call."""
        with contextlib.suppress(AttemptFailed):
            self._open()
        self.context_window("")  # imports the price tables

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

    def _is_told_too_much(self, request: ChatRequest, failure: AttemptFailed) -> bool:
        """Whether the server refuses the caller's limit because its own is lower."""
        is_refused = failure.kind in ("bad_request", "context") and wording.is_bound_too_large(failure.message)
        return request.answer_tokens is not None and is_refused

    def _prepare(self, request: ChatRequest, *, is_told: bool = True, is_shown: bool = True) -> _Prepared:
        """Encode the request; without the caller's limit of the answer unless ``is_told``, without images likewise."""
        bounds, bound = self.provider.bounds, self.provider.answer_bound(request)
        if bound is not None:
            bounds = bounds.with_server_limit(bound)
        if not is_told:
            bound = self.provider.answer_bound(replace(request, answer_tokens=None))
        if bound is not None:
            others = {name: value for name, value in request.settings.items() if name not in BOUND_NAMES}
            request = replace(request, settings={**others, **self.provider.answer_settings(bound)})
        quirks = self._quirks.get(request.model, Quirks())
        if EMPTY_CONTENT in quirks.without:
            request = with_null_content(request)
        has_images = picture.has_images(request.messages)
        if has_images and (IMAGES in quirks.without or not is_shown):
            why = picture.UNSEEN if IMAGES in quirks.without else picture.REFUSED
            request, has_images = replace(request, messages=picture.without_images(request.messages, why)), False
        if not has_images:
            request = replace(request, uncounted=0) if request.uncounted else request
        fields = parameters(request, quirks)
        sent = (*fields, EMPTY_CONTENT) if has_empty_content(request) else tuple(fields)
        sent = (*sent, IMAGES) if has_images else sent
        try:
            return _Prepared(request, sent, encode(fields, request), bounds)
        except ValueError as error:
            raise CallFailed(
                f"The request to {self.provider.name} (model {request.model}) cannot be written as JSON: {error}.",
                hint="Check the model's settings.",
                kind="bad_request",
            ) from None

    def _enter(self, gate: PauseGate, visit: Visit, partial: Reply | None) -> Pass | None:
        try:
            return gate.enter(visit)
        except AttemptFailed as failure:
            raise failure.final(partial) from None

    def _slow_down(
        self, gate: PauseGate, entered: Pass, failure: AttemptFailed, visit: Visit, partial: Reply | None
    ) -> None:
        named, number = self.provider.named(gate.model), f" ({failure.status})" if failure.status else ""
        slow = f"rate-limited by {named}" if failure.kind == "rate_limit" else f"{named} is overloaded"
        reason = failure.message if failure.away else f"{slow}{number}"
        try:
            gate.slow_down(entered, failure, visit, reason)
        except AttemptFailed:
            raise failure.final(partial) from None

    def _attempt(self, prepared: _Prepared, assembly: Assembly, cancel: Cancel, entered: Pass) -> None:
        model, wire = prepared.request.model, self._open()
        with Exchange(cancel, self.provider.first_token_timeout) as exchange:
            try:
                with wire.chat(exchange, prepared.body, model, prepared.sent) as chunks:
                    entered.taken()
                    Reader(self.provider, model, exchange, assembly).read(chunks)
            except ErrorInStream as error:
                raise explain(FailedAnswer(None, error.error), self.provider, model, prepared.sent) from None

    def _reply(self, prepared: _Prepared, assembly: Assembly) -> Reply:
        guessed = estimate(len(prepared.body) - prepared.request.uncounted, assembly.size)
        usage = assembly.usage or guessed
        if assembly.finish_reason in ("", LIMIT):
            usage = at_least(usage, guessed)
        if assembly.usage is None:
            assembly.notes.append("The server reported no usage; it was estimated.")
        cost, models = assembly.cost_usd, (prepared.request.model, assembly.model)
        if cost is None:
            cost = prices.cost_usd(self.provider, models, usage)
        listed = prices.token_prices(self.provider, models, usage.input_tokens)
        return replace(assembly.reply(usage, cost, bind(call_ids, prepared.request), prepared.body), prices=listed)

    def _whole(self, prepared: _Prepared, assembly: Assembly) -> Reply:
        """Return a complete answer."""
        reply = self._reply(prepared, assembly)
        if not self.provider.text_tool_calls:
            return reply
        return textcalls.read(reply, prepared.request, bind(call_ids, prepared.request), prepared.body)

    def _partial(self, prepared: _Prepared, assembly: Assembly) -> Reply | None:
        """Return the part of an answer that has arrived, None if there is none."""
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
