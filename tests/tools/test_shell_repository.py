"""What a repository's own files let git run; some hostile ones are shown to work with git itself."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agentmesh.tools.shell.judge import read_shell
from agentmesh.tools.shell.repository import git_directories, repository_objection

_CLEAN = {
    "HOME": "/nonexistent",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
}


def _git(directory: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=directory, env=_CLEAN, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository with two commits."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    _git(work, "init", "-q", "-b", "main")
    for text in ("one\n", "two\n"):
        (work / "a").write_text(text)
        (work / "sub" / "b").write_text(text)
        _git(work, "add", ".")
        _git(work, "commit", "-q", "-m", text.strip())
    return work


def _asked(work: Path, command: str) -> bool:
    reading = read_shell(command, work)
    return bool(reading.problem) or not all(part.read_only for part in reading.parts)


def test_an_ordinary_repository_is_looked_at_without_asking(work: Path):
    _git(work, "remote", "add", "origin", "https://example.com/x.git")
    _git(work, "config", "branch.main.remote", "origin")
    _git(work, "config", "user.email", "ann@example.com")
    _git(work, "config", "alias.st", "!touch X")
    (work / ".gitattributes").write_text("*.py diff=python\n")
    for command in ("git status", "git diff HEAD~1", "cd sub && git log", "git -C sub show", "git config -l"):
        assert not _asked(work, command), read_shell(command, work)


_KEYS = [
    "diff.external",
    "diff.x.textconv",
    "diff.x.command",
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "gpg.program",
    "gpg.ssh.program",
    "log.showSignature",
    "man.x.cmd",
    "core.fsmonitor",
    "core.pager",
    "pager.log",
    "core.sshCommand",
    "core.editor",
    "core.worktree",
    "core.gitProxy",
    "core.askPass",
    "core.alternateRefsCommand",
    "core.attributesFile",
    "include.path",
    "includeIf.gitdir:/.path",
    "remote.x.promisor",
    "remote.x.partialCloneFilter",
    "remote.x.uploadpack",
    "remote.x.vcs",
    "extensions.partialClone",
    "extensions.refStorage",
    "submodule.recurse",
    "diff.submodule",
    "status.submoduleSummary",
    "format.pretty",
    "pretty.x",
    "credential.helper",
    "url.x.insteadOf",
    "trailer.x.command",
    "tar.x.command",
    "merge.x.driver",
    "alias.whatchanged",
    "interactive.diffFilter",
    "sequence.editor",
    "web.browser",
    "browser.x.cmd",
    "difftool.x.cmd",
    "unheard.of",
]


@pytest.mark.parametrize("key", _KEYS)
def test_a_key_that_is_not_known_to_be_harmless_asks_and_is_named(work: Path, key: str):
    _git(work, "config", key, "./evil")
    for command in ("git log", "cd sub && git diff", "git -C sub status", "git show HEAD:a"):
        assert _asked(work, command)
    assert (
        key.rsplit(".", maxsplit=1)[-1].lower()
        in repository_objection(str(work), str(work), files=False, objects="").lower()
    )
    assert not _asked(work, "git --version")


@pytest.mark.parametrize(
    "line",
    [
        "[diff]\n\texternal = ./evil",
        "[DIFF]\nEXTERNAL=./evil",
        "[diff] external = ./evil",
        "[core]\n\tbare = fa\\\nlse\n[diff]\nexternal=./e",
        '[core "x"]\n\tpager = x',
        "[diff.x]\n\ttextconv = ./evil",
        "[core]bare=false[diff]external=./evil",
        "\ufeff[diff]\nexternal=./evil",
        "[core]\r\tpager = x",
        "[core]\n\u00a0pager = x",
        "[core]\nfilemode",
        "[core]\n\u000bpager = x",
        "[core\n]\npager=x",
        '[remote "x"]\n\turl = ext::./evil',
        '[remote "x\\"]\n[diff]\\""]\nexternal=./evil',
        "[core]\nhooksPath = ~/x",
        "[core]\nhooksPath = x ; y",
        "# x\\\n[diff]\nexternal = ./evil",
        "; x \\\n[gpg]\nprogram = x",
        '[branch "x"] ; \n[gpg]program=x',
    ],
)
def test_a_line_in_another_form_hides_nothing(work: Path, line: str):
    config = work / ".git" / "config"
    config.write_text(config.read_text() + line + "\n", encoding="utf-8")
    understood = subprocess.run(
        ["git", "config", "-l", "--local"], cwd=work, env=_CLEAN, capture_output=True, text=True, check=False
    )
    harmless = understood.returncode == 0 and understood.stdout.splitlines()[-1] == "core.filemode"
    assert _asked(work, "git log") is not harmless


def test_the_configuration_of_one_worktree_counts(work: Path):
    _git(work, "config", "extensions.worktreeConfig", "true")
    assert not _asked(work, "git log")
    _git(work, "config", "--worktree", "diff.external", "./evil")
    assert _asked(work, "git log")


def _planted(directory: Path) -> None:
    """Make a repository without a working tree out of files, as a checkout may hold them."""
    (directory / "objects").mkdir(parents=True)
    (directory / "refs").mkdir()
    (directory / "HEAD").write_text("ref: refs/heads/main\n")


def test_a_repository_made_of_files_asks(work: Path):
    _planted(work / "sub" / "planted")
    for command in ("cd sub/planted && git status", "git -C sub/planted status", "cd sub; cd planted; git log"):
        assert _asked(work, command)
    assert not _asked(work, "git status")


def test_git_itself_uses_a_repository_made_of_files(work: Path):
    planted = work / "sub" / "planted"
    shutil.copytree(work / ".git", planted)
    (planted / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ../..\n"
        "[diff]\n\texternal = touch ran; true\n"
    )
    (work / "a").write_text("three\n")
    subprocess.run(["git", "diff"], cwd=planted, env=_CLEAN, capture_output=True, check=False)
    assert (work / "ran").exists()
    assert _asked(work, "git -C sub/planted diff")


def test_a_repository_whose_objects_are_elsewhere_asks(work: Path):
    (work / "HEAD").write_text("ref: refs/heads/main\n")
    (work / "commondir").write_text("sub\n")
    assert _asked(work, "git status")


def test_the_working_directory_itself_may_be_such_a_repository(tmp_path: Path):
    _planted(tmp_path / "work")
    assert _asked(tmp_path / "work", "git status")


def test_what_git_passes_over_does_not_hide_the_repository_above(work: Path):
    _git(work, "config", "diff.external", "./evil")
    (work / "sub" / ".git").mkdir()
    assert _asked(work, "git -C sub diff")


def test_a_repository_above_the_working_directory_asks(work: Path):
    assert _asked(work / "sub", "git log")


def test_where_there_is_no_repository_git_finds_none(tmp_path: Path):
    (tmp_path / "plain").mkdir()
    assert not _asked(tmp_path / "plain", "git status")


def _submodule(work: Path) -> None:
    other = work.parent / "other"
    other.mkdir()
    _git(other, "init", "-q")
    _git(other, "commit", "-q", "--allow-empty", "-m", "x")
    _git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")


def test_submodules_ask_where_git_may_look_into_them(work: Path):
    _submodule(work)
    assert all(_asked(work, command) for command in ("git status", "git diff", "git describe --dirty", "git ls-files"))
    assert not _asked(work, "git log --oneline")
    assert _asked(work, "git -C module log")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_submodules_are_seen_in_each_version_of_the_index(work: Path, version: int):
    _submodule(work)
    _git(work, "update-index", "--index-version", str(version))
    assert _asked(work, "git status")


def test_submodules_are_seen_in_a_split_index(work: Path):
    _submodule(work)
    _git(work, "-c", "core.splitIndex=true", "update-index", "--split-index")
    assert _asked(work, "git status")


def test_the_hook_that_looking_may_run_asks(work: Path):
    hook = work / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    assert _asked(work, "git status")


def test_the_hook_is_found_where_the_configuration_puts_hooks(work: Path):
    _git(work, "config", "core.hooksPath", ".husky")
    (work / ".husky").mkdir()
    assert not _asked(work, "git status")
    (work / ".husky" / "post-index-change").write_text("#!/bin/sh\ntouch ran\n")
    assert _asked(work, "cd sub && git status")


def test_objects_of_another_repository_ask(work: Path):
    alternates = work / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text("/elsewhere/objects\n")
    assert _asked(work, "git log")


def test_a_configuration_that_cannot_be_read_asks(work: Path):
    (work / ".git" / "config").unlink()
    (work / ".git" / "config").mkdir()
    assert _asked(work, "git log")


def _linked(work: Path) -> Path:
    linked = work.parent / "linked"
    _git(work, "worktree", "add", "-q", str(linked))
    return linked


def test_a_linked_worktree_is_looked_at_and_its_directories_are_named(work: Path):
    linked = _linked(work)
    assert not _asked(linked, "git status")
    own, common = git_directories(linked)
    assert (Path(own), Path(common)) == ((work / ".git" / "worktrees" / "linked").resolve(), (work / ".git").resolve())
    assert git_directories(work) == ()


def test_a_linked_worktree_of_a_hostile_repository_asks(work: Path):
    linked = _linked(work)
    _git(work, "config", "diff.external", "./evil")
    assert _asked(linked, "git diff")


def _named_in_a_file(work: Path, thief: Path) -> None:
    (thief / ".git").write_text(f"gitdir: {work}/.git\n")


def _worktree_of_another(work: Path, thief: Path) -> None:
    (thief / ".git").write_text(f"gitdir: {work}/.git/worktrees/linked\n")


def _nowhere(work: Path, thief: Path) -> None:
    (thief / ".git").write_text("gitdir: /nonexistent\n")


def _two_lines(work: Path, thief: Path) -> None:
    (thief / ".git").write_text(f"gitdir: x\ngitdir: {work}/.git\n")


def _linked_directory(work: Path, thief: Path) -> None:
    (thief / ".git").symlink_to(work / ".git")


def _forged_inside(work: Path, thief: Path) -> None:
    own = thief / "admin" / "worktrees" / "x"
    own.mkdir(parents=True)
    (own / "commondir").write_text(f"{work}/.git\n")
    (own / "gitdir").write_text(f"{thief}/.git\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    (thief / ".git").write_text(f"gitdir: {own}\n")


def _common_of_another(work: Path, thief: Path) -> None:
    (thief / ".git").mkdir()
    (thief / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (thief / ".git" / "commondir").write_text(f"{work}/.git\n")


@pytest.mark.parametrize(
    "steal",
    [
        _named_in_a_file,
        _worktree_of_another,
        _nowhere,
        _two_lines,
        _linked_directory,
        _forged_inside,
        _common_of_another,
    ],
)
def test_a_git_file_that_leads_to_a_foreign_repository_asks_and_opens_nothing(
    work: Path, steal: Callable[[Path, Path], None]
):
    _linked(work)
    thief = work.parent / "thief"
    thief.mkdir()
    steal(work, thief)
    assert _asked(thief, "git log")
    assert git_directories(thief) == ()


@pytest.mark.parametrize("key", ["diff.external", "core.fsmonitor", "diff.x.textconv", "filter.x.clean"])
def test_git_itself_runs_what_these_keys_name(work: Path, key: str):
    (work / ".gitattributes").write_text("a diff=x filter=x\n")
    (work / "a").write_text("of another size: Git looks at nothing else within a second\n")
    _git(work, "config", key, "touch ran; cat")
    subprocess.run(["git", "diff"], cwd=work, env=_CLEAN, capture_output=True, check=False)
    assert (work / "ran").exists()
    assert _asked(work, "git diff")
