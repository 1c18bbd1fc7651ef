"""Builds the sdist and, out of it, the wheel; looks into both; installs them outside the checkout and tries them.

``make package`` runs it. Each Python from 3.11 to 3.14 that is found gets an environment of its own, in a folder that
is removed at the end. It needs the standard library, pip and a package index.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.package import contents, pythons

_ROOT = Path(__file__).parents[2]
_LOCKED = _ROOT / "requirements" / "run.txt"
_LOCKED_EXTRAS = _ROOT / "requirements" / "dev.txt"
_LOCKED_TOOLS = _ROOT / "requirements" / "package.txt"
_SMOKE = Path(__file__).parent / "smoke.py"
_MINUTES = 10
_SIDE_BY_SIDE = 2


class Step(Exception):
    """A step that failed; what it said is the message."""


def main() -> int:
    """Build, look and try; return 0 when all of it is right."""
    options = argparse.ArgumentParser(prog="make package", description=__doc__)
    options.add_argument("--only", metavar="VERSION", help="Try this Python only, as in 3.12.")
    options.add_argument("--no-try", action="store_true", help="Build and look; install nothing.")
    chosen = options.parse_args()
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="agentmesh-package-"))
    place.chmod(0o711)  # as root the embedded server belongs to a user of its own, who has to pass
    try:
        sdist, wheel = _build(place)
        if not chosen.no_try:
            _try_all(sdist, wheel, place, chosen.only)
    except (Step, contents.Wrong) as failed:
        print(f"package: {failed}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(f"package: all is well, {time.monotonic() - began:.0f} s")
    return 0


def _build(place: Path) -> tuple[Path, Path]:
    """Make dist/ anew and look into what is there; return the sdist and the wheel."""
    tools = _environment(Path(sys.executable), place / "tools")
    _install(tools, "--require-hashes", "--only-binary", ":all:", "-r", str(_LOCKED_TOOLS))
    dist = _ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    # The wheel is made of the unpacked sdist, by the locked backend.
    _run([tools, "-m", "build", "--no-isolation", "--outdir", dist, _ROOT], cwd=_ROOT)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    contents.look(wheel, sdist, _ROOT)
    _run([tools, "-P", _ROOT / "scripts" / "package" / "metadata.py", wheel, sdist], cwd=place)
    for built in (wheel, sdist):
        print(f"package: {built.name}, {built.stat().st_size / 1000:,.0f} kB")
    print(f"package: in the wheel: {contents.summary(wheel)}")
    return sdist, wheel


def _try_all(sdist: Path, wheel: Path, place: Path, only: str | None) -> None:
    """Try every Python that is here, two at a time; the sdist with the first."""
    found = {version: python for version, python in pythons.find().items() if only in (None, version)}
    for version in pythons.VERSIONS:
        if version not in found and only in (None, version):
            print(f"package: Python {version} is not here: nothing was tried with it. {_locked_for(version, place)}")
    if not found:
        raise Step("no Python was found, so nothing was tried")
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        for tried in [
            pool.submit(_try, version, python, wheel, None if number else sdist, place / version)
            for number, (version, python) in enumerate(sorted(found.items()))
        ]:
            print(f"package: {tried.result()}", flush=True)


def _try(version: str, python: Path, wheel: Path, sdist: Path | None, place: Path) -> str:
    """Install the wheel with what is locked and try it, without the extras and with them; return what was done."""
    began = time.monotonic()
    installed = _environment(python, place)
    _install(installed, "--require-hashes", "--only-binary", ":all:", "-r", str(_LOCKED))
    _install(installed, "--no-deps", "--no-index", str(wheel))
    _run([installed, "-m", "pip", "check"], cwd=place)
    seconds = time.monotonic() - began
    _smoke(installed, place, "plain")
    _install(installed, "--constraint", str(_without_hashes(place)), "--only-binary", ":all:", f"{wheel}[mcp,otel]")
    _run([installed, "-m", "pip", "check"], cwd=place)
    _smoke(installed, place, "extras")
    if sdist:
        # As somebody does who takes no wheels: pip fetches the backend and builds.
        _run([installed, "-m", "pip", "--quiet", "uninstall", "--yes", "agentmesh"], cwd=place)
        _install(installed, "--no-deps", "--no-cache-dir", str(sdist))
        _smoke(installed, place, "brief")
    what = f"the wheel{' and the sdist' if sdist else ''}"
    took = f"{time.monotonic() - began:.0f} s, of which {seconds:.0f} to install the first"
    return f"Python {version} ({python}): installed and tried {what}, {took}"


def _smoke(python: Path, place: Path, what: str) -> None:
    """Try what is installed, in an empty home and an empty environment."""
    home = place / "home"
    home.mkdir(mode=0o711, exist_ok=True)
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join((str(python.parent), os.defpath)),
        "AGENTMESH_DATA_DIR": str(home / "data"),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    _run([python, "-P", _SMOKE, what], cwd=home, environment=environment, shown=True)


def _environment(python: Path, place: Path) -> Path:
    """Make a virtual environment; return its Python."""
    try:
        _run([python, "-m", "venv", place], cwd=_ROOT)
    except Step as failed:
        raise Step(f"{python} makes no virtual environment (on Debian: python3-venv): {failed}") from failed
    return place / "bin" / "python"


def _install(python: Path, *what: str) -> None:
    _run(
        [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile", *what],
        cwd=python.parent,
    )


def _without_hashes(place: Path) -> Path:
    """Write what is locked as constraints: a wheel that was built just now has no hash there."""
    lines = (line.rstrip("\\ ") for line in _LOCKED_EXTRAS.read_text().splitlines())
    written = place / "constraints.txt"
    written.write_text("\n".join(line for line in lines if line and not line.startswith((" ", "#"))) + "\n")
    return written


def _locked_for(version: str, place: Path) -> str:
    """Say whether all that is locked has wheels for a Python that is not here."""
    where = ["--python-version", version, "--target", str(place / "none"), "--only-binary", ":all:", "--no-deps"]
    pip = [str(place / "tools/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    try:
        _run([*pip, "--dry-run", "--require-hashes", *where, "-r", _LOCKED], cwd=place)
    except Step as failed:
        return f"Not all that is locked has wheels for it: {str(failed).splitlines()[-1]}"
    return "All that is locked has wheels for it on this platform."


def _run(
    command: Sequence[str | Path], *, cwd: Path, environment: dict[str, str] | None = None, shown: bool = False
) -> None:
    """Run a program, its output kept for when it fails; raise Step then."""
    words = [str(word) for word in command]
    pipe = None if shown else subprocess.PIPE
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT,
            text=True, timeout=_MINUTES * 60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Step(f"{' '.join(words)} took more than {_MINUTES} minutes") from late
    if done.returncode:
        raise Step(f"{' '.join(words)} ended with {done.returncode}\n{(done.stdout or '').strip()}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
