"""A ChatModel for any server that speaks Chat Completions: one provider, with streaming, retries and cancellation.

``warm`` or the first call imports openai, which takes half a second; importing this module does not.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial as bind
from typing import TYPE_CHECKING, Any

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.log import logger
from agentmesh.llm import listed, prices, textcalls, vision
from agentmesh.llm.assemble import Assembly, ErrorInStream
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.exchange import Exchange
from agentmesh.llm.failed_answer import FailedAnswer
from agentmesh.llm.failure import AttemptFailed, explain
from agentmesh.llm.known_server import KnownServer
from agentmesh.llm.pauses import Pass, PauseGate, Pauses, Visit
from agentmesh.llm.port import LIMIT, Bill, CallCancelled, CallFailed, ChatRequest, Prices, Reply, Usage, Watch
from agentmesh.llm.preparing import Prepared, prepare
from agentmesh.llm.provider import START_TIMEOUT, Provider
from agentmesh.llm.reading import Reader
from agentmesh.llm.refusals import LeftOut, Refusals
from agentmesh.llm.request import IMAGES, call_ids
from agentmesh.llm.retry import RetryPolicy, Tries
from agentmesh.llm.slots import Slots
from agentmesh.llm.usage import at_least, completed, estimate

if TYPE_CHECKING:
    from agentmesh.llm.wire import Wire

LOG = logger(__name__)

_MODELS_TIMEOUT = 5.0
_WINDOW_TIMEOUT = 2.0
_NAMES_IN_ADVICE = 5


@dataclass(slots=True)
class _Spent:
    """What the attempts of one call have brought and used, whatever ends it."""

    kept: Reply | None = None
    """The part of the last attempt that brought any, with the usage of all; None if none used anything."""
    under_way: tuple[Prepared, Assembly] | None = None
    """The attempt that is not in ``kept`` yet."""

    def begin(self, prepared: Prepared, assembly: Assembly) -> None:
        """Begin an attempt."""
        self.under_way = (prepared, assembly)

    def end(self, kept: Reply | None) -> None:
        """End the attempt: ``kept`` has its usage."""
        self.kept, self.under_way = kept, None


class OpenAIChat:
    """One provider's models; thread-safe."""

    def __init__(
        self,
        provider: Provider,
        policy: RetryPolicy | None = None,
        pauses: Pauses | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        """``pauses`` and ``capabilities`` may be shared with other clients; by default the client has its own."""
        self.provider = provider
        self._policy = policy or RetryPolicy()
        self._pauses = pauses or Pauses(self._policy)
        self._lock = threading.Lock()
        self._wire: Wire | None = None
        self._refusals = Refusals()
        listing = lambda cancel: self.listing(cancel, _WINDOW_TIMEOUT)  # noqa: E731
        self._known = KnownServer(provider, capabilities or Capabilities(), listing, self.own)
        self._slots = Slots(provider.name, provider.concurrency)

    def complete(self, request: ChatRequest, cancel: Cancel, watch: Watch) -> Reply:
        """Return the answer; raise CallCancelled if ``cancel`` is set, CallFailed if the call fails for good."""
        visit = Visit(cancel, watch)
        with self._slots.one(visit) as has_slot:
            if not has_slot:
                raise CallCancelled(Reply(finish_reason="cut"))
            spent = _Spent()
            try:
                reply = self._complete(request, visit, spent)
                spent.end(reply)
                self._known.find_out(request.model, cancel, 0 if reply.usage.estimated else reply.usage.input_tokens)
            except CallFailed as failed:
                failed.partial = spent.kept
                raise
            except CallCancelled:
                raise
            except Exception as error:
                raise self._broken(request.model, spent, error) from error
            return reply

    def _complete(self, request: ChatRequest, visit: Visit, spent: _Spent) -> Reply:
        gate = self._pauses.gate(self.provider.name, request.model)
        cancel, watch, tries = visit.cancel, visit.watch, Tries(self._policy)
        notes: list[str] = []
        left_out = LeftOut(self._refusals)
        while (entered := self._enter(gate, visit)) is not None:
            prepared = prepare(request, self.provider, self._known.of(request.model), left_out)
            assembly = Assembly(watch, prepared.bounds)
            assembly.notes.extend(notes)
            spent.begin(prepared, assembly)
            try:
                with entered:
                    visit.may_send()
                    watch.sent()
                    self._attempt(prepared, assembly, cancel, entered)
                    entered.answered()
                self._known.learn_streams(request.model, is_streamed=not left_out.stream)
                return _after(spent.kept, self._whole(prepared, assembly))
            except AttemptFailed as caught:
                failure = caught
            end = "cut" if cancel.is_set() else failure.kind
            partial, before = self._partial(prepared, assembly, end), spent.kept
            spent.end(_kept(before, partial, assembly.touched))  # what had arrived before the server went away
            if cancel.is_set():
                break
            if not assembly.touched and (note := left_out.leave_out(request, failure)):
                notes.append(note)
            elif self._policy.waits_out(failure):
                self._slow_down(gate, entered, failure, visit)
                if partial and not _may_retry(watch, partial, spent.kept, failure):
                    raise failure.final()
            elif (pause := tries.pause(failure)) is not None and _may_retry(watch, partial, spent.kept, failure):
                # Some servers stream no tool calls: an empty answer may be whole without streaming.
                left_out.stream |= failure.kind in ("empty", "wordless") and bool(request.tools)
                watch.retry(pause, failure.message)
                visit.wait(pause)
            elif failure.kind == "wordless":
                return _after(before, self._whole(prepared, assembly))
            else:
                raise self._final(failure, request.model, cancel)
        raise CallCancelled(spent.kept or Reply(finish_reason="cut"))

    def context_window(self, model: str) -> int | None:
        """Return the model's context size in tokens, or None if unknown."""
        return self._known.context_window(model)

    def renew_window(self, model: str, cancel: Cancel) -> None:
        """Ask the server again, once, for a context size that it was seen to have; take two seconds at most.

        It may have been started with a larger one since: then there is nothing to sum up yet.
        """
        self._known.renew_window(model, cancel)

    def slots(self, model: str) -> int | None:
        """Return how many conversations the server keeps and answers at once: as configured, or as it says."""
        return self._known.slots(model)

    def refused(self, model: str) -> frozenset[str]:
        """Return the parameters and other features that the server has refused for this model."""
        return self._refusals.of(model).without

    def own(self, name: str, cancel: Cancel, seconds: float = _WINDOW_TIMEOUT) -> Any:
        """Return a document that llama.cpp has beside its API, such as ``props``; None if the server has none."""
        with contextlib.suppress(AttemptFailed), Exchange(cancel, seconds) as exchange:
            return self._open().own(exchange, name)
        return None

    def listing(self, cancel: Cancel, seconds: float = _MODELS_TIMEOUT) -> list[Mapping[str, Any]]:
        """Return the entries of the server's list of models; raise CallFailed."""
        try:
            with Exchange(cancel, seconds) as exchange:
                return self._open().listing(exchange)
        except AttemptFailed as failure:
            raise failure.final() from None

    def models(self, cancel: Cancel | None = None) -> tuple[str, ...]:
        """Return the names of the models that the server lists; raise CallFailed."""
        return tuple(listed.windows(self.listing(cancel or Cancel())))

    def sees(self, model: str) -> bool:
        """Return whether the model is sent images: as configured, as its server has shown, or as its name says."""
        if IMAGES in self._refusals.of(model).without:
            return False
        return vision.sees(model) is not False if self.provider.vision is None else self.provider.vision

    def answer_tokens(self, model: str) -> int:  # noqa: ARG002  required by the protocol
        """Return the limit of output tokens for one answer of any of its models."""
        return self.provider.answer_tokens

    def token_prices(self, model: str, input_tokens: int) -> Prices | None:
        """Return the listed prices for a request of this size, None if unknown."""
        return prices.token_prices(self.provider, (model,), input_tokens)

    def address(self, model: str) -> str:  # noqa: ARG002  required by the protocol
        """Return the base URL of the provider's server, without secrets."""
        return self.provider.address

    def warm(self) -> None:
        """Import and open everything that the first call needs; leave errors of the provider to that call."""
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

    def _enter(self, gate: PauseGate, visit: Visit) -> Pass | None:
        try:
            return gate.enter(visit)
        except AttemptFailed as failure:
            raise failure.final() from None

    def _slow_down(self, gate: PauseGate, entered: Pass, failure: AttemptFailed, visit: Visit) -> None:
        named, number = self.provider.named(gate.model), f" ({failure.status})" if failure.status else ""
        slow = f"rate-limited by {named}" if failure.kind == "rate_limit" else f"{named} is overloaded"
        reason = failure.message if failure.away else f"{slow}{number}"
        try:
            gate.slow_down(entered, failure, visit, reason)
        except AttemptFailed:
            raise failure.final() from None

    def _attempt(self, prepared: Prepared, assembly: Assembly, cancel: Cancel, entered: Pass) -> None:
        model, wire = prepared.request.model, self._open()
        with Exchange(cancel, self.provider.first_token_timeout, START_TIMEOUT) as exchange:
            try:
                with wire.chat(exchange, prepared.body, model, prepared.sent) as chunks:
                    entered.taken()
                    assembly.is_accepted = True
                    Reader(self.provider, model, exchange, assembly).read(chunks)
            except ErrorInStream as error:
                raise explain(FailedAnswer(None, error.error), self.provider, model, prepared.sent()) from None

    def _used(self, prepared: Prepared, assembly: Assembly) -> Reply:
        """Return what an attempt used so far, without its answer."""
        guessed = estimate(len(prepared.body) - prepared.request.uncounted, assembly.size)
        usage = assembly.usage or guessed
        if assembly.finish_reason in ("", LIMIT):
            usage = at_least(usage, guessed)
        usage = completed(usage, guessed)
        cost, models = assembly.cost_usd, (prepared.request.model, assembly.model)
        if cost is None:
            cost = prices.cost_usd(self.provider, models, usage)
        listed = prices.token_prices(self.provider, models, usage.input_tokens)
        return Reply(usage=usage, cost_usd=cost, prices=listed, finish_reason="cut")

    def _used_at_least(self, prepared: Prepared, assembly: Assembly) -> Reply:
        """Return the same after a defect, which may be one of this sum: then what the server itself has reported."""
        try:
            return self._used(prepared, assembly)
        except Exception:
            LOG.exception("what a call used is not known")
            return Reply(usage=assembly.usage or Usage(), cost_usd=assembly.cost_usd, finish_reason="cut")

    def _reply(self, prepared: Prepared, assembly: Assembly) -> Reply:
        used = self._used(prepared, assembly)
        if assembly.usage is None:
            assembly.notes.append("The server reported no usage; it was estimated.")
        reply = assembly.reply(used.usage, used.cost_usd, bind(call_ids, prepared.request), prepared.body)
        return replace(reply, prices=used.prices)

    def _whole(self, prepared: Prepared, assembly: Assembly) -> Reply:
        """Return a complete answer."""
        reply = self._reply(prepared, assembly)
        if self.provider.text_tool_calls:
            reply = textcalls.read(reply, prepared.request, bind(call_ids, prepared.request), prepared.body)
        self._known.learn_from(prepared, reply)
        return reply

    def _partial(self, prepared: Prepared, assembly: Assembly, end: str) -> Reply | None:
        """Return the part of an answer that has arrived, or its usage alone; None if the attempt was free."""
        if not assembly.has_cost(end):
            return None
        return replace(self._reply(prepared, assembly), finish_reason="cut")

    def _broken(self, model: str, spent: _Spent, error: Exception) -> CallFailed:
        """Return the error for a call that a defect has ended; it says what the attempts used, the last one included.

        Its answer is void, but it may have to be paid for.
        """
        LOG.error("a call of %s failed", self.provider.named(model), exc_info=error)
        if spent.under_way is not None and spent.under_way[1].has_cost("bug"):
            spent.end(_after(spent.kept, self._used_at_least(*spent.under_way)))
        return CallFailed(
            f"agentmesh itself failed in a call of {self.provider.named(model)} ({type(error).__name__})",
            hint="The log has the details.",
            kind="bug",
            partial=spent.kept,
        )

    def _final(self, failure: AttemptFailed, model: str, cancel: Cancel) -> CallFailed:
        self._known.learn_window(model, failure.window)
        if failure.kind == "unknown_model":
            failure.hint = self._advise(model, cancel)
        return failure.final()

    def _advise(self, model: str, cancel: Cancel) -> str:
        try:
            known = self.models(cancel)
        except CallFailed:
            known = ()
        close = difflib.get_close_matches(model, known, n=3, cutoff=0.4) or known[:_NAMES_IN_ADVICE]
        if not close:
            return "Choose another model."
        return f"It has {', '.join(self.provider.redact(name, 80) for name in close)}."


def _after(before: Reply | None, reply: Reply) -> Reply:
    """Return the reply with the usage of the attempts up to ``before``."""
    return reply if before is None else replace(reply, earlier=before.bill)


def _kept(before: Reply | None, partial: Reply | None, has_arrived: bool) -> Reply | None:
    """Return the newest part of an answer that has arrived, with the usage of all attempts."""
    if before is None or partial is None:
        return partial or before
    if has_arrived:
        return _after(before, partial)
    return replace(before, earlier=before.earlier.plus(partial.usage, partial.cost_usd))


def _may_retry(watch: Watch, partial: Reply | None, kept: Reply | None, failure: AttemptFailed) -> bool:
    """Whether the budget has room for another attempt; ``partial`` is the answer of the last one, if any."""
    if partial is None or kept is None or watch.may_retry(Bill().plus(partial.usage, partial.cost_usd), kept.bill):
        return True
    failure.hint = f"It is not tried again: the budget has no room for another attempt. {failure.hint}".rstrip()
    return False
