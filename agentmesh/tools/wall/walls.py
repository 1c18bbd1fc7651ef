"""Put a command behind the wall that fits it, of a kind that this machine can build."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentmesh.config.schema import Sandbox as SandboxSettings
from agentmesh.engine.tool import ToolError
from agentmesh.tools.mesh_files import MeshFiles
from agentmesh.tools.wall import view
from agentmesh.tools.wall.kinds import Walled, built, first_that_works
from agentmesh.workspace.roots import OwnTree

READING_NOTE: Final = (
    "Nobody approved this command, so it ran read-only: nothing can be written but an empty /tmp, and there is no "
    "network, no home and no other process."
)
_APPROVED_NOTE: Final = (
    "It ran in a sandbox: nothing can be written but the working directory, caches and a /tmp of the session's own"
    "{network}."
)
_DROPPED: Final = frozenset({"SSH_AUTH_SOCK", "TMPDIR", "TEMP", "TMP"})
_DROPPED_FOR_READING: Final = ("XDG_",)
_GIT_FOR_READING: Final = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
}
_GIT_SETTINGS_FOR_READING: Final = {
    "core.alternateRefsCommand": "false",
    "core.attributesFile": "/dev/null",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "gc.auto": "0",
    "gpg.program": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
}
"""Git's settings for reading without running a program that a repository names; the wall is the actual protection."""


class Walls:
    """Builds the walls of one worker; checks the abilities of the machine only once."""

    def __init__(self, settings: SandboxSettings, hidden: Sequence[Path] = (), trees: Path | None = None) -> None:
        """``hidden``: where the mesh keeps its data, sockets, configuration and logs; ``trees``: the agents' trees."""
        self._settings = settings
        self.trees = trees
        self.mesh_files = MeshFiles(hidden, trees)
        self._hidden = (*map(str, hidden), *settings.hidden)
        self._lock = threading.Lock()
        self._looked: tuple[str, str] | None = None
        self._warned = False
        self._home: list[str] = []
        self._folders: dict[str, str] = {}
        self._remove = weakref.finalize(self, _remove_all, self._home)

    @property
    def kind(self) -> str:
        """The kind of wall that this machine builds: bubblewrap, landlock or seatbelt; empty if it builds none."""
        return self._look()[0]

    def problem(self) -> str:
        """Return why no wall can be built here; empty if one can."""
        return self._look()[1]

    def home(self) -> str:
        """Return the directory of all temporary files; make it at the first call.

        ``close`` removes it, and so does the end of the program. If the worker is killed, the spawner removes it.
        """
        # Critical section: make it only once.
        with self._lock:
            return self._made_home()

    def close(self) -> None:
        """Remove the temporary files of all sessions."""
        with self._lock:
            self._folders.clear()
            _remove_all(self._home)

    @contextmanager
    def around(
        self,
        argv: Sequence[str],
        workdir: Path,
        env: Mapping[str, str],
        *,
        approved: bool,
        session: str,
        withheld: Callable[[str], bool] | None = None,
        own: OwnTree | None = None,
        project: Path | None = None,
    ) -> Iterator[Walled]:
        """Yield how to run a command; raise ToolError if it must not run without a wall.

        A command that nobody approved never runs without one, whatever the settings say. A command of an agent with its
        ``own`` tree never changes the user's checkout or repository. ``project`` is the session's directory: what rules
        withhold there is hidden too, wherever the command runs.
        """
        kind = self.kind
        if approved and (self._settings.bash == "off" or not kind):
            yield self._unwalled(argv, env)
        elif not kind:
            raise ToolError(
                f"A command that nobody approved only runs behind a wall, and there is none here: {self.problem()}.",
                "Ask the user to approve it, or to install bubblewrap.",
            )
        elif approved:
            elsewhere = project or (own.project if own else workdir)
            beside = _withheld(elsewhere, withheld) if elsewhere != workdir else []
            seen = self._approved(workdir, _withheld(workdir, withheld), session, own, beside)
            yield built(kind, argv, self._approved_env(env, seen), seen, self._approved_note(seen))
        else:
            with self._temporary(kind) as folder:
                seen = view.reading_view(
                    workdir,
                    env,
                    hidden=self._hidden,
                    withheld=_withheld(workdir, withheld),
                    temporary=folder,
                    etc=self._folder("", view.copy_etc) if kind == "bubblewrap" else "",
                    trees=self.trees,
                )
                yield built(kind, argv, _reading_env(env, folder), seen, READING_NOTE)

    def _unwalled(self, argv: Sequence[str], env: Mapping[str, str]) -> Walled:
        if self._settings.bash == "required":
            raise ToolError(
                f"Commands may only run in a sandbox, and there is none here: {self.problem()}.",
                "Do without commands; the user can install bubblewrap, or set sandbox.bash in the configuration.",
            )
        if self._settings.bash == "off":
            return Walled(list(argv), dict(env))
        # Critical section: only one command of the worker reports it.
        with self._lock:
            first, self._warned = not self._warned, True
        warning = f"There is no sandbox here ({self.problem()}): approved commands run without." if first else ""
        return Walled(list(argv), dict(env), warning=warning)

    def _approved(
        self, workdir: Path, withheld: Sequence[str], session: str, own: OwnTree | None, beside: Sequence[str]
    ) -> view.View:
        """Return the view of an approved command. ``beside``: withheld files outside of its working directory."""
        return view.approved_view(
            workdir,
            writable=(*self._settings.writable, *([str(own.top)] if own else [])),
            read_only=own.read_only if own else (),
            trees=self.trees,
            hidden=(*self._hidden, *beside),
            withheld=withheld,
            network=self._settings.network,
            temporary=os.path.join(self._folder(session, _make_tmp), "tmp"),
        )

    def _approved_env(self, env: Mapping[str, str], seen: view.View) -> dict[str, str]:
        kept = {name: value for name, value in env.items() if name not in _DROPPED}
        if env.get("SSH_AUTH_SOCK") and os.path.realpath(env["SSH_AUTH_SOCK"]) in seen.writable:
            kept["SSH_AUTH_SOCK"] = env["SSH_AUTH_SOCK"]
        if self.kind != "bubblewrap":
            kept["TMPDIR"] = seen.temporary
        return kept

    def _approved_note(self, seen: view.View) -> str:
        return _APPROVED_NOTE.format(network="" if seen.network else ", and there is no network")

    def _folder(self, name: str, fill: Callable[[str], None] = lambda _folder: None) -> str:
        """Return a directory of this worker, made and filled at the first call, and removed with the worker."""
        # Critical section: one directory per name, filled before anybody gets it.
        with self._lock:
            if name not in self._folders or not os.path.isdir(self._folders[name]):
                made = tempfile.mkdtemp(dir=self._made_home())
                fill(made)
                self._folders[name] = made
            return self._folders[name]

    @contextmanager
    def _temporary(self, kind: str) -> Iterator[str]:
        """Make an empty directory for one command, if the wall cannot put one over /tmp."""
        if kind == "bubblewrap":
            yield ""
            return
        folder = tempfile.mkdtemp(dir=self.home())
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _made_home(self) -> str:
        if self._home and not os.path.isdir(self._home[0]):
            self._home.clear()
        if not self._home:
            self._home.append(os.path.realpath(tempfile.mkdtemp(prefix="agentmesh-tmp-")))
        return self._home[0]

    def _look(self) -> tuple[str, str]:
        # Critical section: the first caller tries out the machine, once.
        with self._lock:
            if self._looked is None:
                self._looked = first_that_works(self._settings.wall)
            return self._looked


