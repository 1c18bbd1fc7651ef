"""What scripts/site.py does to pages before the generator reads them, and what it refuses in what comes out.

The build itself is a step of `.ci/run` and of `make docs`: it needs an environment of its own.
"""

from __future__ import annotations

import pytest

from scripts import site


@pytest.mark.parametrize(
    ("name", "line", "wanted"),
    [
        ("how-to/sql.md", "[a](../reference/sql.md#views)", "[a](../reference/sql.md#views)"),
        ("how-to/sql.md", "[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("scale.md", "[a](../bench/RESULTS.md#x)", "[a](benchmark-results.md#x)"),
        ("scale.md", "[a](../agentmesh/app.py) [b](https://example.org)", "a [b](https://example.org)"),
        ("index.md", "[a](decisions)", "[a](decisions/README.md)"),
        ("index.md", "![a](screenshot.svg)", "![a](screenshot.svg)"),
        ("index.md", r"| `once\|no` | a \| b |", r"| `once|no` | a \| b |"),
        ("index.md", "```\n[a](../x.py)\n```", "```\n[a](../x.py)\n```"),
    ],
)
def test_links_lead_to_where_the_site_has_them(tmp_path, monkeypatch, name, line, wanted):
    docs = tmp_path / "docs"
    page = docs / name
    page.parent.mkdir(parents=True)
    (docs / "decisions").mkdir()
    (docs / "decisions" / "README.md").touch()
    page.write_text(f"{line}\n")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(site, "DOCS", docs)
    made = {tmp_path / "CHANGELOG.md": "changelog.md", tmp_path / "bench" / "RESULTS.md": "benchmark-results.md"}
    monkeypatch.setattr(site, "MADE", made)
    assert site._page(page, name) == f"{wanted}\n"


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        "<script defer src=//cdn.example.org/x.js></script>",
        '<link rel="stylesheet" href="https://fonts.example.org/css">',
        '<link href="https://fonts.example.org" rel="preconnect">',
        '<img alt="" src="http://example.org/a.png">',
        "@import url('https://example.org/x.css');",
        "src: url(//example.org/font.woff2)",
    ],
)
def test_what_a_browser_would_load_from_elsewhere_is_found(tmp_path, text):
    (tmp_path / "page.html").write_text(text)
    assert [what for _, what in site.loaded_from_elsewhere(tmp_path)] != []


@pytest.mark.parametrize(
    "text",
    [
        '<a href="https://example.org">a link</a>',
        '<script src="assets/x.js"></script>',
        '<link rel="canonical" href="https://example.org/">',
        '<svg xmlns="http://www.w3.org/2000/svg"><path d=""/></svg>',
        "background: url(data:image/svg+xml;base64,AAAA)",
    ],
)
def test_what_it_only_links_to_is_no_fault(tmp_path, text):
    (tmp_path / "page.html").write_text(text)
    assert [what for _, what in site.loaded_from_elsewhere(tmp_path)] == []
