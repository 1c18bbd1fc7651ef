"""Make a summary: a model call over the same messages, one commit, and a stand-in if no model makes one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import AgentmeshError, ModelError
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import AgentStatus
from agentmesh.engine import budgeting, call_progress, compaction, keeping, recording
from agentmesh.engine.calls import Parked
from agentmesh.engine.compaction import CompactionPlan
from agentmesh.engine.conversation import BYTES_PER_TOKEN, Conversation
from agentmesh.engine.engine import Engine
from agentmesh.engine.recording import CUT_SHORT
from agentmesh.llm import textcalls
from agentmesh.llm.port import CallCancelled, CallFailed, ChatRequest, Reply, Watch
from agentmesh.store import context
from agentmesh.store.call import Lease
from agentmesh.store.steps import Granted

_FEW = 1000
"""Up to this many tokens no window is looked up, which takes a moment at first; the server refuses if it is smaller."""
_UNKNOWN_ROOM = 2
"""If the window is unknown and the model refused, the room is the sent size divided by this."""
_ROOMY = 4
"""If the model did not refuse, the room is the sent size times this."""

_TOKENS_PER_WORD: Final = 2
"""Tokens of a word of a summary, with its share of numbers, paths and marks."""
_WITHHELD: Final = ("content_filter", "safety", "refusal")
"""Finish reasons of answers that the model or its server held back."""

_LARGER: Final = (
    "Give the model a larger window (llama.cpp: -c, Ollama: num_ctx, vLLM: --max-model-len) or choose one that has it; "
    "an agent type with few tools takes less."
)


class Stopped(Exception):
    """The call for the summary was stopped by its Cancel."""

    def __init__(self, usage: Mapping[str, Any]) -> None:
        super().__init__("stopped")
        self.usage = usage
        """Its usage by then."""


class NoSummary(ModelError):
    """The context could not be made smaller."""

    def __init__(
        self, message: str, *, hint: str, kind: str, usage: Mapping[str, Any] | None = None, limit: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.limit = limit
        self.usage = usage


def too_long(refused: CallFailed, conversation: Conversation) -> NoSummary:
    """Return the error for a request that a server refused for its length and that cannot be made smaller."""
    asked = f"{refused.asked:,}" if refused.asked else f"about {conversation.tokens:,}"
    reads = f"{refused.window:,} tokens" if refused.window else "fewer"
    return NoSummary(
        f"the request has {asked} tokens, the model reads {reads}, and the context cannot be made smaller: "
        f"{refused.message}",
        hint=_LARGER,
        kind="context",
    )


class Compactor:
    """Makes summaries for one agent."""

    def __init__(self, engine: Engine) -> None:
        self._database = engine.database
        self._model = engine.model
        self._feed = engine.feed
        self._images = engine.images
        self._share = engine.compact_at
        self._observer = engine.observer
        self._postponed = ""
        """Why the summary that is due has to wait, until people were told."""
        self._has_told = False

    def is_due(self, agent: Agent, conversation: Conversation, cancel: Cancel) -> bool:
        """Whether the next request would take more than its share of the model's window; may ask the model's server."""
        if not self._is_over(agent, conversation):
            return False
        self._model.renew_window(agent.model, cancel)
        return self._is_over(agent, conversation)

    def _is_over(self, agent: Agent, conversation: Conversation) -> bool:
        tokens = conversation.tokens
        if tokens < _FEW:
            return False
        window = self._window(agent)
        return window is not None and tokens > window * self._share and self.helps(agent, conversation)

    def helps(self, agent: Agent, conversation: Conversation) -> bool:
        """Whether there is enough that a summary could stand for."""
        return self._plan(agent, conversation) is not None

    def must_wait(self, agent: Agent, conversation: Conversation, most: int | None) -> bool:
        """Whether a summary that is due has to wait: the budget has too little room for it, but enough for the step.

        ``most`` is how long the step's answer may be, if the budget has no room for the longest. It does not wait if
        the step has no room in the window.
        """
        plan, window = self._plan(agent, conversation), self._window(agent)
        if plan is None or most is None or not plan.summed or not _is_too_short(most, plan):
            return False
        if not window or conversation.tokens + most > window:
            return False
        self._postponed = _too_few(most)
        return True

    def told(self) -> dict[str, str]:
        """Return the entry of a step's answer that tells people, once, why the step came before a summary."""
        why, self._postponed = self._postponed, ""
        if not why or self._has_told:
            return {}
        self._has_told = True
        goes_on = "it goes on without one while the window has room"
        return {"summary_postponed": f"the context is nearly full, but {why}; {goes_on}"}

    def compact(
        self, lease: Lease, agent: Agent, conversation: Conversation, cancel: Cancel, granted: Granted | None
    ) -> AgentStatus | Parked:
        """Replace older rows by a summary, in one commit; return the agent's status. Raise Stopped or NoSummary.

        ``granted`` is the budget of the step's model call; this call takes its place. With None, a person
        wants the summary, the turn is for nothing else, and the call is reserved here. Return Parked if it waits.
        """
        self._postponed = ""
        if asked := granted is None:
            granted = self._reserve(lease, agent, conversation)
            if parked := budgeting.parked(granted, agent.model):
                self._feed.activity(agent.id, parked.activity)
                return parked
        self._feed.activity(agent.id, "compacting")
        most = budgeting.shortened(granted, budgeting.wanted(self._model, agent.model))
        content, usage = self._summarize(lease, agent, conversation, cancel, most, asked=asked)
        store = partial(self._database.run, context.summarize, lease, content, usage, ends=asked)
        return keeping.end_call(self._database, agent, usage, store, cancel.is_set)

    def _reserve(self, lease: Lease, agent: Agent, conversation: Conversation) -> Granted:
        planned = budgeting.planned(self._model, agent.model, conversation)
        granted = self._database.run(context.begin_summary, lease, planned, idempotent=True)
        if granted.refused is not None:
            refused = granted.refused
            raise NoSummary(refused["error"], hint=refused["hint"], kind="limit", limit=refused.get("limit", ""))
        return granted

    def _summarize(
        self, lease: Lease, agent: Agent, conversation: Conversation, cancel: Cancel, most: int | None, *, asked: bool
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the summary's row, and the usage of the call that made it; None if there was no call.

        ``most`` is how many tokens it may have, if the budget has no room for the longest.
        """
        plan = self._plan(agent, conversation, thorough=asked)
        if plan is None:
            raise self._not_smaller(agent, conversation, None)
        text, usage, why = "", None, "there was nothing to ask about."
        more = {}
        if plan.summed:
            if most is not None and _is_too_short(most, plan):
                raise _of_budget(_too_few(most), None)
            reply, usage, why = self._ask(lease, agent, conversation, plan, cancel, most)
            if reply:
                text = textcalls.after_thoughts(reply.text).strip()
                why = lack(reply, text)
                if why and (error := _no_summary(reply, why, usage, most, asked=asked)):
                    raise error
                text = "" if why else text
        if not text or len(text.encode("utf-8", "replace")) >= plan.covered_bytes:
            if asked and not why:
                raise NoSummary(
                    "the summary is as long as what it would stand for; nothing was changed",
                    hint="Go on: there is room.",
                    kind="context",
                    usage=usage,
                )
            text = compaction.left_over(plan, why or "it wrote one as long as what it stands for.")
            more = {"began": compaction.beginning(plan)}
        text = "\n\n".join(filter(None, [text, compaction.newest_step(plan)]))
        if len(text.encode("utf-8", "replace")) >= plan.covered_bytes:
            raise self._not_smaller(agent, conversation, usage)
        return compaction.content(plan, text, conversation, auto=not asked) | more, usage

    def _not_smaller(self, agent: Agent, conversation: Conversation, usage: Mapping[str, Any] | None) -> NoSummary:
        """Return the error for a context that is too large and cannot be made smaller."""
        window, fixed = self._window(agent), conversation.sizes[0] // BYTES_PER_TOKEN
        if window and fixed >= window * self._share:
            why = f"system prompt and tools have about {fixed:,} tokens, and the model reads {window:,}"
            return NoSummary(f"the model's context is too small: {why}", hint=_LARGER, kind="context", usage=usage)
        return NoSummary(
            "the context cannot be made smaller: what is left of the conversation is needed for the next answer",
            hint="Rewind it, clear it on the screen, or choose a model with a larger context.",
            kind="context",
            usage=usage,
        )

    def _plan(self, agent: Agent, conversation: Conversation, *, thorough: bool = False) -> CompactionPlan | None:
        window = self._window(agent)
        if window:
            room = int(window * self._share)
        else:  # unless a request was refused, the present rows fit
            room = conversation.tokens * _ROOMY if thorough else conversation.tokens // _UNKNOWN_ROOM
        plan = compaction.plan(conversation, room, thorough=thorough)
        longest = budgeting.wanted(self._model, agent.model) // _TOKENS_PER_WORD
        return plan and replace(plan, words=min(plan.words, longest))

    def _window(self, agent: Agent) -> int | None:
        try:
            return self._model.context_window(agent.model)
        except AgentmeshError:  # no such provider: the call itself reports it
            return None

    def _ask(
        self,
        lease: Lease,
        agent: Agent,
        conversation: Conversation,
        plan: CompactionPlan,
        cancel: Cancel,
        most: int | None,
    ) -> tuple[Reply | None, dict[str, Any], str]:
        """Return the model's answer, its usage, and the reason if there is no answer: the rows are too long for it."""
        began = time.monotonic()
        messages = [*conversation.messages[: plan.summed + 1], compaction.ask(plan)]
        request = ChatRequest(agent.model, messages, conversation.tools, answer_tokens=most, as_text=True)

        def usage(reply: Reply, error: str | None = None) -> dict[str, Any]:
            used = recording.usage(reply, agent.model, time.monotonic() - began, None, error)
            self._observer.asked(agent, used)
            return used

        def retry(seconds: float, why: str) -> None:
            self._observer.retried(agent, by_load=False)
            self._feed.activity(agent.id, f"compacting: retrying in {seconds:.0f} s: {why}")

        def paused(seconds: float, why: str, left: float) -> None:
            self._observer.retried(agent, by_load=True)
            self._feed.activity(agent.id, f"compacting: {call_progress.pause(seconds, why, left)}")

        try:
            # The tools stay in the request although none may be called: without them the provider's cache would miss.
            reply = self._model.complete(
                self._images.fill(agent.session_id, request),
                cancel,
                Watch(
                    retry=retry,
                    paused=paused,
                    may_retry=partial(keeping.may_retry, self._database, lease, agent.model),
                    may_send=partial(keeping.may_send, self._database, lease),
                ),
            )
        except CallCancelled as cancelled:
            raise Stopped(usage(cancelled.partial, "cancelled")) from None
        except CallFailed as failed:
            used = usage(failed.partial or Reply(), failed.kind)
            # Any other failure may have passed when a person tries again: do not lose these rows.
            if failed.kind != "context":
                raise NoSummary(
                    failed.message, hint=failed.hint, kind=failed.kind, usage=used, limit=failed.limit
                ) from failed
            return None, used, failed.message
        except AgentmeshError as unusable:  # no such provider, a bad URL
            raise NoSummary(unusable.message, hint=unusable.hint, kind="config") from unusable
        return reply, usage(reply), ""


def _is_too_short(most: int, plan: CompactionPlan) -> bool:
    """Whether an answer of this many tokens may be too short for the planned summary."""
    return most < plan.words * _TOKENS_PER_WORD


def _too_few(most: int) -> str:
    return f"the budget leaves room for {most:,} tokens of a summary, too few"


def lack(reply: Reply, text: str) -> str:
    """Return why an answer with this text is no summary; empty if it is one."""
    if reply.tool_calls or reply.finish_reason == "tool_calls":
        return "it called a tool instead."
    if reply.finish_reason in CUT_SHORT:
        return "it was cut at the limit of its length."
    if reply.refused or reply.finish_reason in _WITHHELD:
        return "the model refused to write it."
    return "" if text else "it wrote none."


def _no_summary(reply: Reply, why: str, usage: Mapping[str, Any], most: int | None, *, asked: bool) -> NoSummary | None:
    """Return the error for an answer that is no summary; None if the rows are to be replaced by a stand-in.

    It is not done if a person can have a whole one made: with a larger budget, or by asking again.
    """
    if most is not None and reply.finish_reason in CUT_SHORT:
        return _of_budget(f"the summary was cut: the budget left room for {most:,} tokens", usage)
    if asked:
        return NoSummary(
            f"no summary was made: {why.rstrip('.')}; nothing was changed",
            hint="Try again, or choose another model.",
            kind="context",
            usage=usage,
        )
    return None


def _of_budget(why: str, usage: Mapping[str, Any] | None) -> NoSummary:
    """Return the error for a budget without room for a summary: a part of one would be worse than none."""
    hint = "A person can raise it: agentmesh budget shows and changes it. Then a message to it lets it go on."
    return NoSummary(f"{why}; nothing was changed", hint=hint, kind="limit", usage=usage)
