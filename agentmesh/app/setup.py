"""Set a model up: list the servers, try one with a key, and remember it."""

from __future__ import annotations

import http.client
import re
import urllib.error
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from agentmesh.app import model_list
from agentmesh.app.models import ConfiguredModels
from agentmesh.config import api_keys, user_file
from agentmesh.config.schema import Provider
from agentmesh.config.settings import Settings
from agentmesh.config.sources import OPENAI_URL
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import AgentmeshError, NoModel
from agentmesh.domain.text import one_line

_TRIAL = "the key"
"""The variable of the environment that only a trial has."""
_SECONDS = 60.0


class ModelServer(NamedTuple):
    """A server that may be set up."""

    name: str
    """The provider's name in the configuration."""
    title: str
    base_url: str
    """Empty for one whose URL is asked for."""
    api_key_env: str | None = None
    """The variable that its makers name."""
    wants_key: bool = True

    def has_key(self, environ: Mapping[str, str]) -> bool:
        """Whether the environment has its key already."""
        return bool(environ.get(self.api_key_env or "", "").strip())


KNOWN = (
    ModelServer("openai", "OpenAI", OPENAI_URL, "OPENAI_API_KEY"),
    ModelServer("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
)
OTHER = ModelServer("", "Another server", "", wants_key=False)


def servers() -> list[ModelServer]:
    """Return the servers to choose from; local ones only if they answer."""
    local = [
        ModelServer(_name_of(title), f"{title}, on this machine", url, wants_key=False)
        for url, title in model_list.local_servers().items()
    ]
    return [*KNOWN, *local, OTHER]


def server_at(url: str) -> ModelServer:
    """Return the server at a URL that a person typed; raise NoModel if it is no URL."""
    url = url.strip().rstrip("/")
    host = _host_of(url)
    if not host:
        raise NoModel(f"{one_line(url, 80)} is no URL", hint="Write it as in https://models.example.com/v1.")
    known = next((server for server in KNOWN if server.base_url == url), None)
    return known or ModelServer(_name_of(host.removeprefix("api.")), host, url, wants_key=False)


def _host_of(url: str) -> str:
    """Return the host of an HTTP URL; empty for a text that cannot be read as one."""
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.port != 0 else ""
    except ValueError:  # brackets that do not match, a character that a host cannot have, a port that is no number
        return ""
    return host or "" if parts.scheme in ("http", "https") and not any(map(str.isspace, url)) else ""


def models_of(server: ModelServer, key: str) -> list[str]:
    """Return the models that a server lists, sorted; empty if it has no list. Raise NoModel if it refuses."""
    try:
        return sorted(model_list.fetch(server.base_url, {"Authorization": f"Bearer {key}"} if key else {}))
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            raise NoModel(f"{server.title} refuses the key (HTTP {error.code})", hint="Type it again.") from None
        if error.code in (404, 405, 501):
            return []
        raise NoModel(f"{server.title} answers with HTTP {error.code}", hint="Is the URL right?") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = one_line(str(getattr(error, "reason", error)), 120).replace(key or "\0", "…")
        raise NoModel(f"{server.title} does not answer: {why}", hint="Is it running, and the URL right?") from None


def try_model(settings: Settings, server: ModelServer, key: str, model: str) -> None:
    """Ask the model one short question; raise ModelError or NoModel with the reason if it does not answer."""
    from agentmesh.llm.models import Models
    from agentmesh.llm.port import ChatRequest, Watch
    from agentmesh.llm.retry import RetryPolicy

    provider = Provider(server.base_url, _TRIAL if key else None)
    trial = settings._replace(
        providers={server.name: provider},
        model_calls=settings.model_calls._replace(first_token_timeout=_SECONDS, idle_timeout=_SECONDS),
    )
    models = Models(
        ConfiguredModels(trial, {_TRIAL: key}).providers(), policy=RetryPolicy(retries=0, longest_pause=0.1)
    )
    request = ChatRequest(f"{server.name}/{model}", [{"role": "user", "content": "Say ok."}])
    try:
        models.complete(request, Cancel(), Watch())
    finally:
        models.close()


def remember(environ: Mapping[str, str], server: ModelServer, key: str, model: str) -> Path:
    """Make this the model of new sessions, and keep the key unless the environment has it; return the file."""
    values: dict[tuple[str, ...], str] = {("model",): f"{server.name}/{model}"}
    place = ("providers", server.name)
    values[(*place, "base_url")] = server.base_url
    if server.api_key_env:
        values[(*place, "api_key_env")] = server.api_key_env
    if key and not server.has_key(environ):
        values[(*place, "stored_key")] = api_keys.keep_key(environ, server.name, server.base_url, key)
    return user_file.set_values(environ, values)


def sentence(failure: AgentmeshError) -> str:
    """Return why a trial failed, and what to do."""
    return f"{failure.message.rstrip('.')}. {failure.hint}".rstrip()


def _name_of(title: str) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", title.lower()).strip("-.") or "server"
