"""An error as a model server sent it: what it says, its codes, and the error of the provider behind a gateway.

OpenRouter says "Provider returned error" and passes on the provider's own error as ``metadata.raw``: a sentence or
JSON. Sources: openrouter.ai/docs, errors; cline/cline issue 13194 (length), open-webui/computer issue 293 (429),
crmne/ruby_llm pull request 431 (403), OpenRouterTeam/ai-sdk-provider pull request 428 (forms of the provider's error).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.llm import wording
from agentmesh.llm.toolcalls import whole_number

_LAST_STATUS = 599
_RATE_LIMITED = 429
LONGEST_WAIT = 1e9
"""Seconds that are more than any server means."""


@dataclass(frozen=True, slots=True)
class FailedAnswer:
    """An error with a status, or as an event in the stream."""

    status: int | None
    body: Any
    """Decoded JSON, or text."""
    after: float | None = None
    """Seconds of its Retry-After header."""
    should_retry: bool | None = None
    """The value of ``x-should-retry``."""

    @property
    def provider(self) -> str:
        """The provider behind a gateway from which the error comes, empty if it is the server's own."""
        return str(self._metadata.get("provider_name") or "its provider") if self._metadata.get("raw") else ""

    @property
    def code(self) -> int | None:
        """The HTTP status, even if only an event or the error of a provider behind the server has it."""
        code = _code(_error(self.body)) if self.status is None else self.status
        raw = self._raw
        is_vague = code is None or code == 400 or code >= 500
        is_limited = _code(raw) == _RATE_LIMITED or wording.is_rate_limited(_sentence(raw))
        return _RATE_LIMITED if is_vague and is_limited else code

    @property
    def parameter(self) -> str:
        """The parameter that the error names."""
        names = (_fields(each).get("param") for each in (_error(self.body), self._raw))
        return next((name for name in names if isinstance(name, str)), "")

    @property
    def wait(self) -> float | None:
        """Seconds that the server asks to wait: in a header, in a field or in words."""
        if self.after is not None:
            return self.after
        seconds = self._metadata.get("retry_after_seconds")
        if isinstance(seconds, int | float) and 0 <= seconds < LONGEST_WAIT:
            return float(seconds)
        return wording.pause(self.everything)

    @property
    def sentence(self) -> str:
        """Its message for people; that of the provider behind a gateway, if there is one."""
        said = _sentence(self._raw)
        return f"{self.provider}: {said}" if said else _sentence(_error(self.body))

    @property
    def everything(self) -> str:
        """The whole error, with codes and types."""
        if isinstance(self.body, str):
            return self.body
        raw = self._metadata.get("raw")  # in JSON its quotes are escaped
        return (
            f"{_sentence(_error(self.body))} {raw if isinstance(raw, str) else ''} {jsontext.text_or_json(self.body)}"
        )

    @property
    def _metadata(self) -> Mapping[str, Any]:
        return _fields(_fields(_error(self.body)).get("metadata"))

    @property
    def _raw(self) -> Any:
        """The error of the provider behind a gateway."""
        raw = self._metadata.get("raw")
        if isinstance(raw, str):
            try:
                raw = jsontext.parse(raw)
            except ValueError:
                raw = raw.strip()
        return _error(raw)


def _fields(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _error(body: Any) -> Any:
    if isinstance(body, list) and len(body) == 1:  # as Gemini sends it
        body = body[0]
    return (body.get("error") or body) if isinstance(body, Mapping) else body


def _code(error: Any) -> int | None:
    code, kind = whole_number(_fields(error).get("code")), _fields(error).get("type")
    if code is not None and 400 <= code <= _LAST_STATUS:
        return code
    return 400 if kind == "invalid_request_error" else None


def _sentence(error: Any) -> str:
    fields = _fields(error)
    found = next((fields[name] for name in ("message", "detail", "error", "msg") if fields.get(name)), error)
    return jsontext.text_or_json(found) if found else ""
