"""The file beside a tree that says what it is. The agent cannot write there."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from agentmesh.domain import jsontext
from agentmesh.git.where import Place

MARKER: Final = "workspace.json"


def write(folder: Path, workspace: str, place: Place, beside: Sequence[str]) -> None:
    """Say whose folder it is, from which repository, and which paths were copied or linked into it."""
    text = {
        "workspace": workspace,
        "repository": os.fspath(place.common_dir),
        "objects": os.fspath(place.objects),
        "beside": list(beside),
    }
    new = folder / f"{MARKER}.new"
    new.write_text(json.dumps(text))
    new.replace(folder / MARKER)


def workspace(folder: Path) -> str | None:
    """Return the id of the workspace that the folder was made for."""
    found = _read(folder).get("workspace")
    return found if isinstance(found, str) else None


def beside(folder: Path) -> tuple[str, ...]:
    """Return the paths, relative to the top, that were copied or linked into the tree."""
    found = _read(folder).get("beside")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _read(folder: Path) -> dict[str, Any]:
    try:
        found = jsontext.parse((folder / MARKER).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
