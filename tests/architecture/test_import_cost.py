"""What a start imports, seen in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from agentmesh import __version__

ROOT = Path(__file__).parents[2]
ONLY_WORKERS = {"alembic", "genai_prices", "mcp", "openai", "sqlalchemy", "textual"}
NOT_ON_SCREEN = (ONLY_WORKERS - {"textual"}) | {"markdown_it", "pydantic"}
"""What no first screen needs: Markdown comes with the first answer, pydantic with a new session's tools."""
HEAVY = {"click", "platformdirs", "psycopg", "pydantic", "rich"}

DATABASE = {"psycopg", "psycopg_binary"}
"""Without the pool, which is made when a second connection is wanted."""
COMMAND = {"agentmesh", "click", "platformdirs", "typing_extensions"}
"""What every command may import: the options, and where the configuration lies."""
MAY_IMPORT = {
    "ps": COMMAND | DATABASE | {"rich"},
    "worker": COMMAND
    | DATABASE
    | {"psycopg_pool", "annotated_types", "pydantic", "pydantic_core", "typing_inspection"},
    "first frame": COMMAND | {"rich", "textual", "tree_sitter"},
}
"""Packages, the standard library aside, that a start may import until it is ready; the rest comes when it is needed.

A name is added only by who has measured what it costs (``python -X importtime``).
"""


FIRST_FRAME = "from agentmesh.tui import app, main\n"
"""Imports what the first frame of the screen needs."""


