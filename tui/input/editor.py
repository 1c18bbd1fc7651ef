"""A person's own editor: for the input, and for files."""

from __future__ import annotations

import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import SuspendNotSupported

if TYPE_CHECKING:
    from textual.app import App

T = TypeVar("T")


def outside(app: App[Any], use: Callable[[], T]) -> T:
    """Return what ``use`` returns, with the terminal its own until then; raise EditorFailed when nothing came of it.

    Nothing may be raised within ``suspend``: Textual 8.2 would not take the terminal back.
    """
    failed: Exception | None = None
    try:
        with app.suspend(), _sigint_ignored():
            try:
                made = use()
            except Exception as error:  # noqa: BLE001 - of whatever kind it is, the terminal is taken back first
                failed = error
    except SuspendNotSupported as error:
        failed = error
    if failed is None:
        return made
    if isinstance(failed, OSError | SuspendNotSupported):  # OSError: the file for the editor cannot be written or read
        raise EditorFailed(str(failed)) from failed
    raise failed


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Leave Ctrl+C to the editor: the terminal sends it to both, and asyncio would end the app.

    A handler, not SIG_IGN, which the editor would inherit.
    """
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def edit(text: str, environ: Mapping[str, str]) -> str:
    """Return the text as it was left by ``$VISUAL`` or ``$EDITOR``; raise EditorFailed when nothing came of it.

    Editors end the last line with a newline: it is removed unless the given text had one.
    """
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8")
        command, code = _run(file, environ)
        if code:
            raise EditorFailed(f"{command} ended with {code}; the input is as it was")
        left = file.read_text(encoding="utf-8", errors="replace")
        return left if text.endswith("\n") else left.removesuffix("\n")


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
