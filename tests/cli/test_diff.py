"""``agentmesh diff``: what an agent and all below it changed."""

from __future__ import annotations

import pytest

from tests.store.test_changes import change, edit


def test_it_prints_a_plain_diff_and_says_what_is_not_in_it(am, mesh, here):
    child = mesh.fork(here, "child")
    edit(mesh, child)
    change(mesh, here, "write", '{"content": "one\\n"}', {"path": "new.txt", "created": True})
    done = am("diff", "root")
    assert (done.code, "root (" in done.err, "Not in it: changes by commands (bash)" in done.err) == (0, True, True)
    lines = [line for line in done.out.splitlines() if not line.startswith("#")]
    assert lines == [
        "--- a/calc.py",
        "+++ b/calc.py",
        "@@ -10,3 +10,3 @@",
        " def add(a, b):",
        "-    return a - b",
        "+    return a + b",
        " # end",
        "--- /dev/null",
        "+++ b/new.txt",
        "@@ -0,0 +1,1 @@",
        "+one",
    ]
    assert "# calc.py: edit by child, " in done.out


def test_json_has_a_line_for_each_change(am, mesh, here):
    child = mesh.fork(here, "child")
    edit(mesh, child)
    found = am("diff", "child", "--json").data
    assert (found["name"], found["path"], found["created"]) == ("child", "calc.py", False)
    assert found["diff"].startswith("@@ -10,3 +10,3 @@\n def add")


def test_an_agent_that_changed_nothing_has_no_diff(am, mesh, here):
    done = am("diff", "root")
    assert (done.code, done.out) == (0, "")
    assert "changed 0 files" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "root", "--since", "99999999999999999999"),
        ("sessions", "-n", "99999999999999999999"),
        ("ps", "--limit", "99999999999999999999"),
    ],
)
def test_a_number_that_no_database_holds_is_refused_by_its_option(am, mesh, here, words):
    refused = am(*words)
    assert (refused.code, refused.out) == (2, "")
    assert "is not in the range" in refused.err


@pytest.mark.parametrize("more", [(), ("--net",)])
def test_a_row_that_is_not_there_is_refused(am, mesh, here, more):
    (call,) = mesh.call(here, "write")
    mesh.finish(call)
    refused = am("diff", "root", "--since", "99", *more)
    assert (refused.code, refused.out) == (2, "")
    assert "has no row 99: its newest is" in refused.err
