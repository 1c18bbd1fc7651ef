"""What agents changed in files is read from their calls of edit and write."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.changes import DiffKind, DiffLine, by_file, unified
from agentmesh.domain.ids import AgentId
from agentmesh.store import changes, steps
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

DIFF = (
    "--- a/calc.py\n+++ b/calc.py\n@@ -10,3 +10,3 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n # end\n"
)


def change(mesh: Mesh, agent: AgentId, name: str, arguments: str, result: dict[str, Any]) -> None:
    """Let the agent make a call that has this result."""
    lease = mesh.begin(agent)
    asked = [{"call_id": "1", "name": name, "arguments": arguments}]
    done = mesh.run(steps.finish_step, lease, {"text": ""}, asked, {})
    mesh.finish(lease.call(done.seq, 0), result)


def edit(mesh: Mesh, agent: AgentId, path: str = "calc.py", diff: str = DIFF) -> None:
    change(mesh, agent, "edit", "{}", {"path": path, "bytes": 9, "replacements": 1, "diff": diff})


def test_edits_and_writes_of_an_agent_and_all_below_it_in_their_order(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    below, other = mesh.fork(a, "below", "work"), mesh.fork(mesh.root, "other", "work")
    edit(mesh, a)
    change(mesh, below, "write", '{"path": "new.txt", "content": "one\\ntwo"}', {"path": "new.txt", "created": True})
    edit(mesh, other, "other.py")
    change(mesh, a, "write", '{"path": "calc.py", "content": "all\\n"}', {"path": "calc.py", "created": False})
    change(mesh, a, "edit", "{}", {"error": "The old text is not in x.", "path": "x"})
    change(mesh, a, "bash", "{}", {"output": "x", "path": "y"})
    found = mesh.run(changes.newest, a)
    assert [(one.name, one.tool, one.path, one.added, one.removed) for one in found] == [
        ("a", "edit", "calc.py", 1, 1),
        ("below", "write", "new.txt", 2, 0),
        ("a", "write", "calc.py", 1, 0),
    ]
    assert [one.path for one in mesh.run(changes.newest, a, 1)] == ["calc.py"]
    assert [(file.path, file.figures, len(file.changes)) for file in by_file(found)] == [
        ("calc.py", "+2 −1", 2),
        ("new.txt", "+2 −0", 1),
    ]


def test_each_line_knows_its_number_in_the_file(mesh: Mesh):
    edit(mesh, mesh.root)
    (found,) = mesh.run(changes.newest, mesh.root)
    assert [(line.kind, line.text, line.number) for line in found.lines[1:]] == [
        (DiffKind.KEPT, "def add(a, b):", 10),
        (DiffKind.REMOVED, "    return a - b", 11),
        (DiffKind.ADDED, "    return a + b", 11),
        (DiffKind.KEPT, "# end", 12),
    ]


def test_after_a_gap_no_number_is_known_until_the_next_hunk(mesh: Mesh):
    edit(mesh, mesh.root, diff="@@ -1 +1 @@\n-a\n+b\n[... 9 bytes cut ...]\n c\n@@ -7 +9 @@\n d\n")
    (found,) = mesh.run(changes.newest, mesh.root)
    assert [line.number for line in found.lines] == [None, 1, 1, None, None, None, 9]


def test_what_a_person_changed_in_a_call_is_what_was_written(mesh: Mesh):
    (call,) = mesh.call(mesh.root, "write")
    mesh.conn.execute(
        """update agentmesh.tool_calls set arguments = '{"path": "f", "content": "theirs"}' where agent_id = %s""",
        [mesh.root],
    )
    request = mesh.ask(mesh.root, call=call)
    answer = '{"decision": "once", "arguments": {"path": "f", "content": "mine\\n"}}'
    mesh.conn.execute("select agentmesh.answer(%s, %s)", [request, answer])
    mesh.finish(call, {"path": "f", "created": True})
    (found,) = mesh.run(changes.newest, mesh.root)
    assert found.lines[1] == DiffLine(DiffKind.ADDED, "mine", 1)


@pytest.mark.parametrize("arguments", ["no json", "[1]", '{"content": 3}', '{"content": "' + "x" * (1 << 20) + '"}'])
def test_a_text_that_is_not_there_is_said_to_be_unknown(mesh: Mesh, arguments: str):
    change(mesh, mesh.root, "write", arguments, {"path": "f", "created": True})
    (found,) = mesh.run(changes.newest, mesh.root)
    assert [line.kind for line in found.lines] == [DiffKind.REMARK]
    assert "not recorded, or too large" in found.lines[0].text


def test_foreign_text_is_shown_and_obeyed_by_no_terminal(mesh: Mesh):
    edit(mesh, mesh.root, "a\x1b[31m\nb", "@@ -1 +1 @@\n+\x1b[2J\u202eevil\n")
    (found,) = mesh.run(changes.newest, mesh.root)
    assert found.path == "a\\u001b[31m b"
    assert found.lines[1].text == "\\u001b[2J\\u202eevil"


def test_a_plain_diff_names_who_made_each_change(mesh: Mesh):
    change(mesh, mesh.root, "write", '{"content": "one"}', {"path": "f", "created": True})
    change(mesh, mesh.root, "write", '{"content": "two\\n"}', {"path": "f", "created": False})
    lines = list(unified(by_file(mesh.run(changes.newest, mesh.root))))
    assert [line for line in lines if not line.startswith("# f: write by root, ")] == [
        "--- /dev/null",
        "+++ b/f",
        "@@ -0,0 +1,1 @@",
        "+one",
        "\\ No newline at end of file",
        "--- a/f",
        "+++ b/f",
        "# the whole file was written; what it held before is not recorded",
        "@@ -0,0 +1,1 @@",
        "+two",
    ]
