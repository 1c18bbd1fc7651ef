"""The ``.git`` of an agent's tree: a repository of its own that reads the user's objects and cannot reach its refs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pygit2

from agentmesh.git.opening import ignores_case, repository_of
from agentmesh.git.where import Place

_SETTINGS: Final = (
    "core.filemode",
    "core.symlinks",
    "core.precomposeunicode",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.excludesfile",
    "core.attributesfile",
    "user.name",
    "user.email",
)
"""The user's settings that say what a file's bytes mean, and who commits. No setting that names a program."""
_CONFIG: Final = """\
[core]
	repositoryformatversion = 0
	bare = false
	logallrefupdates = true
[gc]
	auto = 0
"""
_COPIED: Final = ("refs/heads/", "refs/tags/", "refs/remotes/")


def make(place: Place, top: Path) -> None:
    """Make ``top/.git``: on the user's branch or commit, with its branches and tags as they are now."""
    repository = repository_of(place)
    git = top / ".git"
    for each in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git / each).mkdir(parents=True, exist_ok=True)
    (git / "objects" / "info" / "alternates").write_bytes(os.fsencode(place.objects) + b"\n")
    (git / "HEAD").write_bytes((place.git_dir / "HEAD").read_bytes())
    for name in ("info/exclude", "info/attributes", "shallow"):
        if (place.common_dir / name).is_file():
            shutil.copyfile(place.common_dir / name, git / name)
    (git / "packed-refs").write_bytes(_packed(repository))
    _configure(repository, git / "config")


def ignore(top: Path, paths: Sequence[str]) -> None:
    """Have git in the tree ignore paths that were copied or linked into it."""
    if paths:
        with (top / ".git" / "info" / "exclude").open("ab") as file:
            file.write(b"\n" + b"".join(b"/%b\n" % os.fsencode(_escaped(path)) for path in paths))


def _packed(repository: pygit2.Repository) -> bytes:
    lines = [b"# pack-refs with: sorted\n"]
    for name in sorted(repository.raw_listall_references()):
        if name.startswith(tuple(each.encode() for each in _COPIED)):
            found = repository.references[os.fsdecode(name)]
            if isinstance(found.target, pygit2.Oid):
                lines.append(b"%b %b\n" % (str(found.target).encode(), name))
    return b"".join(lines)


def _configure(repository: pygit2.Repository, path: Path) -> None:
    path.write_text(_CONFIG)
    config = pygit2.Config(os.fspath(path))
    for key in _SETTINGS:
        if key in repository.config:
            config[key] = repository.config[key] or ""
    if ignores_case(path.parent.parent):
        config["core.ignorecase"] = True


def _escaped(path: str) -> str:
    """Return a path as a pattern of ``.gitignore`` that means itself."""
    return "".join(f"\\{each}" if each in "*?[]\\!# " else each for each in path)
