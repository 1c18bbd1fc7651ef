"""A person's own editor: for the input, and for files."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path


def edit(text: str, environ: Mapping[str, str]) -> str:
    """Return the text as it was left by ``$VISUAL`` or ``$EDITOR``; raise EditorFailed when nothing came of it."""
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8")
        command, code = _run(file, environ)
        if code:
            raise EditorFailed(f"{command} ended with {code}; the input is as it was")
        return file.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


def open_file(path: Path, environ: Mapping[str, str]) -> None:
    """Open a file in ``$VISUAL`` or ``$EDITOR`` until it is left; raise EditorFailed if that cannot be started."""
    command, code = _run(path, environ)
    if code:
        raise EditorFailed(f"{command} ended with {code}")


def _run(file: Path, environ: Mapping[str, str]) -> tuple[str, int]:
    """Run the editor on a file; return its command and how it ended."""
    command = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    try:
        return command, subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise EditorFailed(f"{command}: {error}") from error


class EditorFailed(Exception):
    """The editor could not be used."""
