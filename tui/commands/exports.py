"""Carries out /export and /timeline."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.catalog import EXPORT_FORMATS
from agentmesh.tui.commands.context import CommandContext

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUOTED = re.compile(r"""(["'])((?:(?!\1).)+)\1""")
_SECONDS = 60.0
"""The most that reading a time line may take."""


def export(ctx: CommandContext, *words: str) -> Done:
    """Write the session to a file: ``[format] [file]``, a page of HTML in the working directory without either."""
    from agentmesh.export import secrets
    from agentmesh.export.target import to_file
    from agentmesh.export.writing import Format, write

    name, given = _asked(words)
    path = _path(ctx, name, given)
    known = secrets.configured(ctx.mesh.settings, os.environ)
    with _explained(path), to_file(path, force=False) as out:
        written = write(ctx.mesh.database, ctx.session.id, out, Format(name), secrets=known)
    return Done(f"Wrote {path}. {written.sentence('agentmesh export --full has them whole')}".strip())


def timeline(ctx: CommandContext, who: str | None = None) -> Done:
    """Show when each agent did what: all agents of the session, or one with all below it."""
    from agentmesh.export import lanes
    from agentmesh.store.export import snapshot

    agent = ctx.agent(who).id if who is not None else None
    with ctx.mesh.database.connection() as conn, snapshot(conn, ctx.session.id, _SECONDS) as snap:
        return Done(timeline=lanes.read(snap, agent))


def _asked(words: Sequence[str]) -> tuple[str, str]:
    """Return format and file: a first word that is no format begins the file's name. Quotes around it are no part."""
    name, rest = (words[0], words[1:]) if words and words[0] in EXPORT_FORMATS else ("", words)
    file = " ".join(rest)
    if quoted := _QUOTED.fullmatch(file):
        file = quoted[2]
    elif option := next((word for word in file.split() if word.startswith("--")), ""):
        raise UsageError(f"/export has no {option}", hint="A file that exists stays as it is: name another.")
    ending = Path(file).suffix.lower().removeprefix(".")
    if not name and file and ending not in EXPORT_FORMATS:
        formats = ", ".join(EXPORT_FORMATS)
        raise UsageError(f"{file} ends in no format", hint=f"Formats: {formats}. /export md {file} names one.")
    return name or ending or "html", file


def _path(ctx: CommandContext, name: str, given: str) -> Path:
    """Return the path to write to, relative to the session's directory; without a file, a name that is free."""
    folder = Path(ctx.session.workdir)
    if given:
        try:
            return folder / Path(given).expanduser()
        except RuntimeError as error:
            raise UsageError(f"{given} names an unknown home directory", hint="Write the path out.") from error
    stem = f"agentmesh-{short(ctx.session.id)}"
    names = (f"{stem}.{name}" if n == 1 else f"{stem}-{n}.{name}" for n in count(1))
    return next(folder / one for one in names if not os.path.lexists(folder / one))


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn an error of the file system into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="/export format file names another."
        ) from error
