"""A migration that has landed never changes: databases that ran it would be told apart from others by nothing."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentmesh.store import schema

FREEZE = "(cd migrations && sha256sum versions/{}_* >> frozen.sha256)"


def frozen(folder: Path) -> dict[str, str]:
    """Return the checksums of ``sha256sum``'s list by file."""
    lines = (folder / "frozen.sha256").read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def present(folder: Path) -> dict[str, str]:
    """Return the checksums of the files that make up the migrations."""
    files = (folder / "versions").glob("[0-9]*_*")
    return {f"versions/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def complaints(listed: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say what is wrong with each migration, and what to do instead."""
    changed = [
        f"{name} is frozen and has changed: databases have run it as it was. Put it back, and write a new migration."
        for name in sorted(listed)
        if found.get(name) != listed[name]
    ]
    new = sorted({Path(name).name[:4] for name in found if name not in listed})
    return changed + [f"{revision} is not frozen yet. When it is done: {FREEZE.format(revision)}" for revision in new]


@pytest.fixture
def copy(tmp_path):
    """The migrations elsewhere, frozen as they are now."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.migrations(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    lines = "".join(f"{digest}  {name}\n" for name, digest in present(folder).items())
    (folder / "frozen.sha256").write_text(lines, encoding="utf-8")
    return folder


def test_every_migration_is_as_it_was_when_it_landed():
    told = complaints(frozen(schema.migrations()), present(schema.migrations()))
    assert told == [], "\n".join(told)


@pytest.mark.parametrize("name", ["0001_tables.up.sql", "0002_verbs.down.sql", "0013_search.py"])
def test_a_migration_that_changes_or_goes_is_refused(copy, name):
    file = copy / "versions" / name
    file.write_text(file.read_text() + "\n")
    changed = complaints(frozen(copy), present(copy))
    file.unlink()
    assert changed == complaints(frozen(copy), present(copy))
    (said,) = changed
    assert said.startswith(f"versions/{name} is frozen and has changed")
    assert said.endswith("write a new migration.")


def test_a_new_migration_is_asked_for_with_the_command_that_freezes_it(copy):
    for suffix in (".py", ".up.sql", ".down.sql"):
        (copy / "versions" / f"9999_new{suffix}").touch()
    assert complaints(frozen(copy), present(copy)) == [
        f"9999 is not frozen yet. When it is done: {FREEZE.format(9999)}"
    ]
