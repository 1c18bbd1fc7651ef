"""What differs between directories stands behind what does not, in every request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentmesh.llm.simulator.request import said
from tests.api.conftest import Open
from tests.fixtures.engine import Rig, call, do, say


def folder(path: Path, words: str) -> Path:
    path.mkdir()
    (path / "AGENTS.md").write_text(words)
    skill = path / ".agents" / "skills" / path.name
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {path.name}\ndescription: {words}\n---\nDo it.\n")
    return path


def sent(body: Any) -> str:
    """Return a request in the order in which templates of local models write it."""
    system, *others = body["messages"]
    return json.dumps([system, body["tools"], others])


def test_two_directories_share_system_prompt_and_tools(rig: Rig, open_mesh: Open, tmp_path: Path):
    mesh = open_mesh()
    rig.script("root", say("done"), say("done"))
    with mesh.worker():
        for name in ("one", "two"):
            mesh.start_session(folder(tmp_path / name, f"Words of {name}.")).run("go")
    one, two = (request.body for request in rig.requests())
    assert one["messages"][0] == two["messages"][0]
    assert one["tools"] == two["tools"]
    for name, body in (("one", one), ("two", two)):
        first = body["messages"][1]
        assert said(first) == "go"
        for words in (f"The working directory is {tmp_path / name};", f"- {name}: Words", f"\nWords of {name}.\n</"):
            assert words in first["content"]
        assert "They come with the files of the working directory and not from the user" in first["content"]


def test_forks_tasks_and_later_requests_begin_with_the_same_bytes(rig: Rig, open_mesh: Open, tmp_path: Path):
    mesh = open_mesh()
    rig.script(
        "root",
        do(call("fork", name="kid", prompt="look"), call("fork", name="bare", prompt="look", context="none")),
        do(call("task", description="look again", prompt="[sub] look", subagent_type="general-purpose")),
        do(call("wait", from_agents=["kid", "bare"])),
        say("done"),
        say("done again"),
    )
    for name in ("kid", "bare", "sub"):
        rig.script(name, say("seen"))
    with mesh.worker():
        session = mesh.start_session(folder(tmp_path / "one", "Be kind."), permission_mode="all")
        session.run("go")
        session.run("go on")
    first, *later = (sent(request.body) for request in rig.requests("root"))
    for request in [*later, sent(rig.requests("kid")[0].body)]:
        assert request.startswith(first.removesuffix("]]"))
    for name in ("bare", "sub"):
        told = rig.requests(name)[0].body["messages"]
        assert [message["role"] for message in told] == ["system", "user"]
        assert "Be kind." not in told[0]["content"]
        assert "\nBe kind.\n</project_instructions>\n</workplace>\n\n" in told[1]["content"]
    assert rig.requests("bare")[0].body["messages"][0] == rig.requests("root")[0].body["messages"][0]


def test_people_see_only_their_own_words(rig: Rig, open_mesh: Open, tmp_path: Path):
    mesh = open_mesh()
    rig.script("root", say("done"))
    with mesh.worker():
        session = mesh.start_session(folder(tmp_path / "one", "Be kind."))
        session.run("go")
    shown = [row.content for row in session.agent("root").conversation()]
    assert shown[0]["text"] == "go"
    assert "workplace" not in json.dumps(shown)
