"""HTML as Markdown: what pages look like, and pages made to keep a reader busy; the runner's timeout judges."""

from __future__ import annotations

import pytest

from agentmesh.tools.html_text import MOST_CHARACTERS, markdown
from agentmesh.tools.html_tokens import Tag, tokens

BASE = "https://example.com/docs/page"


def text(source: str) -> str:
    return markdown(source, BASE, lambda: None).text


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<h2>A <i>b</i></h2><p>c</p>", "## A b\n\nc"),
        ("<p>a  b\n c</p>\n<p>d<br>e</p>", "a b c\n\nd\ne"),
        ("a<b>b</b>c <i> d </i> e", "abc d e"),
        (
            "<ul><li>a<li><p>b</p><ol><li>c</li><li>d</li></ol></li><li></li><li>e</ul>f",
            "- a\n- b\n\n  1. c\n  2. d\n- \n- e\n\nf",
        ),
        ("<pre><code>x\n  &lt;y&gt;</code></pre>z", "```\nx\n  <y>\n```\n\nz"),
        ("use <code>a  b</code>.", "use `a b`."),
        ("<table><tr><th>A<th>B</tr><tr><td>1</td><td><p>2</p></td></tr></table>x", "A | B\n1 | 2\n\nx"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n\n> b"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ('<img src="x" alt="a  cat"><img src="y">', "[image: a cat]"),
        ("<script>if (a < b) {}</script>x<style>p{}</style><svg><title>t</title></svg>y", "xy"),
        ("x<noscript>y</noscript><iframe>z</iframe><template>t</template>", "x"),
        ("a<!-- <p>b --> c<!doctype x>d<?e?>f</>g", "a cdfg"),
        ("1 < 2 && 3 > 2 &amp;&copy;&#x41;&nope;", "1 < 2 && 3 > 2 &©A&nope;"),
        ("<P CLASS=x>a</P >b", "a\n\nb"),
        ("<p title=don't>a</p><p title='>'>b</p><p title=\">\">c</p>", "a\n\nb\n\nc"),
        ("a<p", "a"),
        ("a<!-- b", "a"),
        ("a<script>b", "a"),
        ("</ul></pre></a></main></blockquote>a", "a"),
        ("", ""),
    ],
)
def test_pages(source: str, shown: str):
    assert text(source) == shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('<a href="../a?x=1&amp;y=2#z"> b </a>', "[b](https://example.com/a?x=1&y=2#z)"),
        ("<a href=//other.example/x>b</a>", "[b](https://other.example/x)"),
        ("<a href='#top'>b</a> <a href='javascript:x()'>c</a> <a>d</a>", "b c d"),
        ("<a href=/x></a>y", "y"),
        ("<a href=/x>a<a href=/y>b</a>", "[a](https://example.com/x)[b](https://example.com/y)"),
        ("<a href=/x><h3>a</h3><p>b</p></a>", "### a\n\nb (https://example.com/x)"),
        ("<a href='http://[x'>b</a>", "b"),
    ],
)
def test_links_are_made_whole(source: str, shown: str):
    assert text(source) == shown


def test_a_title_is_the_first_one():
    page = markdown("<title>A\n &amp; B</title><title>C</title>x", BASE, lambda: None)
    assert (page.title, page.text) == ("A & B", "x")


def test_main_stands_for_the_page_where_it_has_enough():
    words = "word " * 100
    assert text(f"<nav>menu</nav><main><p>{words}</p></main>foot") == words.strip()
    assert text("<nav>menu</nav><main>x</main>foot") == "menu\nx\nfoot"
    assert text(f"menu<main>{words}") == f"menu\n{words.strip()}", "a page that does not end it"


def test_what_a_tag_is_called_is_read_in_lower_case_with_its_attributes():
    (tag,) = tokens("""<A hReF='x&amp;y' B="1" c=2 d>""")
    assert isinstance(tag, Tag)
    assert (tag.name, tag.end) == ("a", False)
    assert [tag.get(name) for name in ("href", "b", "c", "d", "e")] == ["x&y", "1", "2", "", ""]


_SIZE = 500_000


_PIECES = ["<", "<!--", "<a ", '<a ="', '<a ">" ', '<a =">" ', "<a ='>", "</", "<![", "&#9", "&", "<script>", "= "]
_ELEMENTS = [
    "<title></title",
    "<div>",
    "<ul><li>a",
    "<blockquote>a",
    "<a href=x>y",
    "<pre>a",
    "<svg>",
    "<td>",
    "a     ",
]


@pytest.mark.parametrize("piece", [*_PIECES, *_ELEMENTS])
def test_hostile_pages_take_no_longer_than_others(piece: str):
    markdown(piece * (_SIZE // len(piece)), BASE, lambda: None)
    markdown(f"<a {piece * (_SIZE // len(piece))}>", BASE, lambda: None)


def test_a_number_too_long_to_be_read_is_left():
    assert text("&#" + "9" * 5000 + ";x").endswith("x")


def test_the_text_of_a_page_is_bounded_also_where_its_links_are_longer_than_it():
    page = markdown("<a href=x>y</a>" * 20_000, "https://example.com/" + "p" * 2000 + "/", lambda: None)
    assert page.truncated
    assert len(page.text) < MOST_CHARACTERS + 5000


def test_a_tick_that_raises_ends_the_reading():
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        markdown("<p>x", BASE, stop)
