"""The check of our own words sees each fault that it is for, and this repository has none."""

from __future__ import annotations

import re

import pytest

from scripts import prose

RULES = prose.Rules.load()
LONG = " ".join(["word"] * (RULES.words + 1))

BAD = {
    "Of a refusal only the beginning is read.": "Read only the beginning of a refusal.",
    "It is text; of a page the links are counted.": "It is text, and the links of a page are counted.",
    "Agents of which nothing was heard for an hour.": "Agents that were silent for an hour.",
    "Return the text, empty for none.": 'Return the text, "" if there is no text.',
    "Raise for what cannot be a host.": "Raise for text that cannot be a host.",
    "Models are told of the tool.": "Models see the tool.",
    "A longer file is cut, and that is told.": "A longer file is cut, and the result says so.",
    "It wakes whoever waits.": "It wakes every agent that waits.",
    "A hint only: who is woken reads.": "A hint only: a reader that wakes reads the rows.",
    "Says of a wait who was found how.": "Says each agent's status after a wait.",
    "Return the size, None where unknown.": "Return the size, None if unknown.",
    "Take the lock; else it would run twice.": "Take the lock; otherwise it would run twice.",
    "It is paid all the same.": "It is still paid.",
    "The crew sees to it.": "The crew ensures it.",
    "Read the file anew.": "Read the file again.",
    "Sessions that shall have it.": "Sessions that should have it.",
    "A dash in the place of a prompt.": "A dash instead of a prompt.",
    "The figure is reckoned.": "The figure is estimated.",
    "A defect that was mended.": "A defect that was fixed.",
    "Names tools that there are not.": "Names unknown tools.",
    "An argument is one too many.": "Refuse an unexpected argument.",
    "Keep 4 KiB; what is longer is cut.": "Keep 4 KiB and cut the rest.",
}


def _messages(text: str, name: str = "page.md") -> list[str]:
    return [message for _, message in prose.check(name, text, RULES)]


@pytest.mark.parametrize("bad", BAD)
def test_a_phrase_that_nobody_says_is_refused_and_its_natural_form_is_not(bad):
    assert len(_messages(bad)) == 1
    assert _messages(BAD[bad]) == []


@pytest.mark.parametrize("phrase", RULES.phrases, ids=lambda phrase: phrase.use)
def test_every_phrase_has_an_example(phrase):
    assert any(phrase.pattern.search(bad) for bad in BAD)


def test_a_sentence_has_a_greatest_length():
    assert _messages(f"{LONG}.") == [f"{RULES.words + 1} words in a sentence; {RULES.words} at most"]
    assert _messages(f"Word {LONG[: -len(' word')]}; two thoughts in one.") != []
    assert _messages(f"{LONG[: -len(' word')]}. Another sentence.") == []


@pytest.mark.parametrize(
    "text",
    [
        f"# {LONG}",
        f"| {LONG} |",
        f"```text\n{LONG}\n```",
        f"<!-- {LONG} -->",
        f"<!-- generated: keys -->\n{LONG}\n<!-- end of generated -->",
        f"`{LONG}`",
        f"A [link](https://example.org/{LONG.replace(' ', '/')}).",
        f"Names: {', '.join(['`name`'] * 40)} and `another`.",
        f"- {LONG[:60]}\n- {LONG[:60]}\n- {LONG[:60]}",
    ],
    ids=["heading", "table", "code", "comment", "generated", "inline", "address", "names", "list"],
)
def test_what_nobody_reads_as_a_sentence_is_left_out(text):
    assert _messages(text) == []


def test_a_finding_names_the_line_that_it_is_on():
    text = f"# Title\n\nOne line.\nAnother\nline anew.\n\n```text\ncode\n```\n\nFirst. {LONG}.\n"
    assert [line for line, _ in prose.check("page.md", text, RULES)] == [5, 11]


def test_docstrings_are_read_and_other_strings_are_not():
    source = '"""Read it\n\nanew."""\nNAME = "anew"\n"""Made anew."""\n\ndef f():\n    """Do it anew."""\n'
    assert [line for line, _ in prose.check("module.py", source, RULES)] == [3, 5, 8]


def test_comments_of_sql_are_read_and_its_code_is_not():
    query = "-- name: anew\n-- Read it\n-- anew.\nselect 'anew';  -- anew\n"
    source = f"{query}\ncomment on view v is\n  'Made anew, the user''s.';\n"
    assert [line for line, _ in prose.check("query.sql", source, RULES)] == [3, 7]


def test_of_a_changelog_the_newest_section_is_read():
    text = "# Changelog\n\n## [2]\n\n- Made anew.\n\n## [1]\n\n- Made anew.\n"
    assert [line for line, _ in prose.check("CHANGELOG.md", text, RULES)] == [5]


def test_folders_that_are_not_read_yet_are_left_out(tmp_path):
    (tmp_path / "README.md").write_text("Made anew.\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("Made anew.\n")
    phrases = (prose.Phrase(re.compile("anew"), "say again"),)
    rules = prose.Rules(30, phrases, pages=("*.md", "docs/*.md"), code=(), not_read_yet=("docs/*.md",))
    assert list(prose.findings(tmp_path, rules)) == ["README.md:1: “anew”: say again"]


def test_this_repository_passes():
    assert list(prose.findings(prose._ROOT, RULES)) == []
