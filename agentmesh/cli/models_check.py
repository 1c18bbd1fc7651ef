"""Check whether the configured model servers answer; it only asks for their list of models, which costs nothing."""

from __future__ import annotations

import http.client
import urllib.error
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentmesh.app.model_list import fetch
from agentmesh.cli.finding import Finding, Health
from agentmesh.config.api_keys import key_of
from agentmesh.config.settings import resolve_model
from agentmesh.domain.errors import NoModel
from agentmesh.domain.text import one_line
from agentmesh.domain.urls import is_openai

if TYPE_CHECKING:
    from agentmesh.config.schema import Provider
    from agentmesh.config.settings import Settings


def model_checks(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding about the model, and one for each server that may be asked."""
    wanted, misnamed = None, None
    if settings.model and settings.model != "demo":
        try:
            wanted = resolve_model(settings, settings.model)
        except NoModel as failure:
            misnamed = failure
    for name, provider in settings.providers.items():
        needed = wanted is not None and wanted[0] == name
        key = key_of(environ, name, provider).strip()
        if provider.api_key_env and not key and is_openai(provider.base_url):
            if needed:
                yield Finding(
                    Health.BROKEN,
                    f"models {name}",
                    f"{provider.api_key_env} is not set",
                    "Set it to your API key, or run agentmesh setup.",
                )
            continue
        yield _ask(name, provider, key, wanted[1] if needed and wanted else None)
    if wanted:
        yield Finding(Health.OK, "model", f"{'/'.join(wanted)} is the model of new sessions")
    elif misnamed:
        yield Finding(Health.BROKEN, "model", misnamed.message, misnamed.hint)
    elif settings.model:
        yield Finding(Health.OK, "model", f"{settings.model} is the model of new sessions: a scripted one")
    else:
        hint = "`model = ...` in the configuration, AGENTMESH_MODEL or --model names one; --model demo needs nothing."
        yield Finding(Health.NOTE, "model", "no model is configured", hint)


def _ask(name: str, provider: Provider, key: str, model: str | None) -> Finding:
    about, address = f"models {name}", provider.base_url.rpartition("@")[2].partition("?")[0]
    headers = {**provider.headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        served = fetch(provider.base_url, headers)
    except urllib.error.HTTPError as error:
        return _refused(about, address, error.code, provider.api_key_env)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = one_line(str(getattr(error, "reason", error)), 200)
        return Finding(
            Health.BROKEN, about, f"{address} does not answer: {reason}", "Is the server running, and the URL right?"
        )
    if model and served and model not in served:
        return Finding(
            Health.NOTE,
            about,
            f"{address} answers, but does not list {model}",
            f"It lists: {one_line(', '.join(served), 300)}",
        )
    return Finding(Health.OK, about, f"{address} answers" + (f" and lists {len(served)} models" if served else ""))


def _refused(about: str, address: str, status: int, key_variable: str | None) -> Finding:
    if status in (401, 403):
        return Finding(
            Health.BROKEN,
            about,
            f"{address} refuses the key (HTTP {status})",
            f"Look at {key_variable or 'the headers'}.",
        )
    if status in (404, 405, 501):
        return Finding(Health.OK, about, f"{address} answers (it has no list of models)")
    return Finding(
        Health.BROKEN, about, f"{address} answers with HTTP {status}", "Try again later, or look at the server's log."
    )
