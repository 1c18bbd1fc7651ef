"""One model server as the client needs it: its address, its credentials, and how long to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from agentmesh.domain.errors import ConfigError
from agentmesh.domain.rows import Capability
from agentmesh.domain.text import one_line
from agentmesh.domain.urls import is_openai
from agentmesh.llm.bounds import Bounds
from agentmesh.llm.port import ChatRequest

_HEADER_TEXT = re.compile(r"[\x20-\x7e]*")
_USERINFO = re.compile(r"(?<=://)[^\s/?#]+@")
"""User and password of a URL: up to the last ``@`` before the path, as the password may have one."""
_KEY_SHAPED = re.compile(r"\b(?:sk|gsk|xai|nvapi|hf)[-_][\w-]{12,}")
_SHORTEST_SECRET = 6
BOUND_NAMES = ("max_tokens", "max_completion_tokens")
"""Parameters that limit an answer at the server."""
START_TIMEOUT = "model_calls.first_token_timeout"
IDLE_TIMEOUT = "model_calls.idle_timeout"
"""Settings that end an answer in which nothing comes, by their names in the configuration."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks Chat Completions; raises ConfigError for settings that can never work."""

    name: str
    """First segment of its models' names."""
    base_url: str = "https://api.openai.com/v1"
    """URL above ``/chat/completions``."""
    api_key: str = field(default="", repr=False)
    """Empty for servers that need none."""
    api_key_env: str = ""
    """Environment variable that holds the key, named in advice."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further headers of every request."""
    context_window: int | None = None
    """Context size of its models in tokens, if the configuration sets it."""
    priced_as: str = ""
    """Provider id of genai-prices, for gateways with an address that it does not know."""
    text_tool_calls: bool = True
    """Whether tool calls that a model writes into its text are read as calls."""
    stream: bool | None = None
    """Whether answers are streamed; None: unless the server was seen to stream nothing."""
    tool_choice: str | None = None
    """The ``tool_choice`` of its requests with tools: ``auto``, for servers that leave out tools without it."""
    temperature: float | None = None
    """None: the server decides."""
    concurrency: int | None = None
    """Calls that a process makes at once; None: as many as there are."""
    slots: int | None = None
    """Conversations that the server keeps and answers at once; None: as it says, if it does."""
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Further parameters of every request."""
    vision: bool | None = None
    """Whether its models see images; None: as their names say."""
    cache_marks: bool | None = None
    """Whether requests say up to where they are to be kept in a cache; None: for Claude at OpenRouter."""
    max_tokens: int | None = None
    """Limit of output tokens that the server is given for one answer; None: the server decides."""
    bounds: Bounds = field(default_factory=Bounds)
    """How long one answer may be, whatever the server sends."""
    connect_timeout: float = 10.0
    """Seconds per address for opening the connection."""
    first_token_timeout: float = 600.0
    """Seconds until the answer must begin; local servers load the model first."""
    idle_timeout: float = 180.0
    """Seconds that an answer may pause."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_key", self.api_key.strip())
        if not _is_url(self.base_url):
            raise ConfigError(
                f"The base_url of provider {self.name} is not a URL: {one_line(self.address)!r}.",
                hint="Write it as in https://api.openai.com/v1.",
            )
        if not _HEADER_TEXT.fullmatch(self.api_key):
            raise ConfigError(
                f"The API key of provider {self.name} has characters that no key has.",
                hint=f"Set {self.api_key_env or 'it'} again, without quotes and line breaks.",
            )
        for header, value in self.headers.items():
            if not (_HEADER_TEXT.fullmatch(header) and _HEADER_TEXT.fullmatch(value)):
                raise ConfigError(f"Header {header!r} of provider {self.name} has characters that HTTP does not allow.")

    @property
    def answer_tokens(self) -> int:
        """Limit of output tokens for one answer."""
        return min(self.max_tokens or self.bounds.tokens, self.bounds.tokens)

    def answer_bound(self, request: ChatRequest) -> int | None:
        """Return the limit of output tokens that the server is given; None: the server decides."""
        asked = (self.max_tokens, request.answer_tokens, *map(request.settings.get, BOUND_NAMES))
        told = [tokens for tokens in asked if isinstance(tokens, int)]
        return min(*told, self.bounds.tokens) if told else None

    def answer_settings(self, bound: int | None) -> dict[str, int]:
        """Return the parameter that limits an answer at the server, under the name that the server accepts.

        OpenAI's reasoning models refuse ``max_tokens``; vLLM, llama.cpp, Ollama, OpenRouter and older servers know it.
        """
        if bound is None:
            return {}
        return {"max_completion_tokens" if is_openai(self.base_url) else "max_tokens": bound}

    def settings(self, request: ChatRequest, known: Capability) -> dict[str, Any]:
        """Return the request's parameters with those that are configured or known to be needed.

        The request's own come first.
        """
        ours: dict[str, Any] = {**self.extra_body}
        if (known.streams if self.stream is None else self.stream) is False:
            ours["stream"] = False
        if request.tools and (choice := self.tool_choice or ("auto" if known.needs_choice else None)):
            ours["tool_choice"] = choice
        if self.temperature is not None:
            ours["temperature"] = self.temperature
        return {**ours, **request.settings}

    def named(self, model: str) -> str:
        """Return the provider and, if given, the model, for messages."""
        return f"{self.name} (model {one_line(model)})" if model else self.name

    @property
    def root(self) -> str:
        """The URL above the API's version, where llama.cpp describes itself; without the query, which clients add."""
        return self.base_url.partition("?")[0].rstrip("/").removesuffix("/v1")

    @property
    def address(self) -> str:
        """The base URL without passwords and query, for messages and as a key of rows: its first 500 characters."""
        return _USERINFO.sub("", self.base_url).partition("?")[0].rstrip("/")[:500]

    def redact(self, text: str, width: int = 400) -> str:
        """Return a server's text on one line, with every secret replaced by ``***``."""
        url = urlsplit(self.base_url)
        secrets = {self.api_key, url.password or "", *self.headers.values(), *(v for _, v in parse_qsl(url.query))}
        for secret in sorted(secrets, key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***").replace(secret.removeprefix("Bearer "), "***")
        return one_line(_KEY_SHAPED.sub("***", _USERINFO.sub("***@", text)), width)


def _is_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return (
            url.scheme in ("http", "https")
            and bool(url.hostname)
            and url.port != 0
            and " " not in text
            and text.isprintable()
        )
    except ValueError:
        return False
