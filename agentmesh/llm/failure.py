"""Why one attempt at a call failed: the message for people, and whether to try again.

:class:`AttemptFailed` stays inside this package; outside it becomes :class:`~agentmesh.llm.port.CallFailed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentmesh.domain.text import one_line
from agentmesh.llm import history, wording
from agentmesh.llm.constraint import FORCED, RESPONSE_FORMAT, TOOL_CHOICE
from agentmesh.llm.failed_answer import LONGEST_WAIT, FailedAnswer
from agentmesh.llm.port import CallFailed
from agentmesh.llm.provider import Provider
from agentmesh.llm.request import EMPTY_CONTENT, IMAGES

_RETRIED_REFUSALS = frozenset({408, 409, 425})
_CHECK_ADDRESS = "Check base_url: for most servers it ends in /v1."
TRY_AGAIN = "Try again, or choose another model."
"""Advice that is right on the screen, in a shell and in Python; the screen adds its own command."""


class AttemptFailed(Exception):
    """One attempt failed."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str = "",
        status: int | None = None,
        retry: bool = False,
        after: float | None = None,
        refused: str = "",
        window: int | None = None,
        asked: int | None = None,
        away: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.status = status
        self.retry = retry
        self.after = None if after is None else min(after, LONGEST_WAIT)
        """Seconds that the server asks to wait."""
        self.refused = refused
        """The parameter without which the server would have answered."""
        self.window = window
        """The context size that the server named."""
        self.asked = asked
        """Tokens of the request, as the server counted them."""
        self.away = away
        """Whether the connection failed, so that trying again costs nothing."""

    @property
    def is_load(self) -> bool:
        """Whether the server is overloaded, so that all its callers should pause."""
        return self.retry and self.kind in ("rate_limit", "overload")

    def again(self) -> AttemptFailed:
        """Return the same failure for another call."""
        return AttemptFailed(self.kind, self.message, hint=self.hint, status=self.status, after=self.after)

    def final(self) -> CallFailed:
        """Return the error that the caller sees once no attempt is left."""
        wait = f"The server asks to wait {self.after:.0f} s. " if self.after else ""
        return CallFailed(
            self.message,
            hint=wait + self.hint,
            kind=self.kind,
            status=self.status,
            window=self.window,
            asked=self.asked,
        )


def explain(answer: FailedAnswer, provider: Provider, model: str, sent: Iterable[str]) -> AttemptFailed:
    """Return the meaning of a server's error; ``sent`` are the parameters of the request."""
    text, status = answer.everything, answer.code
    said = provider.redact(answer.sentence) or "no explanation given"
    where = provider.named(model)
    if refusal := _of_history(text, said, where, status, frozenset(sent)) or _of_length(answer, where, said):
        return refusal
    if IMAGES in sent and status not in (401, 402, 403, 429) and (refusal := _of_images(text, said, where, status)):
        return refusal
    if wording.is_out_of_credit(text) or status == 402:
        return AttemptFailed(
            "quota",
            f"The account at {where} has no credit left: {said}",
            hint="Add credit or raise the limit at the provider, or choose a model of another one.",
            status=status,
        )
    if status == 401 or (status in (None, 400, 403) and wording.is_bad_key(text)):
        return _bad_key(answer, provider, model)
    if status == 403:
        return AttemptFailed(
            "auth",
            f"{where} does not allow this request: {said}",
            hint="Check that the account and its key may use this model.",
            status=status,
        )
    way = next((name for name in (RESPONSE_FORMAT, TOOL_CHOICE) if name in sent), "")
    if FORCED in sent and way and status != 429 and wording.refuses_grammar(text):
        message = f"{where} cannot force a call by {way}: {said}"
        return AttemptFailed("bad_request", message, status=status, refused=way)
    if status is None or status < 500:
        refusal = _refused(answer, provider, model, said, sent)
        if refusal is not None:
            return refusal
    return _trouble(answer, where, said, text, status)


def _of_history(text: str, said: str, where: str, status: int | None, sent: frozenset[str]) -> AttemptFailed | None:
    """Return the meaning of a refusal that is about a part of earlier answers, None for any other."""
    if status in (401, 402, 403, 429):
        return None
    signs: dict[str, Callable[[str], bool]] = {
        history.FOREIGN_IDS: wording.wants_short_ids,
        history.UNDETAILED: wording.wants_details,  # OpenRouter, which quotes Google's words about signatures
        history.UNSIGNED: wording.wants_signature,
        history.FOREIGN_SIGNATURES: wording.refuses_signature,
        history.UNREASONED: wording.wants_reasoning,
    }
    meant = [part for part, is_meant in signs.items() if is_meant(text)]
    if not meant and (status is None or status < 500):
        meant = [part for part, field in history.FIELDS.items() if wording.refuses_field(text, field)]
    part = next((part for part in meant if part in sent), "")
    if not part:
        return None
    return AttemptFailed("bad_request", f"{where} refuses {part}: {said}", hint=TRY_AGAIN, status=status, refused=part)


