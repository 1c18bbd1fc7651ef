"""`make release`: what it refuses, what it writes, and what the tag says; its build is `make package`."""

from __future__ import annotations

import hashlib
import subprocess

import pytest

from scripts import release as script
from scripts.package import metadata, pythons
from scripts.release import Refused, release

_CHANGES = """\
# Changelog

## [0.3.0] - 2027-01-01

What is new.

### Added

- A verb.

## [0.2.0] - 2026-11-24

- Older.
"""
_NAMES = ("agentmesh-0.3.0-py3-none-any.whl", "agentmesh-0.3.0.tar.gz")


@pytest.fixture
def tree(tmp_path):
    """A clean checkout of version 0.3.0."""
    (tmp_path / "agentmesh").mkdir()
    (tmp_path / "agentmesh" / "__init__.py").write_text('__version__ = "0.3.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(_CHANGES)
    (tmp_path / ".gitignore").write_text("dist/\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "A maintainer")
    git(tmp_path, "config", "user.email", "maintainer@example.org")
    git(tmp_path, "config", "tag.gpgSign", "false")
    commit(tmp_path)
    return tmp_path


def git(tree, *words):
    return subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


def commit(tree):
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--message", "Change")


def built(tree, names=_NAMES):
    """Return a build that leaves these files."""

    def build():
        (tree / "dist").mkdir()
        for name in names:
            (tree / "dist" / name).write_text(name)

    return build


def no_build():
    raise AssertionError("refused before anything is built")


def test_a_release_has_hashes_and_a_tag_with_its_section_of_the_changelog(tree):
    said = release(tree, built(tree), dry_run=False)
    assert "v0.3.0 is set" in said
    sums = (tree / "dist" / "SHA256SUMS").read_text()
    assert sums == "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n" for name in _NAMES)
    assert git(tree, "cat-file", "-t", "v0.3.0") == "tag"
    message = git(tree, "tag", "--list", "--format=%(contents)", "v0.3.0")
    assert message == f"agentmesh 0.3.0\n\nWhat is new.\n\n### Added\n\n- A verb.\n\n{sums}".strip()
    assert git(tree, "rev-list", "-1", "v0.3.0") == git(tree, "rev-parse", "HEAD")


def test_a_dry_run_does_all_but_the_tag(tree):
    said = release(tree, built(tree), dry_run=True)
    assert "- A verb." in said
    assert (tree / "dist" / "SHA256SUMS").exists()
    assert git(tree, "tag") == ""


@pytest.mark.parametrize("name", ["CHANGELOG.md", "new.txt"])
def test_a_tree_with_changes_is_refused(tree, name):
    (tree / name).write_text("changed\n")
    with pytest.raises(Refused, match=f"(?s)has changes.*{name}"):
        release(tree, no_build, dry_run=True)


def test_a_version_that_has_a_tag_is_refused(tree):
    git(tree, "tag", "v0.3.0")
    with pytest.raises(Refused, match=r"v0\.3\.0 is there already. Raise __version__"):
        release(tree, no_build, dry_run=True)


@pytest.mark.parametrize(
    "text", ["# Changelog\n", _CHANGES.replace("[0.3.0]", "[0x3.0]"), "## [0.3.0]\n\n## [0.2.0]\n\n- b\n"]
)
def test_a_version_of_which_the_changelog_says_nothing_is_refused(tree, text):
    (tree / "CHANGELOG.md").write_text(text)
    commit(tree)
    with pytest.raises(Refused, match=r"says nothing of 0\.3\.0"):
        release(tree, no_build, dry_run=True)


@pytest.mark.parametrize("names", [(), _NAMES[:1], (*_NAMES, "agentmesh-0.2.0.tar.gz")])
def test_anything_but_one_sdist_and_one_wheel_is_refused(tree, names):
    with pytest.raises(Refused, match="should have"):
        release(tree, built(tree, names), dry_run=False)
    assert git(tree, "tag") == ""


def test_a_build_that_changes_the_tree_is_refused(tree):
    def build():
        built(tree)()
        (tree / "CHANGELOG.md").write_text(_CHANGES + "\n- One more.\n")

    with pytest.raises(Refused, match="has changes"):
        release(tree, build, dry_run=False)
    assert git(tree, "tag") == ""


def test_outside_a_repository_it_says_what_git_says(tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    (folder / "agentmesh").mkdir()
    (folder / "agentmesh" / "__init__.py").write_text('__version__ = "0.3.0"\n')
    with pytest.raises(Refused, match="git status: "):
        release(folder, no_build, dry_run=True)


def test_this_version_has_a_section_of_the_changelog():
    assert script.changes(script._ROOT, script._version(script._ROOT))


def test_the_metadata_names_the_pythons_that_are_tried():
    assert metadata.VERSIONS == pythons.VERSIONS
