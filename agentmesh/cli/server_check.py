"""``agentmesh doctor --model``: ask a model server what it can do, print a table, and remember it for all workers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import complain
from agentmesh.domain.errors import AgentmeshError, UsageError
from agentmesh.domain.rows import Capability
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.llm.provider import Provider

_SETTINGS: Final = {
    "streams": "stream",
    "needs_choice": "tool_choice",
    "slots": "slots",
    "context_window": "context_window",
}
"""For each field of a Capability, the setting that overrides it."""


def check_server(place: PlaceOptions, name: str, *, as_json: bool) -> int:
    """Ask the server of a model what it can do; print and store its answers. Return the exit code."""
    from agentmesh.app.models import DEMO, ConfiguredModels
    from agentmesh.domain.cancel import Cancel
    from agentmesh.llm.probe import Probe

    models = ConfiguredModels(place.settings(), os.environ)
    full = models.name(name)
    first, _, model = full.partition("/")
    if first == DEMO:
        raise UsageError(f"{full} is a script of this program: there is no server to ask.", hint="Name another model.")
    provider = models.providers()[first]
    probe = Probe(provider, model, Cancel())
    if not as_json:
        print(f"{one_line(full)} at {provider.address}\n")
    found = []
    for finding in probe.run():
        found.append(finding)
        if not as_json:
            print(
                f"  {finding.about:15} {one_line(finding.words, 300)}{_configured(provider, finding.facts)}", flush=True
            )
    facts: dict[str, Any] = {}
    for finding in found:
        facts |= finding.facts
    is_stored = _store(place, Capability(first, provider.address, model, **facts))
    if as_json:
        configured = {field: getattr(provider, setting) for field, setting in _SETTINGS.items()}
        emit(
            {
                "model": full,
                "address": provider.address,
                "found": facts,
                "configured": {field: value for field, value in configured.items() if value is not None},
                "findings": [{"about": finding.about, "words": finding.words} for finding in found],
                "requests": probe.requests,
                "tokens": probe.tokens,
                "remembered": is_stored,
            }
        )
    else:
        used = f"{probe.requests} requests, {probe.tokens:,} tokens"
        print(f"\n{used}. {'All workers know it now.' if is_stored else 'It is not remembered.'}")
    return 0 if is_stored else 1


def _configured(provider: Provider, facts: Iterable[str]) -> str:
    """Return the settings that override these facts, in brackets; "" if there are none."""
    said = [
        f"{setting} = {str(value).lower() if isinstance(value, bool) else value}"
        for setting in map(_SETTINGS.get, facts)
        if setting and (value := getattr(provider, setting)) is not None
    ]
    return f" (the configuration says {', '.join(said)})" if said else ""


def _store(place: PlaceOptions, found: Capability) -> bool:
    """Store the facts in each database, where workers read them; return whether all have them, and print why not."""
    from agentmesh.store import capabilities

    is_stored = True
    for one in place.settings().each_database():
        try:
            with place.open(one, "doctor") as mesh:
                me = f"{mesh.place.host} pid {os.getpid()}"
                mesh.database.run(capabilities.learn, found, me, idempotent=True)
        except AgentmeshError as error:
            complain(f"what was found out is not remembered: {error.message}", error.advice)
            is_stored = False
    return is_stored
