"""Every relative link of every page of the repository leads to a file that is there, and every anchor to a heading."""

from __future__ import annotations

import itertools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.docs.blocks import ROOT


def _pages() -> list[Path]:
    """Return the Markdown files that are, or will be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # an unpacked source distribution
        found = (
            path for folder in ("docs", ".") for path in (ROOT / folder).glob("**/*.md" if folder == "docs" else "*.md")
        )
        return sorted({*found})
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).exists()]


PAGES = _pages()


@cache
def _tokens(path: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return what a link to this page may name, as GitHub and the site make it of headings."""
    found: dict[str, int] = {}
    names = set()
    tokens = _tokens(path)
    for opening, inline in itertools.pairwise(tokens):
        if opening.type != "heading_open":
            continue
        text = "".join(one.content for one in inline.children or () if one.type in ("text", "code_inline"))
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = found.get(slug, 0)
        found[slug] = number + 1
        names.add(f"{slug}-{number}" if number else slug)
    return frozenset(names)


def links(path: Path) -> Iterator[str]:
    """Yield where links and pictures of a page lead to."""
    for token in _tokens(path):
        for part in token.children or ():
            target = part.attrGet("href") or part.attrGet("src")
            if isinstance(target, str):
                yield target


def broken(path: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    return [link for link in links(path) if not _leads(path, link)]


def _leads(path: Path, link: str) -> bool:
    if re.match(r"[a-z][a-z0-9+.-]*:", link):
        return not link.startswith("file:")
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or (target.suffix == ".md" and anchor in anchors(target))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    assert broken(path) == []


def test_a_broken_link_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.test_links.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n\n[a](#here) [b](#there) [c](gone.md) [d](page.md#here) [e](page.md#x) [f](https://x.org)\n"
    )
    assert broken(page) == ["#there", "gone.md", "page.md#x"]


def test_every_document_that_code_names_is_there():
    """Comments, messages and docstrings name pages of docs/ in words."""
    named = re.compile(r"\bdocs/[\w./-]+\.(?:md|svg)\b")
    folders = ("agentmesh", "tui", "migrations", "tests", "bench", "scripts")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sql", ".md", ".sh")
    ]
    files += [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / "Makefile"]
    gone = {
        (str(path.relative_to(ROOT)), name)
        for path in files
        if path != Path(__file__)
        for name in named.findall(path.read_text(encoding="utf-8"))
        if "NNNN" not in name and not (ROOT / name).exists()
    }
    assert gone == set()


def test_every_page_stands_in_the_navigation_and_in_the_index():
    site = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))
    listed = [page for entry in site["project"]["nav"] for page in _listed(entry)]
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    pages = [page for page in pages if not page.startswith("decisions/0")]  # scripts/site.py lists them
    assert sorted(page for page in listed if page not in MADE) == sorted(pages)
    index = {link.partition("#")[0] for link in links(ROOT / "docs" / "index.md")}
    assert {*pages} - {*index, "index.md"} == set()


def test_the_readme_is_read_in_one_go():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


def test_every_decision_stands_in_their_list():
    folder = ROOT / "docs" / "decisions"
    listed = {link for link in links(folder / "README.md") if link.startswith("0")}
    assert listed == {path.name for path in folder.glob("0*.md")}


MADE = {"changelog.md", "benchmark-results.md"}
"""Pages that scripts/site.py makes of files outside docs/."""


def _listed(entry: object) -> Iterator[str]:
    """Yield the pages of an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from _listed(below)
    elif isinstance(entry, list):
        for below in entry:
            yield from _listed(below)
