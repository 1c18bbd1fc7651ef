"""The results of a search, for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.text import Text

from agentmesh.cli.render.figures import moment
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.store.search import Hit

_WIDTH = 400
"""Characters of a snippet; a single word can be long."""


def hit_text(hit: Hit, *, sessions: bool, database: str) -> Text:
    """Return the place of a hit and the text around it; with ``sessions``, its session too."""
    facts = f"  {moment(hit.at)}  {hit.kind.replace('_', ' ')}"
    facts += f" message {hit.mail_id}" if hit.mail_id is not None else ""
    facts += f"  session {short(hit.session_id)}, agent {short(hit.agent_id)}" if sessions else ""
    facts += f", database {database}" if database else ""
    text = Text.assemble((one_line(hit.where, 80), "bold cyan"), (facts, "dim"), "\n    ")
    for part in re.split("(«[^«»]*»)", one_line(hit.snippet, _WIDTH)):
        text.append(part, "bold yellow" if part.startswith("«") else "")
    return text
