"""Makes a release of the version in agentmesh/__init__.py: sdist, wheel, their hashes, and an annotated tag.

``make release`` runs it; ``make release ARGS=--dry-run`` does all but the tag. It pushes and uploads nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_ROOT = Path(__file__).parent.parent


class Refused(Exception):
    """Why there is no release; the message says what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the release; return 0 when it is there."""
    options = argparse.ArgumentParser(prog="make release", description=__doc__)
    options.add_argument("--dry-run", action="store_true", help="Do all but the tag.")
    options.add_argument("--no-try", action="store_true", help="Build and look; install nothing.")
    chosen = options.parse_args(arguments)
    try:
        made = release(_ROOT, lambda: _build(no_try=chosen.no_try), dry_run=chosen.dry_run)
    except Refused as why:
        print(f"release: {why}", file=sys.stderr)
        return 1
    print(f"release: {made}")
    return 0


def release(root: Path, build: Callable[[], None], *, dry_run: bool) -> str:
    """Check, build into dist/, write the hashes and set the tag; return what was made.

    Raises:
        Refused: the tree, the version or what was built is not fit for a release.
    """
    version = _version(root)
    tag = f"v{version}"
    _require_clean(root)
    if _git(root, "tag", "--list", tag):
        raise Refused(f"{tag} is there already. Raise __version__ in agentmesh/__init__.py.")
    notes = changes(root, version)
    commit = _git(root, "rev-parse", "HEAD")
    build()
    files = _built(root / "dist", version)
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (root / "dist" / "SHA256SUMS").write_text(sums, encoding="utf-8")
    _require_clean(root)
    message = f"agentmesh {version}\n\n{notes}\n\n{sums}"
    if dry_run:
        return f"dist/ is ready. {tag} would be set on {commit[:12]}, and say:\n\n{message}"
    # Verbatim: git would take the headings of the notes for comments.
    _git(root, "tag", "--annotate", "--cleanup=verbatim", "--file=-", tag, commit, text=message)
    return f"dist/ is ready, and {tag} is set. Next: git push origin {tag}, and upload what is in dist/."


def changes(root: Path, version: str) -> str:
    """Return the changelog's section of a version, without its heading."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise Refused(f"CHANGELOG.md says nothing of {version}. Write a section '## [{version}] - DATE'.")
    return section[1].strip()


def _version(root: Path) -> str:
    text = (root / "agentmesh" / "__init__.py").read_text(encoding="utf-8")
    if found := re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE):
        return found[1]
    raise Refused("agentmesh/__init__.py has no __version__.")


def _require_clean(root: Path) -> None:
    if changed := _git(root, "status", "--porcelain"):
        raise Refused(f"the tree has changes. Commit or undo them first:\n{changed}")


def _built(dist: Path, version: str) -> list[Path]:
    """Return what was built, and nothing but it may be there."""
    wanted = {f"agentmesh-{version}.tar.gz", f"agentmesh-{version}-py3-none-any.whl"}
    found = {file.name for file in dist.iterdir()} - {"SHA256SUMS", ".gitignore"} if dist.is_dir() else set()
    if found != wanted:
        raise Refused(f"dist/ has {sorted(found)}, and should have {sorted(wanted)}.")
    return [dist / name for name in sorted(wanted)]


def _build(*, no_try: bool) -> None:
    command = [sys.executable, "-m", "scripts.package", *(["--no-try"] if no_try else [])]
    if subprocess.run(command, cwd=_ROOT, check=False).returncode:
        raise Refused("the packages are not fit for a release; see above.")


def _git(root: Path, *words: str, text: str | None = None) -> str:
    """Return what a git command prints."""
    done = subprocess.run(["git", *words], cwd=root, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
