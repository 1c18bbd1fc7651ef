"""The input in a person's own editor."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


def edit(text: str, environ: Mapping[str, str]) -> str:
    """Return the text as it was left by ``$VISUAL`` or ``$EDITOR``; raise EditorFailed when nothing came of it."""
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8")
        try:
            code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
        except (OSError, ValueError) as error:
            raise EditorFailed(f"{command}: {error}") from error
        if code:
            raise EditorFailed(f"{command} ended with {code}; the input is as it was")
        return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


class EditorFailed(Exception):
    """The editor could not be used."""
