"""Builds docs/ into build/site, strictly: a warning of the generator is an error, and so is what loads from elsewhere.

    python scripts/site.py             as `make docs` does
    python scripts/site.py --serve     and shows it on a port of loopback

The generator has an environment of its own below build/, made from requirements/site.txt. Links out of docs/ lead to
pages made of those files where the site has them, and are plain text where it does not.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS, BUILD, LOCK = ROOT / "docs", ROOT / "build", ROOT / "requirements" / "site.txt"
SITE = BUILD / "site"
MADE = {ROOT / "CHANGELOG.md": "changelog.md", ROOT / "bench" / "RESULTS.md": "benchmark-results.md"}
"""Files outside docs/ that are pages of the site, by their names there."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|audio|video)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preload|preconnect|modulepreload|icon))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]*"""
    r"""|@import\s+["']?(?:url\()?["']?(?:https?:)?//[^"')\s]*|url\(["']?(?:https?:)?//[^"')\s]*"""
)


def main() -> int:
    """Build the site; return an exit code."""
    source = _staged(BUILD / "site-source")
    done = subprocess.run([_generator(), "build", "--clean", "--strict"], cwd=source, check=False)
    if done.returncode:
        return done.returncode
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.move(source / "site", SITE)
    foreign = [f"{file.relative_to(SITE)}: {what}" for file, what in loaded_from_elsewhere(SITE)]
    sys.stderr.write("".join(f"loaded from elsewhere: {one}\n" for one in foreign))
    if not foreign and "--serve" in sys.argv[1:]:
        _serve()
    return 1 if foreign else 0


def _generator() -> str:
    """Return the program that builds, in an environment that is made when its requirements have changed."""
    folder = BUILD / "site-env"
    wanted = f"{folder} {hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
    stamp = folder / "installed"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--require-hashes", "--only-binary", ":all:", "-r", LOCK], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return str(folder / "bin" / "zensical")


def _staged(folder: Path) -> Path:
    """Copy the pages to where the generator reads them, with links as they are in the site."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns("*.toml"))
    shutil.copytree(ROOT / "bench", pages, ignore=_all_but_pictures, dirs_exist_ok=True)
    for original in (*DOCS.rglob("*.md"), *MADE):
        name = MADE.get(original) or original.relative_to(DOCS).as_posix()
        (pages / name).write_text(_page(original, name), encoding="utf-8")
    decisions = "".join(f', "decisions/{path.name}"' for path in sorted((DOCS / "decisions").glob("0*.md")))
    config = (DOCS / "zensical.toml").read_text(encoding="utf-8")
    config = config.replace('"decisions/README.md"', f'"decisions/README.md"{decisions}')
    (folder / "zensical.toml").write_text(config, encoding="utf-8")
    return folder


def _all_but_pictures(folder: str, names: list[str]) -> list[str]:
    return [
        name for name in names if not name.endswith(".svg") and not (Path(folder, name).is_dir() and name == "pictures")
    ]


def _page(original: Path, name: str) -> str:
    """Return a page's text as it is in the site, outside its blocks of code."""
    linked = functools.partial(_linked, original, name)
    parts = _FENCE.split(original.read_text(encoding="utf-8"))
    return "".join(part if n % 2 else _bars(_LINK.sub(linked, part)) for n, part in enumerate(parts))


def _linked(original: Path, name: str, found: re.Match[str]) -> str:
    picture, words, target = found.groups()
    path, _, anchor = target.partition("#")
    if not path or re.match(r"[a-z][a-z0-9+.-]*:", target):
        return found[0]
    file = Path(os.path.normpath(original.parent / path))
    if file.is_dir() and (file / "README.md").exists():
        file /= "README.md"
    there = MADE.get(file)
    if there is None and file.is_relative_to(DOCS):
        there = file.relative_to(DOCS).as_posix()
    if there is None and file.suffix == ".svg":
        there = file.relative_to(ROOT / "bench").as_posix()
    if there is None:
        return words  # a file of the repository, which the site has not
    relative = os.path.relpath(there, Path(name).parent)
    return f"{picture}[{words}]({relative}{'#' + anchor if anchor else ''})"


def _bars(text: str) -> str:
    r"""Return a text whose tables have ``|`` for ``\|`` in code: this Markdown does not need it there, and shows it."""
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), text)


def loaded_from_elsewhere(site: Path) -> Iterator[tuple[Path, str]]:
    """Yield what a reader's browser would fetch from another server."""
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css"):
            for found in _LOADED.finditer(file.read_text(encoding="utf-8")):
                yield file, found[0]


def _serve() -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        sys.stderr.write(f"http://127.0.0.1:{server.server_port}/\n")
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
