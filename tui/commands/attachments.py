"""Images that a message names by ``@``: stored, and what to tell the person about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.domain.ids import AgentId
from agentmesh.tui.commands.context import CommandContext


class Attachments(NamedTuple):
    """The images of a message."""

    references: Sequence[Mapping[str, Any]] = ()
    remark: str = ""
    """What to tell the person; empty if the agent is shown them."""


def of(ctx: CommandContext, recipient: AgentId, text: str) -> Attachments:
    """Store the images that a text names, wherever they are, and return them; raise BadImage."""
    if "@" not in text or HostAndUser.here().host != ctx.session.host:
        return Attachments()
    from agentmesh.app.attaching import attach

    found = attach(ctx.mesh.database, recipient, Path(ctx.session.workdir), text, anywhere=True)
    if found is None:
        return Attachments()
    if ctx.mesh.models.sees(found.model):
        return Attachments(found.references)
    return Attachments(found.references, f"{found.model} cannot see images: it reads only their names.")
