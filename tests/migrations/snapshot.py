"""The schema as text: what pg_dump says, without what depends on the server or the day."""

from __future__ import annotations

import re
import subprocess

from tests.fixtures import server

_NOISE = re.compile(r"^(--.*|SET .*;|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)\n", re.MULTILINE)


def dump(url: str) -> str:
    """Return the schema of the database."""
    program = server.embedded().binary("pg_dump")
    command = [str(program), "--schema-only", "--no-owner", "--schema=agentmesh", f"--dbname={url}"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", text)).strip() + "\n"
