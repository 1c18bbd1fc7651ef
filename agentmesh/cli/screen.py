"""``agentmesh`` without a command: the terminal UI, which is imported only here."""

from __future__ import annotations

from agentmesh.cli.parameter_types import PICK
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.domain.errors import UsageError
from agentmesh.domain.states import PermissionMode


def open_screen(
    *,
    go_on: bool = False,
    resume: str | None = None,
    model: str | None = None,
    permission_mode: str | None = None,
    database_url: str | None = None,
    data_dir: str | None = None,
    database: str | None = None,
) -> int:
    """Open the TUI on a session of this directory; return its exit code."""
    if go_on and resume is not None:
        raise UsageError("-c and --resume each name the session to show; give one of them.")
    if (go_on or resume is not None) and (model or permission_mode):
        raise UsageError("--model and --permission-mode are for a new session.", hint="In the UI: /model, /mode.")
    mode = PermissionMode(permission_mode) if permission_mode else None
    place = PlaceOptions(database_url, data_dir, database=database)
    settings = place.settings()
    pick = resume == PICK
    named = None if pick else resume
    from agentmesh.tui.main import main, set_up  # Textual comes with it

    if not (model or settings.model or go_on or resume is not None) and set_up(settings):
        settings = place.settings()

    return main(settings, here(), go_on=go_on, resume=named, pick=pick, model=model, mode=mode)