def run(code: str) -> str:
    """Run code in a fresh interpreter; ``new()`` there gives the top-level modules imported since its start."""
    setup = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "def new():\n    return sorted({name.partition('.')[0] for name in set(sys.modules) - before})\n"
    )
    result = subprocess.run([sys.executable, "-c", setup + code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def start(*arguments: str) -> list[str]:
    """Run our command line in a fresh interpreter; return its output, the imported modules as the last line."""
    return run(
        f"sys.argv = {['agentmesh', *arguments]}\n"
        "from agentmesh.cli.entry import main\n"
        "code = main()\n"
        "assert code == 0, code\n"
        "print(*new())"
    ).splitlines()


def test_version_imports_nothing_heavy():
    lines = start("--version")
    assert lines[0] == f"agentmesh {__version__}"
    assert not (HEAVY | ONLY_WORKERS) & set(lines[-1].split())


def test_help_imports_nothing_but_click():
    lines = start("--help")
    assert lines[0].startswith("Usage: agentmesh")
    assert set(lines[-1].split()) - sys.stdlib_module_names == {"agentmesh", "click"}


def test_import_agentmesh_imports_nothing_heavy_until_a_name_is_used():
    assert set(run("import agentmesh\nprint(*new())").split()) - sys.stdlib_module_names == {"agentmesh"}
    imported = run("import agentmesh\nagentmesh.open, agentmesh.AgentmeshError, agentmesh.tool\nprint(*new())").split()
    assert "psycopg" in imported
    assert not (ONLY_WORKERS | {"pydantic"}) & set(imported)


def test_the_domain_is_standard_library_only():
    imported = run(
        "import importlib, pkgutil, agentmesh.domain\n"
        "for module in pkgutil.walk_packages(agentmesh.domain.__path__, 'agentmesh.domain.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(*new())"
    ).split()
    assert set(imported) - sys.stdlib_module_names == {"agentmesh"}


@pytest.mark.parametrize("command", ["ps", "tree", "log", "send", "kill", "sql", "mcp"])
def test_what_looks_and_acts_leaves_out_what_only_workers_need(command):
    lines = start(command, "--help")
    assert not ONLY_WORKERS & set(lines[-1].split())


def test_what_is_configured_is_read_without_a_library():
    lines = run(
        "import os, pathlib, agentmesh.config.settings as settings\n"
        "settings.load({'max_depth': '3'}, os.environ, pathlib.Path.cwd())\n"
        "print(*new())"
    ).split()
    assert not (ONLY_WORKERS | {"click", "psycopg", "pydantic"}) & set(lines)


def test_each_module_of_a_command_can_be_the_first_that_is_imported():
    failed = run(
        "import os, pkgutil, openai, psycopg, pydantic, rich.markdown, agentmesh.cli\n"
        "for module in pkgutil.walk_packages(agentmesh.cli.__path__, 'agentmesh.cli.'):\n"
        "    if (child := os.fork()) == 0:\n"
        "        __import__(module.name)\n"
        "        os._exit(0)\n"
        "    if os.waitpid(child, 0)[1]:\n"
        "        print(module.name, flush=True)"
    ).splitlines()
    assert not failed


def screen(*names: str) -> set[str]:
    """Return modules of the screen by their names inside it."""
    return {f"agentmesh.tui.{name}" for name in names}


def test_the_first_frame_needs_no_database_and_no_markdown():
    imported = run("import agentmesh.cli.outcome, agentmesh.cli.screen\n" + FIRST_FRAME + "print(*new())").split()
    assert "textual" in imported
    assert not (NOT_ON_SCREEN | {"psycopg", "psycopg_pool"}) & set(imported)


def test_an_empty_session_is_shown_without_markdown_and_validation():
    imported = run(
        "import agentmesh.app\n"
        "from agentmesh.tui import app, link\n"
        "from agentmesh.tui.commands import closing\n"
        "print(*new())"
    ).split()
    assert "psycopg" in imported
    assert not (NOT_ON_SCREEN | {"psycopg_pool"}) & set(imported)


def test_dialogs_are_imported_when_they_open():
    imported = run(FIRST_FRAME + "print(*sys.modules)").split()
    assert "agentmesh.tui.screen" in imported
    dialogs = screen(
        "widgets.dialog", "widgets.chooser", "widgets.page", "requests.dialog", "input.help", "board.table"
    )
    assert not dialogs & set(imported)


def test_what_nobody_sees_yet_is_imported_when_it_is_wanted():
    wanted = screen("input.editor", "input.files", "input.completion_list", "results", "session.notices")
    wanted |= screen("board.tree", "conversation.tool_call", "conversation.task_call", "commands.context")
    wanted |= {"hashlib", "shlex", "agentmesh.store.agents", "agentmesh.store.listener"}
    imported = run(FIRST_FRAME + "main._import_the_rest()\nprint(*sys.modules)").split()
    assert "agentmesh.tui.conversation.scrollback" in imported
    assert not wanted & set(imported)


def test_what_is_typed_is_understood_by_what_comes_after_the_first_frame():
    imported = run(FIRST_FRAME + "print(*sys.modules)").split()
    assert "agentmesh.tui.commands.calls" in imported
    later = screen(
        "commands.catalog", "commands.complete", "commands.parse", "commands.handlers", "conversation.markdown"
    )
    assert not later & set(imported)


@pytest.mark.slow
def test_rows_and_what_shows_them_come_while_the_database_answers():
    shown = {"agentmesh.domain.rows"} | screen("conversation.entries", "session.feed", "conversation.scrollback")
    before = run("import agentmesh.cli.screen\n" + FIRST_FRAME + "print(*sys.modules)").split()
    assert not shown & set(before)
    assert shown <= set(run(FIRST_FRAME + "main._import_the_rest()\nprint(*sys.modules)").split())


def third_party(names: Iterable[str]) -> set[str]:
    """Leave out the standard library, and what compiled modules make of themselves."""
    return {name for name in names if not name.startswith(("_", "cython_"))} - sys.stdlib_module_names


@pytest.mark.parametrize(("entry", "arguments"), [("ps", ["ps", "--all"]), ("worker", ["worker", "--linger", "0"])])
def test_a_start_imports_nothing_but_what_is_listed(database_url, entry, arguments):
    imported = third_party(start(*arguments, "--database-url", database_url)[-1].split())
    assert imported - MAY_IMPORT[entry] == set()
    assert "psycopg" in imported, "it was at the database"


@pytest.mark.slow
@pytest.mark.parametrize(("key", "imported"), [("", ""), ("none", "genai_prices openai")])
def test_a_worker_gets_ready_for_a_first_call_behind_its_start(database_url, key, imported):
    lines = run(
        "import pathlib, threading\n"
        "from agentmesh.app.mesh import open_mesh\n"
        "from agentmesh.app.worker import make_worker\n"
        "from agentmesh.config import settings\n"
        f"environ = {{'OPENAI_API_KEY': {key!r}}}\n"
        f"found = settings.load({{'database_url': {database_url!r}}}, environ, pathlib.Path.cwd())\n"
        "def show(_event=''):\n"
        f"    print(*sorted(set(new()) & {ONLY_WORKERS}))\n"
        "with open_mesh(found, role='worker', what='test', environ=environ) as mesh:\n"
        "    make_worker(mesh, on_event=show).start()\n"
        "    for thread in threading.enumerate():\n"
        "        if thread.name == 'warm':\n"
        "            thread.join()\n"
        "    show()\n"
    ).splitlines()
    assert lines[:2] == ["", imported], "at its registration, and some time later"


def test_the_first_frame_imports_nothing_but_what_is_listed():
    imported = run(
        "import sys\n"
        "import agentmesh.cli.invoking, agentmesh.cli.screen, agentmesh.tui.main\n"
        "from agentmesh.tui.app import MeshApp\n"
        "from agentmesh.tui.input.keys import Keymap\n"
        "def opening():\n"
        "    print(*new(), file=sys.__stdout__, flush=True)\n"
        "    raise RuntimeError('nothing to show')\n"
        "MeshApp(opening, keymap=Keymap()).run(headless=True)\n"
    ).split()
    assert third_party(imported) - MAY_IMPORT["first frame"] == set()
    assert "textual" in imported
