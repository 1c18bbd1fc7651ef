"""Any text comes back as it was, but for what PostgreSQL cannot hold: that is cleaned once, at the border."""

from __future__ import annotations

import pytest

from agentmesh.store import agents, steps
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

KEPT = [
    "plain",
    "quotes ' \" ` $$ $body$ and ; -- /* */",
    "lines\nand\r\nreturns\tand tabs",
    "percent %s %(name)s {braces} \\ backslash \\n",
    "emoji 🙂 and family 👨‍👩‍👧‍👦",
    "combining e\u0301 and right to left \u202e abc",
    "\u2028 separators \u0085",
    "control \x01\x07\x1b[31m",
    "[@click=app.quit]markup[/x]",
    '{"error": "killed"}',
    "null",
    "\ufffd",
    "\U0010ffff",
    "  blanks around  ",
]
CLEANED = [
    ("nul \x00 byte", "nul \ufffd byte"),
    ("lone \ud800 surrogate", "lone \ufffd surrogate"),
    ("\udfff", "\ufffd"),
]


@pytest.mark.parametrize("body", KEPT)
def test_a_message_comes_back_as_it_was(mesh: Mesh, body: str):
    a = mesh.fork(mesh.root, "a", body)
    mesh.send(None, a, body)
    assert mesh.unread(a) == [body, body]
    mesh.begin(a)
    assert [content["text"] for _, content in mesh.rows(a)] == [body, body]


@pytest.mark.parametrize(("body", "stored"), CLEANED)
def test_what_postgresql_cannot_hold_is_replaced(mesh: Mesh, body: str, stored: str):
    a = mesh.fork(mesh.root, "a", body)
    mesh.send(None, a, body)
    assert mesh.unread(a) == [stored, stored]


@pytest.mark.parametrize(("text", "stored"), [*((text, text) for text in KEPT), *CLEANED])
def test_a_models_answer_arguments_and_results_too(mesh: Mesh, text: str, stored: str):
    lease = mesh.begin(mesh.root)
    calls = [{"call_id": text, "name": text, "arguments": text}]
    seq = mesh.run(steps.finish_step, lease, {"text": text, "deep": [{text: text}]}, calls, {"finish_reason": text}).seq
    mesh.finish(lease.call(seq, 0), {"output": text})
    (_, assistant), (_, result) = mesh.rows(mesh.root)[-2:]
    assert assistant == {"text": stored, "deep": [{stored: stored}]}
    assert (result["call_id"], result["name"], result["result"]) == (stored, stored, {"output": stored})
    assert mesh.one("select arguments from agentmesh.tool_calls") == stored


@pytest.mark.parametrize(("text", "stored"), [*((text, text) for text in KEPT), *CLEANED])
def test_an_error_and_half_an_answer_too(mesh: Mesh, text: str, stored: str):
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": text})
    assert mesh.run(agents.last_output, mesh.root) == ("", stored)
    lease = mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, lease, {"text": text})
    assert mesh.rows(mesh.root)[-2][1] == {"text": stored, "interrupted": True}


@pytest.mark.parametrize(("key", "stored"), CLEANED)
def test_a_key_too(mesh: Mesh, key: str, stored: str):
    mail = mesh.send(None, mesh.root, "x", key=key)
    assert mesh.one("select key from agentmesh.mail where id = %s", mail) == stored
