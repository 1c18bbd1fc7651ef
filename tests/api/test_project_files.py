"""A project's file holds for the sessions of its directory, whichever directory a worker was started in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agentmesh
from agentmesh.domain.errors import ConfigError
from tests.api.conftest import Open
from tests.fixtures.engine import Rig, call, do, say

TIGHT = """
permission_mode = "plan"
[limits]
max_children = 3
tool_output_bytes = 2000
max_task_steps = 2
answer_tokens = 100
[agent_types.explore]
hidden = true
[permissions]
deny = ["web_fetch"]
"""


def project(folder: Path, text: str = TIGHT) -> Path:
    (folder / ".agentmesh").mkdir(parents=True)
    (folder / ".agentmesh" / "config.toml").write_text(text)
    return folder


def looked_at(rig: Rig, mesh: agentmesh.Mesh, workdir: Path) -> dict[str, Any]:
    """Run a session in a directory; return what the limits did to it."""
    before = len(rig.model.requests)
    rig.script("root", do(call("bash", command="head -c 20000 /dev/zero | tr '\\0' x")), say("x" * 1000))
    session = mesh.start_session(workdir, permission_mode="all")
    session.run("go")
    (result,) = [row.content["result"] for row in session.root.conversation() if row.kind == "tool_result"]
    stored = "select max_children from agentmesh.sessions where id = %s"
    return {
        "output": len(result["output"]),
        "answer": len(session.root.output()),
        "children": rig.one(stored, session.id),
        "types": "explore" in json.dumps(rig.model.requests[before].body["tools"]),
    }


LOOSE = {"output": 20_000, "answer": 1000, "children": 16, "types": True}


def test_17_10_the_project_file_where_a_worker_starts_is_not_that_of_other_directories(
    rig: Rig, open_mesh: Open, tmp_path: Path
):
    here, other = project(Path.cwd()), tmp_path / "other"
    other.mkdir()
    mesh = open_mesh()
    with mesh.worker():
        assert looked_at(rig, mesh, other) == LOOSE
        tight = looked_at(rig, mesh, here)
    assert tight["output"] <= 2000
    assert (tight["children"], tight["types"]) == (3, False)


def test_17_10_the_project_file_of_a_session_holds_wherever_its_worker_started(
    rig: Rig, open_mesh: Open, tmp_path: Path
):
    other = project(tmp_path / "other")
    mesh = open_mesh()
    with mesh.worker():
        tight = looked_at(rig, mesh, other)
        assert looked_at(rig, mesh, Path.cwd()) == LOOSE
    assert tight["output"] <= 2000
    assert (tight["children"], tight["types"]) == (3, False)


def test_17_10_a_worker_of_one_session_bounds_answers_as_its_project_says(rig: Rig, open_mesh: Open, tmp_path: Path):
    here, other = project(Path.cwd()), tmp_path / "other"
    other.mkdir()
    mesh = open_mesh()
    for workdir, longest in ((here, 400), (other, 1000)):
        rig.script("root", say("x" * 1000))
        session = mesh.start_session(workdir)
        with mesh.worker(session=session):
            session.run("go")
        assert len(session.root.output()) == longest


def test_17_10_a_wrong_project_file_begins_no_session_and_stops_no_agent(rig: Rig, open_mesh: Open, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    mesh = open_mesh()
    session = mesh.start_session(other)
    project(other, "modle = 'x'")
    rig.script("root", do(call("glob", pattern="*")), say("well"))
    with mesh.worker():
        assert session.run("go") == "well"
    with pytest.raises(ConfigError, match="modle"):
        mesh.start_session(other)
