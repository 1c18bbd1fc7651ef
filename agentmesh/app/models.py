"""Which models this process can call: those that its settings name, and that the keys in its environment allow."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmesh.config.api_keys import key_of
from agentmesh.config.settings import Settings, resolve_model
from agentmesh.domain.errors import AgentmeshError, NoModel

if TYPE_CHECKING:
    from agentmesh.domain.rows import Capability, Session
    from agentmesh.llm.provider import Provider

DEMO: Final = "demo"
"""``--model demo``: the scripted model."""

_NO_MODEL: Final = (
    "agentmesh setup asks for one. Or name one: --model NAME with OPENAI_API_KEY (and OPENAI_BASE_URL for other "
    "servers) set, or `model = ...` in the configuration. --model demo is a scripted model that needs nothing."
)
_LIST_SECONDS: Final = 5.0
_WINDOW_SECONDS: Final = 2.0
_ASK_AGAIN: Final = 60.0
"""Seconds until a server that gave no list is asked for it again."""
_NO_KEY: Final = "OPENAI_BASE_URL names another server; --model demo is a scripted model that needs nothing."


class OfferedModel(NamedTuple):
    """A model that a server lists."""

    name: str
    """``provider/model``."""
    context_window: int | None
    """Tokens; None if unknown."""
    input_usd: float | None
    """USD per million input tokens that are not cached; None if no price is known."""
    output_usd: float | None
    """USD per million output tokens."""


class ConfiguredModels:
    """The models of one process, by the names that people give them."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._windows: dict[str, tuple[float, Mapping[str, int | None]]] = {}
        """By provider: until when its list is not asked for again, and the context sizes in it."""

    def name(self, model: str | None) -> str:
        """Return the ``provider/model`` that a name means; raise NoModel without a model or without its key."""
        wanted = model or self._settings.model
        if not wanted:
            raise NoModel("no model is configured", hint=_NO_MODEL)
        if wanted in (DEMO, f"{DEMO}/{DEMO}"):
            return f"{DEMO}/{DEMO}"
        provider, name = resolve_model(self._settings, wanted)
        if provider not in self.providers():
            variable = self._settings.providers[provider].api_key_env or "its key"
            raise NoModel(f"the provider {provider} of model {wanted} has no key", hint=f"Set {variable}. {_NO_KEY}")
        return f"{provider}/{name}"

    def providers(self) -> dict[str, Provider]:
        """Return the model servers that this process can use: those that have a key or need none."""
        from agentmesh.domain.urls import is_openai
        from agentmesh.llm.bounds import Bounds
        from agentmesh.llm.provider import Provider

        calls, limits = self._settings.model_calls, self._settings.limits
        usable = {}
        for name, provider in self._settings.providers.items():
            key = key_of(self._environ, name, provider)
            if provider.api_key_env and not key and is_openai(provider.base_url):
                continue
            usable[name] = Provider(
                name=name,
                base_url=provider.base_url,
                api_key=key,
                api_key_env=provider.api_key_env or "",
                headers=provider.headers,
                context_window=provider.context_window,
                priced_as=provider.priced_as or "",
                text_tool_calls=provider.text_tool_calls,
                stream=provider.stream,
                tool_choice=provider.tool_choice,
                temperature=provider.temperature,
                concurrency=provider.concurrency,
                slots=provider.slots,
                extra_body=provider.extra_body,
                vision=provider.vision,
                cache_marks=provider.cache_marks,
                max_tokens=provider.max_tokens,
                bounds=Bounds(limits.answer_tokens, limits.answer_bytes),
                connect_timeout=calls.connect_timeout,
                first_token_timeout=calls.first_token_timeout,
                idle_timeout=calls.idle_timeout,
            )
        return usable

    def offered(self) -> list[OfferedModel]:
        """Ask each server for its models; return them by name. A server that gives no list is left out."""
        from concurrent.futures import ThreadPoolExecutor

        providers = list(self.providers().values())
        with ThreadPoolExecutor(8, thread_name_prefix="models") as threads:
            lists = list(threads.map(_offered, providers))
        return sorted((model for listed in lists for model in listed), key=lambda model: model.name)

    def lacks(self, model: str) -> bool:
        """Return whether the model's server, asked now, lists models and not this one. It may take it anyway."""
        first, _, name = model.partition("/")
        provider = self.providers().get(first)
        listed = _listed(provider, _WINDOW_SECONDS) if provider else {}
        # A server's only model answers to other names too; Google lists its models with the kind before the name.
        return len(listed) > 1 and listed.keys().isdisjoint({name, f"{name}:latest", f"models/{name}"})

    def sees(self, model: str) -> bool:
        """Return whether a model is sent images, as far as its provider's settings and its name tell."""
        from agentmesh.llm import vision

        first, _, rest = model.partition("/")
        provider = self._settings.providers.get(first)
        if provider is not None and provider.vision is not None:
            return provider.vision
        return first == DEMO or vision.sees(rest or model) is not False

    def endpoints(self) -> tuple[str, ...]:
        """Return these servers in the form for sessions and workers: provider, URL, and the key's variable."""
        return tuple(
            f"{name} {provider.address} {provider.api_key_env or '-'}" for name, provider in self.providers().items()
        )

    def can_use(self, provider: str) -> bool:
        """Return whether this process can call a provider's models: the script needs nothing, others may need a key."""
        return provider == DEMO or provider in self.providers()

    def obstacle(self, session: Session, model: str) -> NoModel | None:
        """Return why no worker of this process could run a session's agents with this model; None: it could."""
        provider = model.partition("/")[0]
        if provider == DEMO:
            return None
        if not self.can_use(provider):
            known = self._settings.providers.get(provider)
            hint = f"Set {known.api_key_env}." if known else "Configure it: [providers.NAME] in the configuration."
            why = f"the session's model {model} cannot be used here: its provider {provider} has no key"
            return NoModel(why, hint=hint)
        begun = [each for each in session.endpoints if each.partition(" ")[0] == provider]
        here = [each for each in self.endpoints() if each.partition(" ")[0] == provider]
        if not begun or begun == here:
            return None
        return NoModel(
            f"the session began with {_shown(begun[0])}; here {provider} is another server, {_shown(here[0])}",
            hint="Configure it as it was, or begin a new session. A worker that has that server can run this one.",
        )

    def context_window(self, model: str, learned: Iterable[Capability] = ()) -> int | None:
        """Return a model's context size in tokens, None if unknown; ``learned``: what workers found out of servers.

        Workers use the same one, except that they may not have asked for the server's list yet.
        """
        from agentmesh.llm.capabilities import Capabilities
        from agentmesh.llm.models import Models

        known = Capabilities()
        for found in learned:
            known.heed(found)
        models = Models(self.providers(), capabilities=known)
        try:
            return models.context_window(model) or self._listed_window(model)
        except AgentmeshError:  # a provider that is not configured here
            return None
        finally:
            models.close()

    def named_window(self, model: str) -> int | None:
        """Return the context size that the configuration names, or a model server on this machine; None if neither.

        Unlike ``context_window`` it looks into no price table: they take a quarter of a second to import.
        """
        provider = self._settings.providers.get(model.partition("/")[0])
        if provider is None:
            return None
        return provider.context_window or (self._listed_window(model) if _is_here(provider.base_url) else None)

    def _listed_window(self, model: str) -> int | None:
        """Return the context size that a model's server lists; a server that gives no list is asked again later."""
        import http.client

        from agentmesh.app.model_list import windows
        from agentmesh.llm.listed import window_of

        first, _, name = model.partition("/")
        provider = self.providers().get(first)
        if provider is None:
            return None
        until, known = self._windows.get(first, (0.0, {}))
        if time.monotonic() >= until:
            try:
                until, known = math.inf, windows(provider.base_url, _headers(provider), _WINDOW_SECONDS)
            except (OSError, ValueError, http.client.HTTPException):
                until, known = time.monotonic() + _ASK_AGAIN, {}
            self._windows[first] = until, known
        return window_of(known, name)


