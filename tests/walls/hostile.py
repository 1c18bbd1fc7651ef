"""The hostile repositories, and the commands of an agent that only looks around in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.walls import directories
from tests.walls import repositories as make
from tests.walls.repositories import Tree

_LOOK = ("git status", "git status --short", "git log --oneline -3", "git log -p -2", "git diff", "git diff HEAD~1")
_MORE = (
    "git show HEAD",
    "git blame a",
    "git branch -a",
    "git ls-files",
    "git grep x",
    "git stash list",
    "git describe",
)
_FILES = ("ls -la", "ls", "find . -type f", "cat a", "head -5 *", "grep -rn x .", "wc -l *", "file *", "du -sh .")
_EVERYTHING = (*_LOOK, *_MORE, *_FILES, "git log --stat", "git shortlog -s HEAD", "git tag -l", "git remote -v")


@dataclass(frozen=True, slots=True)
class Hostile:
    """A repository, and what is done in it."""

    name: str
    build: Callable[[Tree], None]
    commands: tuple[str, ...] = _EVERYTHING


_FILTER = ("filter.x.clean=@", "filter.x.smudge=@", "filter.x.required=true")
REPOSITORIES = (
    Hostile("diff-external", make.settings("diff.external")),
    Hostile("diff-command", make.settings("diff.x.command=@", attributes="* diff=x\n")),
    Hostile("textconv", make.settings("diff.x.textconv=@", attributes="* diff=x\n")),
    Hostile(
        "textconv-cached", make.settings("diff.x.textconv=@", "diff.x.cachetextconv=true", attributes="* diff=x\n")
    ),
    Hostile("clean", make.settings(*_FILTER, attributes="* filter=x\n")),
    Hostile("process", make.settings("filter.x.process=@", "filter.x.required=true", attributes="* filter=x\n")),
    Hostile("merge-driver", make.settings("merge.x.driver=@", attributes="* merge=x\n")),
    Hostile(
        "signature",
        make.signed,
        (*_EVERYTHING, "git log --show-signature", "git show --show-signature", "git log --format=%G?"),
    ),
    Hostile("fsmonitor", make.settings("core.fsmonitor")),
    Hostile(
        "pager",
        make.settings("core.pager", "pager.log", "pager.status", "pager.diff", "pager.branch=@", "color.pager=true"),
    ),
    Hostile("editor", make.settings("core.editor", "sequence.editor", "interactive.diffFilter")),
    Hostile(
        "alias",
        make.settings("alias.status=!@", "alias.log=!@", "alias.st=!@", "alias.diff=!@"),
        (*_EVERYTHING, "git st"),
    ),
    Hostile("hooks", make.hooks),
    Hostile("ssh", make.ssh, (*_EVERYTHING, "git ls-remote", "git remote show origin", "git fetch --dry-run")),
    Hostile(
        "help",
        make.settings("man.x.cmd=@", "man.viewer=x", "help.format=man", "browser.x.cmd=@", "help.browser=x"),
        (*_EVERYTHING, "git help log", "git log --help", "git help -w log"),
    ),
    Hostile("promisor", make.promisor, (*_EVERYTHING, "git cat-file -p HEAD~1:a", "git show HEAD~1:a")),
    Hostile("submodule", make.submodule, (*_EVERYTHING, "git submodule status", "git diff --submodule=diff")),
    Hostile("bare", make.bare),
    Hostile(
        "bare-below",
        make.bare_below,
        (*_EVERYTHING, "cd below && git status", "git -C below status", "cd below; git log"),
    ),
    Hostile("git-file", make.git_file),
    Hostile("commondir", make.common_dir),
    Hostile("include", make.include),
    Hostile("include-outside", make.include_outside, (*_EVERYTHING, "git config --list", "git config --get-regexp .")),
    Hostile("config-worktree", make.config_worktree),
    Hostile("worktree-outside", make.worktree_outside, (*_EVERYTHING, "git ls-files -o", "git diff --stat")),
    Hostile("info-attributes", make.info_attributes),
    Hostile("attributes-file", make.attributes_file),
    Hostile(
        "alternates",
        make.alternates,
        (*_EVERYTHING, "git show other:secret.txt", "git log other -p", "git grep canary other"),
    ),
    Hostile(
        "links",
        directories.links,
        (
            *_FILES,
            "cat leak",
            "cat *",
            "cat to-leak",
            "grep -r canary .",
            "grep -R canary .",
            "ls out/",
            "ls -R",
            "find -L . -maxdepth 2",
            "head -1 l*",
            "tail up/*",
            "wc -l leak",
            "diff a leak",
            "cat loop",
        ),
    ),
    Hostile(
        "git-links", directories.git_links, (*_EVERYTHING, "git log leaked", "git check-attr -a a", "git shortlog HEAD")
    ),
    Hostile(
        "planted-programs",
        directories.planted_programs,
        (*_EVERYTHING, "which ls git", "type cat", "command -v rg", "bash --version"),
    ),
    Hostile("shell-files", directories.shell_files, (*_EVERYTHING, "cat .env", "rg x", "env", "cat .envrc .bashrc")),
    Hostile(
        "build-files",
        directories.build_files,
        (
            *_EVERYTHING,
            "python3 --version",
            "cat Makefile",
            "make -n",
            "npm ls",
            "node --version",
            "python3 -V",
            "cat package.json",
            "jq .name package.json",
        ),
    ),
    Hostile(
        "own-settings",
        directories.own_settings,
        (*_EVERYTHING, "cat .mcp.json", "cat .agentmesh/config.toml", "echo x > made-here"),
    ),
    Hostile(
        "names",
        directories.names,
        (
            *_EVERYTHING,
            "ls *",
            "cat -- *",
            "sort *",
            "find *",
            "for f in *; do echo $f; done",
            "grep x *",
            "git diff *",
        ),
    ),
    Hostile(
        "devices",
        directories.devices,
        ("ls -la", "file *", "stat huge", "du -sh .", "git status", "find . -type p", "head -c 10 huge", "grep -c x a"),
    ),
    Hostile("setuid", directories.setuid, (*_EVERYTHING, "find . -perm -4000", "stat sh")),
    Hostile(
        "index",
        directories.index,
        (*_EVERYTHING, "git diff --cached --stat", "git update-index --refresh", "git describe --dirty"),
    ),
)
