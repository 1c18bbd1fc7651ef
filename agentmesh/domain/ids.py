"""Identifiers. All agent and session ids are random (version 4) UUIDs, so eight characters distinguish two."""

from __future__ import annotations

import re
import uuid
from typing import NewType

AgentId = NewType("AgentId", uuid.UUID)
SessionId = NewType("SessionId", uuid.UUID)
WorkerId = NewType("WorkerId", int)
MailId = NewType("MailId", int)


_BEGINNING = re.compile(r"[0-9a-f]{4,32}")


def beginning_with(text: str) -> tuple[uuid.UUID, uuid.UUID] | None:
    """Return the least and the greatest id that begin with 4 or more hex digits, hyphens aside; else None."""
    digits = text.strip().lower().replace("-", "")
    if not _BEGINNING.fullmatch(digits):
        return None
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def full_id(text: str) -> uuid.UUID | None:
    """Return the id that a text is; None if it is only the beginning of one, or none."""
    ends = beginning_with(text)
    return ends[0] if ends and ends[0] == ends[1] else None


def short(id_: uuid.UUID) -> str:
    """Return the eight characters that people name an agent by."""
    return str(id_)[:8]
