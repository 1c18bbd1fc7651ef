"""What a start imports, seen in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentmesh import __version__

ROOT = Path(__file__).parents[2]
ONLY_WORKERS = {"alembic", "genai_prices", "mcp", "openai", "sqlalchemy", "textual"}
NOT_ON_SCREEN = (ONLY_WORKERS - {"textual"}) | {"markdown_it", "pydantic"}
"""What no first screen needs: Markdown comes with the first answer, pydantic with a new session's tools."""
HEAVY = {"click", "platformdirs", "psycopg", "pydantic", "rich"}


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


def test_the_first_frame_needs_no_database_and_no_markdown():
    imported = run("import agentmesh.cli.outcome, agentmesh.cli.screen, tui.main, tui.app\nprint(*new())").split()
    assert "textual" in imported
    assert not (NOT_ON_SCREEN | {"psycopg", "psycopg_pool"}) & set(imported)


def test_an_empty_session_is_shown_without_markdown_and_validation():
    imported = run("import tui.app, agentmesh.app, tui.link, tui.closing\nprint(*new())").split()
    assert "psycopg" in imported
    assert not NOT_ON_SCREEN & set(imported)


def test_dialogs_are_imported_when_they_open():
    imported = run("import tui.app\nprint(*(name for name in sys.modules if name.startswith('tui.screens')))").split()
    assert set(imported) == {"tui.screens", "tui.screens.layout", "tui.screens.main"}
