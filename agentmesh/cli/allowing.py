"""`run --allow`: rules with which a person lets the agents of a run do more than the mode does."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.cli.talk import complain
from agentmesh.domain.errors import UsageError

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.permissions import Rule
    from agentmesh.domain.rows import Session


def allow_rule(text: str) -> Rule:
    """Parse a rule of the command line; raise UsageError if it is not a rule."""
    from agentmesh.config.forms import BadValue
    from agentmesh.config.rules import parsed
    from agentmesh.domain.permissions import Decision

    try:
        return parsed(Decision.ALLOW, text)
    except BadValue as refused:
        raise UsageError(f"--allow {refused.complaint}.", hint='For example: --allow "bash(pytest *)"') from refused


def allow_options(rules: Iterable[str]) -> list[str]:
    """Return the options that give these rules, quoted for a shell."""
    return [f"--allow {shlex.quote(rule)}" for rule in rules]


def allow_for_session(mesh: Mesh, session: Session, rules: Sequence[Rule]) -> None:
    """Add rules to what a person has allowed for a session; warn about those that match no tool.

    They turn asking into allowing. What another rule denies stays denied.
    """
    if not rules:
        return
    from agentmesh.config.rules import SourcedRule, unmatched
    from agentmesh.domain.permissions import Permissions
    from agentmesh.store import requests

    known = mesh.tool_names(Path(session.workdir))
    for problem in unmatched((SourcedRule(rule, "--allow") for rule in rules), known):
        complain(str(problem))
    mesh.database.run(requests.allow, session.id, Permissions.of(rules).to_json()[0], idempotent=True)
