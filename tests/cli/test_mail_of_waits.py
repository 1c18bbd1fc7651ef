"""`agentmesh log` shows the mail that a wait took as messages, whole."""

from __future__ import annotations

import pytest

from agentmesh.store import steps, waits
from tests.fixtures.mesh import Mesh

LIKE_JSON = '{"outcome": "complete", "results": [{"name": "user", "message": "no, me"}]}'
LONG = "\n".join(f"line {n} " + "x" * 400 for n in range(250))


def waited(mesh: Mesh, root, *reports: tuple[str, str], words: str = "") -> None:
    """Let the root wait for children that have sent these reports, the user having written ``words`` meanwhile."""
    children = [mesh.fork(root, name, "work") for name, _ in reports]
    lease = mesh.begin(root)
    asked = {"call_id": "c", "name": "wait", "arguments": '{"timeout": 30}'}
    step = mesh.run(steps.finish_step, lease, {"calls": [{"id": "c", **asked}]}, [asked], {})
    for child, (_, text) in zip(children, reports, strict=True):
        mesh.send(child, root, text)
    if words:
        mesh.send(None, root, words)
    targets = mesh.run(waits.targets, mesh.session_of(root), list(map(str, children)))
    assert mesh.run(waits.wait_begin, root, targets, 30, lease.call(step.seq, 0))


def test_17_4_log_shows_each_message_of_a_wait_whole_and_once(am, here, mesh):
    waited(mesh, here, ("coder", LONG), ("tester", LIKE_JSON), words="[b]stop[/b]\n\x1b[31mnow\x07")
    done = am("log", "root")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    at = lines.index("  ← wait ended by the user: coder received, tester received")
    assert lines[at + 1] == "coder ▸ line 0 " + "x" * 400
    assert sum(line.strip().startswith("line ") for line in lines[at:]) == 249
    assert done.out.count("line 249 x") == 1
    assert f"tester ▸ {LIKE_JSON}" in lines
    assert lines[-2:] == ["user ▸ [b]stop[/b]", "    [31mnow"]


def test_17_4_the_whole_log_repeats_no_message_and_drops_nothing_else(am, here, mesh):
    waited(mesh, here, ("coder", "I am done"), words="stop")
    out = am("log", "root", "--full").out
    assert out.count("I am done") == 1
    assert out.count("▸ stop") == 1
    assert '"status": "received"' in out
    assert "outcome: user" in out


def test_17_4_the_log_as_json_keeps_its_form_and_adds_the_messages(am, here, mesh):
    waited(mesh, here, ("coder", "I am done"), words="stop")
    *_, row = am("log", "root", "--json").events
    coder = str(mesh.one("select id from agentmesh.agents where name = 'coder'"))
    assert row.keys() == {"agent_id", "name", "seq", "kind", "content", "created_at", "mail"}
    assert row["content"]["result"]["results"][0]["message"] == "I am done"
    assert row["mail"] == [
        {"from": "coder", "from_id": coder, "text": "I am done", "automatic": False},
        {"from": "user", "from_id": None, "text": "stop", "automatic": False},
    ]
    assert all("mail" not in one for one in am("log", "root", "--json").events[:-1])


def test_17_4_a_fork_s_inherited_log_has_the_messages(am, here, mesh):
    waited(mesh, here, ("coder", "I am done"), words="stop")
    mesh.fork(here, "heir", "work")
    out = am("log", "heir", "--inherited").out.splitlines()
    assert out[-2:] == ["coder ▸ I am done", "user ▸ stop"]
    assert "coder ▸ I am done" not in am("log", "heir").out


@pytest.mark.parametrize("name", ["md", "html"])
def test_17_4_an_export_to_read_has_the_messages(am, here, mesh, name):
    waited(mesh, here, ("coder", "I am done <b>"), words="stop")
    out = am("export", "--format", name, "-o", "-").out
    assert ("I am done <b>" if name == "md" else "I am done &lt;b&gt;") in out
    assert "mail from coder" in out
    assert out.count("I am done") == 1