def _withheld(workdir: Path, is_withheld: Callable[[str], bool] | None) -> list[str]:
    try:
        return view.withheld_paths(workdir, is_withheld)
    except view.TooManyWithheld as error:
        raise ToolError(
            "Rules withhold too many files of the working directory to hide them from a command.",
            "Use `read`, `grep` and `glob`; the user can withhold a folder instead of many files.",
        ) from error


def _reading_env(env: Mapping[str, str], folder: str) -> dict[str, str]:
    kept = {
        name: value for name, value in env.items() if name not in _DROPPED and not name.startswith(_DROPPED_FOR_READING)
    }
    known = int(kept.get("GIT_CONFIG_COUNT", "0"))
    settings = {kept[f"GIT_CONFIG_KEY_{n}"]: kept[f"GIT_CONFIG_VALUE_{n}"] for n in range(known)}
    for number, (key, value) in enumerate({**settings, **_GIT_SETTINGS_FOR_READING}.items()):
        kept |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    kept["GIT_CONFIG_COUNT"] = str(len({**settings, **_GIT_SETTINGS_FOR_READING}))
    home = folder or "/tmp"  # noqa: S108  the wall's own
    return {**kept, **_GIT_FOR_READING, "HOME": home, **({"TMPDIR": folder} if folder else {})}


def _make_tmp(folder: str) -> None:
    """Make the /tmp of a session: open to all who can reach it, in a directory that only this user can enter."""
    inner = os.path.join(folder, "tmp")
    os.mkdir(inner)
    os.chmod(inner, 0o1777)  # noqa: S103  as /tmp is


def _remove_all(folders: list[str]) -> None:
    while folders:
        shutil.rmtree(folders.pop(), ignore_errors=True)
