"""The ways in which the terminal UI is mostly started, read without click: its import would put off the first frame."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

PICK: Final = "pick one"
"""What ``--resume`` alone stands for; no id looks like that."""


def screen_options(args: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the options of ``open_screen`` that these are; None for what click is to read: all else."""
    if "_AGENTMESH_COMPLETE" in os.environ:
        return None
    match args:
        case [] if sys.stdin.isatty() and sys.stdout.isatty():
            return {}
        case ["-c" | "--continue"]:
            return {"go_on": True}
        case ["--resume"]:
            return {"resume": PICK}
        case ["--resume", session] if session.strip() and not session.startswith("-"):
            return {"resume": session}
    return None
