"""Hostile working directories, each with the commands of an agent that only looks around in it.

Whatever would run leaves a mark: the program ``PROGRAM`` makes a file beside itself and says ``planted-42``. Nothing of
it is in the commands.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

RAN = "planted-42"
"""What a planted program says; no file holds the word."""
_PROGRAM = """#!/bin/sh
touch "{folder}/made-by-program" "{outside}/made-by-program" 2> /dev/null
echo planted-$((40+2))
{then}
"""


class Tree:
    """The files of one repository, as it is made."""

    def __init__(self, folder: Path, secret: Path) -> None:
        self.folder = folder
        self.secret = secret
        """A file outside."""

    def write(self, name: str, text: str = "x\n", *, mode: int = 0o644) -> Path:
        """Write a file; return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def program(self, name: str, then: str = "") -> Path:
        """Write a program that leaves marks."""
        return self.write(name, _PROGRAM.format(folder=self.folder, outside=self.secret.parent, then=then), mode=0o755)

    def git(self, *words: str, folder: str = ".") -> str:
        """Run git, as the one who prepares the repository."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        for role in ("AUTHOR", "COMMITTER"):
            environ |= {f"GIT_{role}_NAME": "T", f"GIT_{role}_EMAIL": "t@example.com"}
        done = subprocess.run(["git", *words], cwd=self.folder / folder, env=environ, check=True, capture_output=True)
        return done.stdout.decode()

    def history(self, folder: str = ".") -> None:
        """Make two commits and a change that is not committed."""
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", folder=folder)
        for text in ("first\n", "second\n", "third x\n"):
            self.write(f"{folder}/a", text)
            self.write(f"{folder}/b.bin", text)
            if "third" not in text:
                self.git("add", "-A", folder=folder)
                self.git("commit", "-qm", text, folder=folder)

    def config(self, *settings: tuple[str, str]) -> None:
        """Begin a repository with these settings, made last so that making it runs nothing."""
        if not (self.folder / ".git").exists():
            self.history()
        for key, value in settings:
            self.git("config", key, value)


def settings(*names: str, then: str = "", attributes: str = "") -> Callable[[Tree], None]:
    """Return what makes a repository whose configuration names a program at each of these keys."""

    def build(tree: Tree) -> None:
        tree.history()
        program = tree.program("planted", then)
        if attributes:
            tree.write(".gitattributes", attributes)
        for name in names:
            key, _, value = name.partition("=")
            tree.git("config", key, value.replace("@", str(program)) if value else str(program))

    return build


def hooks(tree: Tree) -> None:
    tree.history()
    for name in ("post-checkout", "pre-commit", "post-index-change", "fsmonitor-watchman", "reference-transaction"):
        tree.program(f"hooks/{name}")
        tree.program(f".git/hooks/{name}")
    tree.git("config", "core.hooksPath", "hooks")


def ssh(tree: Tree) -> None:
    settings("core.sshCommand", "credential.helper", "core.askPass", "remote.origin.url=ssh://localhost/x")(tree)
    tree.git("config", "url.ssh://localhost/.insteadOf", "https://")


def promisor(tree: Tree) -> None:
    tree.history()
    program = tree.program("planted")
    tree.git("config", "remote.origin.url", f"ext::{program} %S")
    tree.git("config", "remote.origin.promisor", "true")
    tree.git("config", "extensions.partialClone", "origin")
    tree.git("config", "protocol.ext.allow", "always")
    blob = tree.git("rev-parse", "HEAD~1:a").strip()
    (tree.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()


def submodule(tree: Tree) -> None:
    tree.history("sub")
    program = tree.program("sub/planted")
    tree.history()
    tree.git("config", "core.fsmonitor", str(program), folder="sub")
    tree.git("config", "diff.external", str(program), folder="sub")
    tree.write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tupdate = !./planted\n')
    tree.git("config", "submodule.sub.url", "./sub")
    tree.git("config", "diff.submodule", "diff")
    tree.git("config", "status.submoduleSummary", "true")


def bare(tree: Tree) -> None:
    """Write a bare repository as plain files, which git takes for one wherever it finds them."""
    program = tree.program("planted")
    tree.write("HEAD", "ref: refs/heads/main\n")
    tree.write(
        "config", f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {program}\n[diff]\n\texternal = {program}\n"
    )
    for folder in ("objects", "refs/heads"):
        (tree.folder / folder).mkdir(parents=True)
    tree.write("a")


def bare_below(tree: Tree) -> None:
    tree.history()
    below = Tree(tree.folder / "below", tree.secret)
    bare(below)


def git_file(tree: Tree) -> None:
    """Point ``.git`` at a repository outside."""
    tree.write(".git", f"gitdir: {tree.secret.parent}/repo/.git\n")
    tree.write("a")


def common_dir(tree: Tree) -> None:
    tree.history()
    program = tree.program("planted")
    tree.write("elsewhere/config", f"[diff]\n\texternal = {program}\n[core]\n\tfsmonitor = {program}\n")
    for folder in ("objects", "refs"):
        (tree.folder / ".git" / folder).rename(tree.folder / "elsewhere" / folder)
    tree.write(".git/commondir", "../elsewhere\n")


def include(tree: Tree) -> None:
    tree.history()
    program = tree.program("planted")
    tree.write("included", f"[diff]\n\texternal = {program}\n[core]\n\tfsmonitor = {program}\n")
    tree.git("config", "include.path", "../included")
    tree.git("config", f"includeIf.gitdir:{tree.folder}/.path", "../included")


def include_outside(tree: Tree) -> None:
    tree.history()
    tree.git("config", "include.path", str(tree.secret))


def config_worktree(tree: Tree) -> None:
    tree.history()
    program = tree.program("planted")
    tree.git("config", "extensions.worktreeConfig", "true")
    tree.write(".git/config.worktree", f"[diff]\n\texternal = {program}\n[core]\n\tfsmonitor = {program}\n")


def worktree_outside(tree: Tree) -> None:
    tree.history()
    tree.git("config", "core.worktree", str(tree.secret.parent))


def info_attributes(tree: Tree) -> None:
    settings("diff.x.textconv=@", "diff.x.command=@", "filter.x.clean=@", "filter.x.process=@")(tree)
    tree.write(".git/info/attributes", "* diff=x filter=x\n")


def attributes_file(tree: Tree) -> None:
    settings("diff.x.textconv=@", "diff.x.command=@", "core.attributesFile=attributes")(tree)
    tree.write("attributes", "* diff=x\n")


def alternates(tree: Tree) -> None:
    tree.history()
    other = tree.secret.parent / "repo/.git/objects"
    tree.write(".git/objects/info/alternates", f"{other}\n")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=other.parent, capture_output=True, check=True
    ).stdout.decode()
    tree.write(".git/refs/heads/other", head)


def signed(tree: Tree) -> None:
    settings("gpg.program", "gpg.ssh.program", "gpg.x509.program", "log.showSignature=true")(tree)
    body = tree.git("cat-file", "commit", "HEAD")
    head, _, text = body.partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
    made = tree.write("commit", f"{head}\n{signature}\n\n{text}")
    tree.git("update-ref", "HEAD", tree.git("hash-object", "-t", "commit", "-w", str(made)).strip())
