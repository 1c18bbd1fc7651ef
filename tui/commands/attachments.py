"""Stores the images that a message names by ``@``, and says whether the model sees them."""

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
    """A remark for the person if the agent's model cannot see them; else empty."""


def of(ctx: CommandContext, recipient: AgentId, text: str) -> Attachments:
    """Store the images that a text names, wherever they are, and return them; raise BadImage."""
    if "@" not in text or HostAndUser.here().host != ctx.session.host:
        return Attachments()
    from agentmesh.app.attaching import attach

    found = attach(ctx.mesh.database, recipient, Path(ctx.session.workdir), text, anywhere=True)
    if found is None:
        return Attachments()
    return Attachments(found.references, remark_on(ctx, found.model))


def remark_on(ctx: CommandContext, model: str) -> str:
    """Return the remark for the person if this model cannot see images; else an empty text."""
    return "" if ctx.mesh.models.sees(model) else f"{model} cannot see images: it reads only their names."
