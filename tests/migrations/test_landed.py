"""A migration that has landed never changes: databases have run it as it was. Git says what has landed."""

from __future__ import annotations

import subprocess

import pytest

from agentmesh.store import schema

BEFORE = "agentmesh/sql/functions/send.sql"
"""Without it, a commit is of the time in which the baseline was not made yet."""


def git(*arguments):
    folder = schema.migrations().parent
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def landed():
    """Return the newest commit of the main branch that this checkout is based on."""
    for branch in ("origin/HEAD", "origin/main", "main"):
        if base := git("merge-base", "HEAD", branch):
            return base
    return None


def complaints(base, folder="migrations/versions"):
    """Say which landed migration is not what it was."""
    changed = git("diff", "--name-status", "--no-renames", "--diff-filter=MDT", base, "--", folder) or ""
    return [
        f"{line.split()[1]} has landed and has changed: put it back, and write a new migration"
        for line in changed.splitlines()
    ]


def test_no_landed_migration_has_changed():
    base = landed()
    if base is None or git("cat-file", "-e", f"{base}:{BEFORE}") is None:
        pytest.skip("nothing has landed that this checkout knows of")
    assert complaints(base) == []


def test_a_changed_one_is_named(tmp_path, monkeypatch):
    repository = tmp_path / "migrations"
    (repository / "versions").mkdir(parents=True)
    monkeypatch.setattr(schema, "migrations", lambda: repository)
    file = repository / "versions" / "0001_baseline.sql"
    file.write_text("select 1;\n")
    assert git("init", "-q", "-b", "main") is not None
    assert git("add", "-A") is not None
    assert git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "first") is not None
    assert complaints("HEAD") == []
    (repository / "versions" / "0002_more.sql").write_text("select 2;\n")
    assert complaints("HEAD") == []
    file.write_text("select 3;\n")
    assert complaints("HEAD") == [
        "migrations/versions/0001_baseline.sql has landed and has changed: put it back, and write a new migration"
    ]
