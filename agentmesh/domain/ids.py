"""Identifiers. All agent and session ids are random (version 4) UUIDs, so that eight characters tell two apart."""

from __future__ import annotations

import uuid
from typing import NewType

AgentId = NewType("AgentId", uuid.UUID)
SessionId = NewType("SessionId", uuid.UUID)
WorkerId = NewType("WorkerId", int)
MailId = NewType("MailId", int)


def short(id_: uuid.UUID) -> str:
    """Return the eight characters by which people name an agent."""
    return str(id_)[:8]