def _headers(provider: Provider) -> dict[str, str]:
    return {**provider.headers, **({"Authorization": f"Bearer {provider.api_key}"} if provider.api_key else {})}


def _listed(provider: Provider, seconds: float) -> Mapping[str, int | None]:
    """Return the models that a server lists, each with its context size; none if it gives no list."""
    import http.client

    from agentmesh.app.model_list import windows

    try:
        return windows(provider.base_url, _headers(provider), seconds)
    except (OSError, ValueError, http.client.HTTPException):
        return {}


def _offered(provider: Provider) -> list[OfferedModel]:
    from agentmesh.llm.prices import context_window, token_prices

    offered = []
    for name, named in _listed(provider, _LIST_SECONDS).items():
        price = token_prices(provider, (name,), 0)
        window = provider.context_window or named or context_window(provider, name)
        in_usd, out_usd = (price.input_usd * 1e6, price.output_usd * 1e6) if price else (None, None)
        offered.append(OfferedModel(f"{provider.name}/{name}", window, in_usd, out_usd))
    return offered


def _shown(endpoint: str) -> str:
    provider, url, key = endpoint.split(" ")
    return f"{provider} at {url}" + (f" (key in {key})" if key != "-" else "")


def _is_here(base_url: str) -> bool:
    """Whether a model server runs on this machine."""
    from urllib.parse import urlsplit

    return urlsplit(base_url).hostname in ("localhost", "127.0.0.1", "::1")
