"""An export from beginning to end: one snapshot, one format, one file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from agentmesh.domain.ids import SessionId
from agentmesh.export.cleaning import Cleaner
from agentmesh.export.secrets import Redactor
from agentmesh.store.export import snapshot

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import tzinfo

    from agentmesh.store.tx import Database

SECONDS = 300.0
"""Longest time, in seconds, that a snapshot may be open."""


class Format(StrEnum):
    """The format of an export; the value is also the end of a file's name."""

    JSONL = "jsonl"
    MD = "md"
    HTML = "html"


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of the texts that an export cut, and of the secrets that it removed."""

    cut: int
    """Texts that were cut."""
    redacted: int
    """Secrets that were removed."""

    def sentence(self, whole: str) -> str:
        """Return a note for people, if anything was removed; ``whole`` says how to get the uncut texts."""
        parts = []
        if self.cut:
            parts.append(f"{self.cut:,} long text{'s were' if self.cut > 1 else ' was'} cut ({whole}).")
        if self.redacted:
            parts.append(f"{self.redacted:,} secret{'s' if self.redacted > 1 else ''} became ***.")
        return " ".join(parts)


def write(
    database: Database,
    session: SessionId,
    out: TextIO,
    format_: Format,
    *,
    secrets: Collection[str],
    full: bool = False,
    seconds: float = SECONDS,
    zone: tzinfo | None = None,
) -> Written:
    """Write the session as it is at one instant; raise UnknownSession, or Timeout if it takes too long."""
    clean = Cleaner(Redactor(secrets, library=True), full=full)
    with database.connection() as conn, snapshot(conn, session, seconds) as snap:
        match format_:
            case Format.JSONL:
                from agentmesh.export import jsonl

                jsonl.write(out, snap, clean)
            case Format.MD:
                from agentmesh.export import markdown

                markdown.write(out, snap, clean, zone)
            case Format.HTML:
                from agentmesh.export import html

                html.write(out, snap, clean, zone)
    return Written(clean.cut, clean.redacted)
