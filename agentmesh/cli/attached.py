"""Images that a command sends with a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.cli.talk import say
from agentmesh.domain.ids import AgentId

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session

References = Sequence[Mapping[str, Any]]
"""References to images, as a message holds them."""


def attached(mesh: Mesh, session: Session, recipient: AgentId, text: str, paths: Sequence[str]) -> References:
    """Store the images that a text names by ``@``, and those at paths; say which they are. Raise BadImage."""
    if "@" not in text and not paths:
        return ()
    from agentmesh.app.attaching import attach

    found = attach(mesh.database, recipient, Path(session.workdir), text, paths)
    if found is None:
        return ()
    say(f"Attached: {found.names}")
    if not mesh.models.sees(found.model):
        say(f"{found.model} cannot see images: it reads only their names.")
    return found.references
