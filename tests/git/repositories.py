"""A repository as its user has it, and a workspace as an agent has it."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from agentmesh.git.facts import TreeSnapshot
from agentmesh.git.place import Place, find, own_place
from agentmesh.git.store import MAX_FILE, Store
from agentmesh.git.trees import make_tree

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


@dataclass(frozen=True)
class Repository:
    """A working tree of git's."""

    top: Path

    @classmethod
    def init(cls, top: Path, *arguments: str) -> Repository:
        top.mkdir(parents=True)
        made = cls(top)
        made.git("init", "-q", *arguments)
        return made

    def git(self, *arguments: str, check: bool = True, text: bytes | None = None) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *arguments], cwd=self.top, check=False, capture_output=True, input=text
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.decode(errors="surrogateescape")

    def write(self, path: str, text: str | bytes, *, program: bool = False) -> Path:
        full = self.top / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text if isinstance(text, bytes) else text.encode())
        if program:
            full.chmod(0o755)
        return full

    def commit(self, message: str = "more") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def files(self, tree: str) -> dict[str, tuple[str, bytes]]:
        """Return mode and content of all files of a tree, read by git."""
        listed = self.git("ls-tree", "-r", "-z", tree).split("\0")[:-1]
        found = {}
        for line in listed:
            facts, path = line.split("\t", 1)
            mode, kind, name = facts.split()
            data = b"" if kind == "commit" else self.blob(name)
            found[path] = (mode, data)
        return found

    def blob(self, name: str) -> bytes:
        return subprocess.run(["git", "cat-file", "blob", name], cwd=self.top, check=True, capture_output=True).stdout

    def state(self) -> dict[str, str]:
        """Return everything of the repository that is not ours to change: a digest by file."""
        git = Path(self.git("rev-parse", "--path-format=absolute", "--git-common-dir").strip())
        found: dict[str, str] = {}
        for full in sorted(git.rglob("*")):
            path = full.relative_to(git).as_posix()
            if not path.startswith(("objects", "refs/agentmesh")) and full.is_file():
                found[path] = hashlib.sha256(full.read_bytes()).hexdigest()
        return found


def on_disk(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return all files and links below a directory, ``.git`` aside: kind with mode, and content."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if name != ".git"]
        for name in (*files, *(each for each in names if (Path(folder) / each).is_symlink())):
            full = Path(folder) / name
            mode = full.lstat().st_mode
            data = os.fsencode(full.readlink()) if stat.S_ISLNK(mode) else full.read_bytes()
            found[full.relative_to(top).as_posix()] = (mode, data)
    return found


@dataclass
class Workspace:
    """A workspace, its store, and its newest snapshot."""

    place: Place
    store: Store
    head: str | None = None

    @classmethod
    def of(cls, root: Path, folder: Path, *, max_file: int = MAX_FILE) -> Workspace:
        place = find(root)
        return cls(place, Store(place, folder, max_file=max_file))

    @property
    def root(self) -> Path:
        return self.place.root

    def take(self, ref: str | None = "refs/agentmesh/s/a/1", paths: Collection[str] | None = None) -> TreeSnapshot:
        """Take a snapshot on top of the newest."""
        taken = self.store.take(self.head, ref, paths)
        self.head = taken.tree
        return taken

    def changed(self, paths: Collection[str] | None = None) -> dict[str, str]:
        """Take a snapshot; return what changed, with its status."""
        return {each.path: each.status for each in self.take(paths=paths).changes}

    def own(self, folder: Path, *, copy: tuple[str, ...] = (), link: tuple[str, ...] = ()) -> Workspace:
        """Make a tree of its own from the newest snapshot."""
        assert self.head is not None
        make_tree(self.place, self.head, folder, folder.name, copy=copy, link=link)
        place = own_place(self.place, folder)
        return Workspace(place, Store(place, folder), self.head)
