"""Files that rules withhold, as Git has them: which commands show them, and that nobody runs these unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.domain.permissions import Decision, Permissions, Rule, Verdict
from agentmesh.domain.rows import Allowance
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.tool import Rights
from agentmesh.tools.gate import ToolGate
from tests.fixtures.repositories import git, write

GATE = ToolGate()  # it tries only once what the machine can do


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with files that rules withhold: a tracked one, one that is only in snapshots, an ignored one."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    write(work, {"a.py": "a\n", "src/key.pem": "canary\n", "src/b.py": "b\n", ".gitignore": "*.secret\n"})
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    write(work, {"new.key": "canary\n", "my.secret": "canary\n"})
    return work


def judged(
    work: Path, command: str, *patterns: str, mode: PermissionMode = PermissionMode.ASK, root: Path | None = None
) -> Verdict:
    rules = [Rule(Decision.DENY, "read", pattern) for pattern in patterns]
    rights = Rights(Permissions.of(rules).to_json(), Allowance(mode=mode))
    return GATE.judge("bash", {"command": command}, rights, root or work, None)


@pytest.mark.parametrize(
    "command",
    [
        "git show HEAD:src/key.pem", "git show :src/key.pem", "git show HEAD:./src/key.pem", "git show :0:src/key.pem",
        "git cat-file -p HEAD:src/key.pem", "git diff HEAD~1:src/key.pem a.py", "git log -L1,2:src/key.pem",
        "git diff -- ':(top)src/key.pem'", "git diff -- :/src/key.pem", "cd src && git show HEAD:./key.pem",
        "cd src && git show HEAD:src/key.pem", "git grep x -- src/key.pem",
        "echo HEAD:src/key.pem && git show HEAD:src/key.pem",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", list(PermissionMode))
def test_a_withheld_file_cannot_be_read_by_its_name_in_git(work: Path, command: str, mode: PermissionMode):
    verdict = judged(work, command, "src/*.pem", mode=mode)
    assert verdict.decision is Decision.DENY, verdict
    assert judged(work, command, "*.other").decision is not Decision.DENY


SHOWING = [
    "git show", "git show HEAD", "git log -p", "git log -1 --patch", "git log --pat", "git log -pS x", "git log -u",
    "git diff", "git diff HEAD", "git diff HEAD~1 -- src", "git diff -U0", "git diff --stat -p", "git show :/first",
    "git show $X", "git cat-file -p 1234", "git cat-file --batch-all-objects --batch", "git grep canary HEAD",
    "git grep a.py", "git stash show -p", "git reflog -p", "git status -v", "git diff-tree -p HEAD",
    "git show HEAD -- '*.p?m'", "git diff a.py src", "git diff HEAD:src/b.py~", "git --no-pager log -p",
    "git show HEAD^{/first:a.py}", "git rev-list --all | xargs git show", "find . -name x -exec git diff {} +",
    "timeout 5 git diff", "ls; git diff | cat", "git blame src", "git diff --word-diff --name-only", "git show HEAD *",
]  # fmt: skip


@pytest.mark.parametrize("command", SHOWING)
def test_what_shows_all_that_git_has_asks_if_git_has_a_withheld_file(work: Path, command: str):
    verdict = judged(work, command, "*.pem")
    assert verdict.decision is Decision.ASK, verdict
    assert judged(work, command, "*.pem", mode=PermissionMode.PLAN).decision is Decision.DENY
    assert judged(work, command, "*.pem", mode=PermissionMode.ALL).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git status", "git log", "git log --oneline -5", "git log -n 3 -S x", "git diff --stat", "git show --name-only",
        "git diff a.py", "git diff HEAD a.py src/b.py", "git log -p -- a.py", "git show HEAD:a.py", "git blame a.py",
        "git cat-file -p HEAD:a.py", "git grep x -- a.py", "git stash list", "git ls-files", "git branch -v",
        "git reflog", "git rev-parse HEAD", "cd src && git diff b.py", "git show --stat HEAD",
    ],
)  # fmt: skip
def test_what_shows_no_content_or_only_that_of_other_files_runs_unasked(work: Path, command: str):
    verdict = judged(work, command, "*.pem", "new.key")
    assert verdict.decision is Decision.ALLOW, verdict


@pytest.mark.parametrize(
    ("patterns", "decision"),
    [
        ((), Decision.ALLOW),
        (("*.secret",), Decision.ALLOW),  # Git ignores it, so it has nothing of it
        (("*.absent", "~/.ssh/**", "/etc/**"), Decision.ALLOW),
        (("new.key",), Decision.ASK),  # not tracked, but in snapshots
        (("src/**",), Decision.ASK),
        (("src",), Decision.ASK),
        (("*.PEM",), Decision.ASK),
    ],
)
def test_it_asks_only_if_git_has_a_file_that_a_rule_withholds(
    work: Path, patterns: tuple[str, ...], decision: Decision
):
    verdict = judged(work, "git diff", *patterns)
    assert verdict.decision is decision, verdict
    if decision is Decision.ASK:
        assert "and a rule withholds that" in verdict.reason


def test_a_session_in_a_folder_of_a_repository_looks_at_all_of_it(work: Path):
    assert judged(work, "git diff", "*.pem", root=work / "src").decision is Decision.ASK
    assert judged(work, "git diff", "key.pem", root=work / "src").decision is Decision.ASK
    assert judged(work, "git diff", f"{work}/a.py", root=work / "src").decision is Decision.ASK


def test_outside_a_repository_there_is_nothing_to_ask_about(tmp_path: Path):
    (tmp_path / "key.pem").touch()
    assert judged(tmp_path, "git diff", "*.pem").decision is Decision.ALLOW
