"""Markdown: a whole small session word for word, and foreign text that is never Markdown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentmesh.export.markdown import escaped, fenced
from agentmesh.store import steps
from tests.export.conftest import HOSTILE
from tests.fixtures.mesh import Mesh

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
