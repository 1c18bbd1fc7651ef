"""Opens the screen, and behind it the database and the session. Prints the closing line when the screen is left.

Only what the first frame needs is imported before it. Everything that needs the database is imported after it, on
another thread, while a person types.
"""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import NoModel, UsageError
from agentmesh.domain.text import printable
from agentmesh.tui.input.keys import Keymap

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.config.settings import Settings
    from agentmesh.domain.rows import Session
    from agentmesh.domain.states import PermissionMode
    from agentmesh.tui.link import Opened

_POOL = 4
_REST = ("session.reading", "conversation.scrollback", "link")
"""Modules of the screen that the first frame does not need, and the session does."""
_SWITCH = 0.0005
"""Seconds that a thread keeps the interpreter while another waits: a tenth of Python's own. Keys and the screen's loop
wait for several threads in a row, which import and read: on a busy machine the session is shown 10 ms sooner."""
_MORE_TYPED = 0.1
"""Seconds in which the rest of a paste comes, where the terminal had to wait to send it."""
_LONGEST_PASTE = 3.0
"""Seconds after which nobody waits for the end of a paste: a key may be held down."""


def main(
    settings: Settings,
    workdir: Path,
    *,
    go_on: bool = False,
    resume: str | None = None,
    pick: bool = False,
    model: str | None = None,
    mode: PermissionMode | None = None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Show a session until it is left; return the exit code.

    ``go_on`` shows the newest of the directory, ``resume`` the one named, ``pick`` asks which; otherwise a
    new one is begun. Raise an AgentmeshError when it cannot be opened.
    """
    from agentmesh.config import paths
    from agentmesh.tools.environment import conceal_process

    conceal_process()  # its environment, with the keys in it, is what a worker in the background gets
    keymap = Keymap(settings.tui.keys)
    in_browser = "TEXTUAL_DRIVER" in environ  # `agentmesh serve` says so
    if not (in_browser or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("the TUI needs a terminal", hint='Without one: agentmesh run "prompt".')
    if environ.get("TERM") == "dumb" and not in_browser:
        raise UsageError(
            "the TUI needs a terminal that can do more than TERM=dumb says", hint='agentmesh run "prompt" works in it.'
        )
    if not in_browser:
        _draw_on_a_terminal()
    state = paths.make_user_state()
    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    gc.disable()  # until the session is open: it would look again and again at modules, which all stay
    try:
        with _logging_to(state / "tui.log"):
            from agentmesh.tui.app import MeshApp
            from agentmesh.tui.input.history import History, history_path

            choice = partial(choose, workdir=workdir, go_on=go_on, resume=resume, pick=pick, model=model, mode=mode)
            find = None
            if settings.has_several_databases:
                find = partial(_find, workdir=workdir, begins=not (go_on or pick or resume), resume=resume, pick=pick)

            def tell(words: str) -> None:
                # Before there is a session it stays until there is one; later it answers a command.
                show = app.main.say if app.session else app.main.show_trouble
                with suppress(RuntimeError):  # the screen was left meanwhile
                    app.call_from_thread(show, words)

            opening = partial(_open, settings, environ, keymap, choice, tell, find)
            history = History(partial(history_path, state, workdir))
            app = MeshApp(opening, keymap=keymap, look=settings.tui.theme, history=history, pick=pick)
            app.run()
            said = _left(app.opened, app.session)
            if app.return_code == 1 and not in_browser:
                _forget_typed()
    finally:
        gc.enable()
        sys.setswitchinterval(switch_interval)
    if app.failure:
        raise app.failure
    if said:
        sys.stderr.write(printable(said) + "\n")
    return app.return_code or 0


def _draw_on_a_terminal() -> None:
    """Let Textual, which draws on standard error, draw on standard output if standard error is a file (``2>log``)."""
    if not (sys.__stderr__ and sys.__stderr__.isatty()):
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]  # the drivers of Textual take no other stream


def _forget_typed() -> None:
    """Drop what was typed or pasted for a screen that failed: the shell would run it."""
    import select
    import termios

    started = time.monotonic()
    with suppress(termios.error, OSError):  # the terminal is gone
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        while select.select([sys.stdin], [], [], _MORE_TYPED)[0] and time.monotonic() - started < _LONGEST_PASTE:
            termios.tcflush(sys.stdin, termios.TCIFLUSH)


def set_up(settings: Settings, environ: Mapping[str, str] = os.environ) -> bool:
    """Ask for a model on the first screen, where there is a terminal; return whether one was set up.

    Raise what ended the screen if the person did not: nobody asked for the demo then.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or environ.get("TERM") == "dumb":
        return False
    from agentmesh.tools.person_only import require_person_there
    from agentmesh.tui.setup import SetupApp

    Keymap(settings.tui.keys)  # a mistake in them is said first
    require_person_there(settings, "use the terminal UI")
    _draw_on_a_terminal()
    app = SetupApp(settings, environ)
    is_set_up = app.run()
    if app.bug:
        raise app.bug
    if app.return_code:  # Textual has printed why
        raise NoModel("no model was set up: the screen ended", hint="agentmesh setup asks the same without a screen.")
    return bool(is_set_up)


def choose(
    mesh: Mesh,
    workdir: Path,
    *,
    go_on: bool = False,
    resume: str | None = None,
    pick: bool = False,
    model: str | None = None,
    mode: PermissionMode | None = None,
) -> tuple[Session, bool]:
    """Return the session to show, and whether it is a new one played by a script because no model is configured."""
    from agentmesh.app import DEMO
    from agentmesh.store import sessions

    if go_on or pick or resume is not None:
        if model:
            raise UsageError("--model cannot be given for a session that exists", hint="/model changes it there.")
        session = mesh.find_session(session=_newest(mesh) if pick else resume, workdir=workdir)
        if mode:
            mesh.database.run(sessions.set_mode, session.id, mode, idempotent=True)
        return session, False
    is_scripted = not (model or mesh.settings.model)
    return mesh.start_session(workdir, model=DEMO if is_scripted else model, mode=mode), is_scripted


def _newest(mesh: Mesh) -> str | None:
    """Return the newest session of all when a person is to pick one, for the screen to begin with."""
    from agentmesh.store import sessions

    known = mesh.database.run(sessions.list_sessions, None, 1, idempotent=True)
    return str(known[0].id) if known else None


def _welcome(keymap: Keymap) -> str:
    from agentmesh.tui.session.first_start import welcome

    return welcome(keymap.label("app.help"))


def _open(
    settings: Settings,
    environ: Mapping[str, str],
    keymap: Keymap,
    choice: Callable[[Mesh], tuple[Session, bool]],
    tell: Callable[[str], None],
    find: Callable[[Databases], Mesh] | None = None,
) -> Opened:
    """Open database and session, and import the modules that read and act in it.

    ``tell`` is called with a sentence about each slow step. ``find`` chooses the mesh if there are several databases.
    """
    from agentmesh.tools.person_only import open_as_person

    # All that is imported then takes 25 ms, and the database as long to answer: at the same time. What is asked first
    # is imported first, so that the database need not wait either.
    threading.Thread(target=_import_the_rest, name="imports", daemon=True).start()
    databases, remark = None, ""
    if find is None:
        database, server = open_as_person(
            settings, role="tui", what="use the terminal UI", environ=environ, pool_size=_POOL
        )
        from agentmesh.app import Mesh

        mesh = Mesh(settings, database, server, environ)
    else:
        from agentmesh.app.databases import Databases

        databases = Databases(settings, role="tui", what="use the terminal UI", environ=environ, pool_size=_POOL)
        try:
            mesh = find(databases)
        except BaseException:
            databases.close()
            raise
        if silent := ", ".join(databases.silent):
            remark = f"without the database {silent}, which does not answer: agentmesh doctor says why"
    mesh.tell = tell
    try:
        session, is_scripted = choice(mesh)
        from agentmesh.tui.session.reading import read_board

        board = read_board(mesh.database, session.id)
        from agentmesh.tui.link import Opened

        remark = remark or _of_mcp_servers(mesh, Path(session.workdir))
        welcome = _welcome(keymap) if is_scripted else mesh.start_warning
        return Opened(mesh, session, welcome, board, databases, remark)
    except BaseException:
        (databases or mesh).close()
        raise


def _of_mcp_servers(mesh: Mesh, workdir: Path) -> str:
    """Say which MCP servers' tools the agents of a session do without; empty if none."""
    problems = mesh.mcp_problems(workdir)
    more = f" {len(problems) - 1} more such." if len(problems) > 1 else ""
    if not problems:
        return ""
    return f"{Path(problems[0].file).name}: {problems[0].words.rstrip('.')}.{more} /tools says more."


def _find(databases: Databases, *, workdir: Path, begins: bool, resume: str | None, pick: bool) -> Mesh:
    """Return the mesh of the session to begin with: a drawn one for a new session."""
    if begins:
        return databases.for_new_session()
    if not pick:
        return databases.find(resume, (), workdir)
    from agentmesh.store import sessions

    answers = databases.ask(lambda mesh: mesh.database.run(sessions.list_sessions, None, 1, idempotent=True))
    newest = {name: some[0].created_at for name, some in answers.given.items() if some}
    return databases.mesh(max(newest, key=lambda name: newest[name])) if newest else databases.find(None, (), workdir)


def _import_the_rest() -> None:
    """Import modules in the order in which they are wanted; import statements would be sorted by name."""
    for module in ("agentmesh.app", *(f"agentmesh.tui.{name}" for name in _REST)):
        importlib.import_module(module)


def _left(opened: Opened | None, shown: Session | None) -> str:
    """Close the opened session; return the line to print."""
    if opened is None:
        return ""
    from agentmesh.tui.commands.closing import close

    with opened.databases or opened.mesh:
        return close(opened.mesh, shown or opened.session)


class _LogFile(logging.FileHandler):
    """Loses records that a full disk does not take. They must not cost the closing line, nor stand on the terminal."""

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802  the name is of logging
        """Say nothing about a record that cannot be written."""

    def close(self) -> None:
        """Close the file, also if what it keeps cannot be written any more."""
        with suppress(OSError):
            super().close()


@contextmanager
def _logging_to(file: Path) -> Iterator[None]:
    """Keep log records off the screen: into a file that only its owner may read."""
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    handler = _LogFile(file, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    ours = logging.getLogger("agentmesh")
    before = ours.handlers, ours.propagate
    ours.handlers, ours.propagate = [handler], False
    try:
        yield
    finally:
        ours.handlers, ours.propagate = before
        handler.close()