def _of_length(answer: FailedAnswer, where: str, said: str) -> AttemptFailed | None:
    """Return the meaning of a refusal for length, None for any other."""
    text, status = answer.everything, answer.code
    if status in (401, 403) or not wording.is_context_overflow(text):
        return None
    if _will_pass(answer):
        return _rate_limit(answer, where, said)
    return AttemptFailed(
        "context",
        f"The conversation is longer than {where} can read: {said}",
        hint="Start a new session, or choose a model with a larger context.",
        status=status,
        window=wording.context_size(text),
        asked=wording.request_size(text),
    )


def _will_pass(answer: FailedAnswer) -> bool:
    """Whether a refusal for length is about tokens per minute.

    Bedrock says "Too many tokens, please wait before trying again." A summary in answer to that would be needless, and
    it would be refused in the same words.
    """
    asks_to_wait = answer.code == 429 or bool(answer.after) or wording.is_throttled(answer.everything)
    return asks_to_wait and not wording.is_of_one_request(answer.everything)


def _rate_limit(answer: FailedAnswer, where: str, said: str) -> AttemptFailed:
    return AttemptFailed(
        "rate_limit",
        f"Rate-limited by {where}: {said}",
        hint="Wait, run fewer agents at once, or raise the limit at the provider.",
        status=answer.code,
        retry=answer.should_retry is not False,
        after=answer.wait,
    )


def _of_images(text: str, said: str, where: str, status: int | None) -> AttemptFailed | None:
    """Return the meaning of a refusal that is about images, None for any other."""
    if wording.is_bad_image(text):
        return AttemptFailed("bad_image", f"{where} cannot read an image: {said}", status=status)
    if wording.refuses_images(text):
        return AttemptFailed("bad_request", f"{where} does not see images: {said}", status=status, refused=IMAGES)
    return None


def _bad_key(answer: FailedAnswer, provider: Provider, model: str) -> AttemptFailed:
    # Leave out the server's message: some repeat the key.
    variable = provider.api_key_env
    if answer.provider:
        behind = provider.redact(answer.provider, 80)
        message = f"{provider.named(model)} was refused by {behind}, which does not accept its API key."
        hint = f"If the key for {behind} is yours, check it at {provider.name}. Otherwise choose another model."
    elif provider.api_key:
        message = f"{provider.named(model)} refused the API key."
        hint = f"Check the key in {variable}." if variable else f"Check the key of provider {provider.name}."
    else:
        message = f"{provider.named(model)} wants an API key, and none is set."
        hint = f"Set {variable}." if variable else f"Set `providers.{provider.name}.api_key_env` in config.toml."
    return AttemptFailed("auth", message, hint=hint, status=answer.code)


def _refused(
    answer: FailedAnswer, provider: Provider, model: str, said: str, sent: Iterable[str]
) -> AttemptFailed | None:
    text, status = answer.everything, answer.code
    if wording.lacks_tools(text):
        return AttemptFailed(
            "bad_request",
            f"{provider.named(model)} does not support tools, and agents need them: {said}",
            hint="Choose a model that can call tools, or start its server with tool calling switched on.",
            status=status,
        )
    if status == 429:
        return None
    if wording.is_unknown_model(text):
        return AttemptFailed(
            "unknown_model",
            f"{provider.name} has no model {one_line(model)!r}.",
            hint="Choose another model.",
            status=status,
        )
    if EMPTY_CONTENT in sent and wording.refuses_empty_content(text):
        refused = EMPTY_CONTENT
    else:
        refused = wording.refused_parameter(text, answer.parameter, sent)
    if refused:
        return AttemptFailed(
            "bad_request",
            f"{provider.named(model)} refuses the parameter {refused}: {said}",
            hint=f"Remove {refused} from the model's settings.",
            status=status,
            refused=refused,
        )
    if status in (404, 405):
        return AttemptFailed(
            "bad_request",
            f"{provider.named(model)} has no chat endpoint at {provider.address} (HTTP {status}).",
            hint=_CHECK_ADDRESS,
            status=status,
        )
    return None


def _trouble(answer: FailedAnswer, where: str, said: str, text: str, status: int | None) -> AttemptFailed:
    if status == 429 or (status is None and wording.is_rate_limited(text)):
        return _rate_limit(answer, where, said)
    number = f" (HTTP {status})" if status else ""
    if status in (503, 529) or ((status is None or status >= 500) and wording.is_overloaded(text)):
        kind, message, retry = "overload", f"{where} is overloaded{number}: {said}", True
    elif status is None or status >= 500 or status in _RETRIED_REFUSALS:
        kind, message, retry = "server", f"{where} failed{number}: {said}", status != 501
    else:
        kind, message, retry = "bad_request", f"{where} refused the request{number}: {said}", False
    if answer.should_retry is not None:
        retry = answer.should_retry
    if kind != "bad_request":
        hint = TRY_AGAIN
    elif answer.sentence:
        hint = "Read what the server says."
    else:
        hint = _CHECK_ADDRESS
    return AttemptFailed(
        kind, message, hint=hint, status=status, retry=retry, after=answer.wait if retry else answer.after
    )
