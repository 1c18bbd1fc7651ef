"""Git itself says which of its options show content: none of them runs unasked where a rule withholds a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentmesh.domain.permissions import Decision
from tests.fixtures.repositories import git, write
from tests.tools.test_git_content import judged

pytestmark = pytest.mark.slow

CANARY = "c4n4ry \n"
"""Its blank at the end is what ``--check`` complains of."""
LETTERS = [f"-{letter}" for letter in "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"]
VALUES = ("", "=1", "=.", "=on", "=porcelain", "=m", "=diff", "=log")


@pytest.mark.parametrize(
    "command",
    ["log", "diff HEAD~1 --stat", "diff HEAD~1 --quiet", "show --no-patch", "show --name-only", "status", "reflog",
     "stash list", "whatchanged --name-only", "diff-tree HEAD --name-only", "diff-index HEAD~1 --raw", "shortlog HEAD"],
)  # fmt: skip
def test_no_option_of_git_shows_a_withheld_file_unasked(tmp_path: Path, command: str):
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    for text in ("old\n", f"old\n{CANARY}"):
        write(work, {"key.pem": text})
        git(work, "add", "-A")
        git(work, "commit", "-qm", "-")
    write(work, {"key.pem": f"old\n{CANARY}new\n"})
    git(work, "add", "-A")
    git(work, "stash", "-q")
    write(work, {"key.pem": f"older\n{CANARY}"})
    git(work, "add", "-A")
    known = {each for one in ("diff", "log", "show", "status", "stash") for each in _options(work, one)}
    assert known
    assert _shows(work, "git log -p")
    shown = []
    for option in (*LETTERS, *sorted(known)):
        for value in VALUES if option.startswith("--") else ("", "1"):
            words = f"git {command} {option}{value}"
            if _shows(work, words) and judged(work, words, "*.pem").decision is Decision.ALLOW:
                shown.append(words)
    assert shown == []


def _options(work: Path, command: str) -> set[str]:
    """Return the long options that git names for a command."""
    asked = ["git", command, "--git-completion-helper-all"]
    named = subprocess.run(asked, cwd=work, capture_output=True, text=True, check=False).stdout.split()
    return {each.rstrip("=") for each in named if each.startswith("--") and each != "--"}


def _shows(work: Path, words: str) -> bool:
    done = subprocess.run(
        words.split(), cwd=work, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=20
    )
    return b"c4n4ry" in done.stdout
