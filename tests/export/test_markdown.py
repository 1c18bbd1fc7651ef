"""Markdown: a whole small session word for word, and foreign text that is never Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentmesh.export.markdown import escaped, fenced
from agentmesh.store import steps
from tests.export.conftest import HOSTILE
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

GOLDEN = Path(__file__).with_name("golden.md")


@pytest.mark.only_rows
def test_a_small_session_word_for_word(fixed, exported):
    written = re.sub(r"exported [\d: -]+", "exported NOW ", exported(fixed, "md"))
    assert written == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [HOSTILE, "```", "a ````` b", "", "plain", "~~~\n```text"])
def test_no_text_closes_its_fence(text):
    opening, *inside, closing = fenced(text)
    assert opening == f"{closing}text"
    assert "\n".join(inside) == text
    assert all(closing not in line for line in inside)


def test_nothing_on_a_line_is_markdown():
    assert escaped("*a* _b_ [c](d) <e> `f` | #g ~h~\n# i") == (r"\*a\* \_b\_ \[c\](d) \<e\> \`f\` \| \#g \~h\~ \# i")
    assert escaped("https://example.org me@example.org &amp;") == r"https\://example.org me\@example.org \&amp;"


@pytest.mark.only_rows
@pytest.mark.parametrize("name", ["jsonl", "md", "html"])
def test_a_call_of_thousands_of_brackets_is_exported_as_it_was_written(mesh: Mesh, exported, name):
    text = '{"command": ' + "[" * 100_000
    asked = [{"call_id": "c", "name": "bash", "arguments": text}]
    answer = {"text": "", "calls": [{"id": "c", "name": "bash", "arguments": text}]}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), answer, asked, {})
    assert "[" * 1000 in exported(mesh.session, name)


@pytest.mark.only_rows
def test_a_call_that_gives_its_child_a_tree_of_its_own_says_so(mesh: Mesh, exported):
    text = '{"name": "coder", "prompt": "work", "workspace": "own"}'
    asked = [{"call_id": "c", "name": "fork", "arguments": text}]
    answer = {"text": "", "calls": [{"id": "c", "name": "fork", "arguments": text}]}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), answer, asked, {})
    for name in ("md", "html"):
        assert "→ fork coder (own tree)" in exported(mesh.session, name)


@pytest.mark.only_rows
def test_mail_of_a_merge_says_so_and_a_report_says_that_it_is_automatic(mesh: Mesh, exported):
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    trees.work(child, "a.txt")
    trees.merge(mesh.root, child, "a.txt")
    mesh.send(mesh.root, child, "report")
    mesh.answer(child)
    mesh.answer(child, "my report")
    mesh.begin(mesh.root)
    written = exported(mesh.session, "md")
    assert "**mail from child, merge**" in written
    assert "**mail from child, automatic report**" in written


@pytest.mark.only_rows
def test_hostile_text_stays_within_fences(mesh: Mesh, exported):
    mesh.conn.execute(
        "update agentmesh.sessions set title = %s where id = %s", [HOSTILE.replace("\x1b", ""), mesh.session]
    )
    mesh.send(None, mesh.root, HOSTILE)
    (call,) = mesh.call(mesh.root, "bash", text=HOSTILE)
    mesh.finish(call, {"output": HOSTILE})
    mesh.fork(mesh.root, "lazy", HOSTILE)
    outside, fence = [], ""
    for line in exported(mesh.session, "md").split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif found := re.fullmatch("(`{3,})text", line):
            fence = found[1]
        else:
            outside.append(line)
    assert fence == ""
    text = "\n".join(outside)
    assert "<script" not in text.replace("\\<", "")
    assert not re.search(r"(?<!\\)\[", text)
    assert "\n# heading" not in text
    assert not {"\x1b", "\u202e"} & set(text)
    assert "unread mail from user" in text
