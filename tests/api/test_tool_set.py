"""Which tools the agents of a new session are offered, and that all of them are offered the same."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

import agentmesh
from agentmesh.tools.compact import LEFT_OUT
from tests.api.conftest import Open
from tests.fixtures.engine import Rig, call, do, say


def configure(folder: Path, text: str) -> None:
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "config.toml").write_text(text)


def server(rig: Rig, window: int) -> str:
    return f'[providers.openai]\nbase_url = "{rig.model.base_url}"\ncontext_window = {window}\n'


def offered(rig: Rig, mesh: agentmesh.Mesh, workdir: Path | str = ".") -> set[str]:
    rig.script("root", say("done"))
    with mesh.worker():
        mesh.start_session(workdir).run("go")
    return {tool["function"]["name"] for tool in rig.requests()[-1].body["tools"]}


@pytest.mark.parametrize(
    ("text", "window", "is_compact"),
    [
        ("", 100_000, False),
        ("", 16_384, False),
        ("", 16_383, True),
        ('[tools]\nset = "full"\n', 8_192, False),
        ('[tools]\nset = "compact"\n', 100_000, True),
    ],
)
def test_a_small_window_or_the_configuration_makes_the_set_compact(
    rig: Rig, open_mesh: Open, tmp_path: Path, text: str, window: int, is_compact: bool
):
    configure(tmp_path, text + server(rig, window))
    names = offered(rig, open_mesh())
    assert bool(names & LEFT_OUT) is not is_compact
    assert {"fork", "send", "wait", "kill", "bash", "read", "write", "edit", "grep", "glob"} <= names


@pytest.mark.parametrize(
    ("set_", "given", "sees"),
    [("compact", {}, False), ("compact", {"context": "all"}, True), ("full", {}, True)],
)
def test_a_fork_of_the_compact_set_begins_without_the_conversation(
    rig: Rig, open_mesh: Open, tmp_path: Path, set_: str, given: dict[str, str], sees: bool
):
    configure(tmp_path, f'[tools]\nset = "{set_}"\n')
    rig.script("root", do(call("fork", name="kid", prompt="Count apples.", **given)), say("done"))
    rig.script("kid", say("seven"))
    mesh = open_mesh()
    with mesh.worker():
        mesh.start_session().run("Fork, I say.")
    (request,) = rig.requests("kid")
    said = json.dumps(request.body["messages"])
    assert "Count apples." in said
    assert ("Fork, I say." in said) is sees
    (root, *_more) = rig.requests("root")
    assert request.body["tools"] == root.body["tools"], "the prefix that the provider has cached"


@pytest.mark.parametrize("set_", ["compact", "full"])
def test_what_is_read_in_the_compact_set_ends_with_what_to_do_and_its_row_does_not(
    rig: Rig, open_mesh: Open, tmp_path: Path, set_: str
):
    configure(tmp_path, f'[tools]\nset = "{set_}"\n')
    (tmp_path / "a.txt").write_text("TODO\n")
    read = [call("grep", pattern="TODO"), call("grep", pattern="("), call("edit", path="a.txt", old="TODO", new="DONE")]
    rig.script("root", do(*read), say("done"))
    mesh = open_mesh()
    with mesh.worker():
        session = mesh.start_session(tmp_path, permission_mode="all")
        session.run("go")
    shown = [json.loads(each["content"]) for each in rig.requests()[-1].body["messages"] if each["role"] == "tool"]
    (found, _, _) = rows = [
        row.content["result"] for row in session.root.conversation() if row.kind == agentmesh.Kind.TOOL_RESULT
    ]
    assert found["matches"]
    advice = {"then": "answer in words with these facts, or call the next tool"} if set_ == "compact" else {}
    assert shown == [{**found, **advice}, *rows[1:]], "neither an error nor a change is something to answer with"


SHOWN = 'You can wait like this:\n```json\n{"name": "wait", "arguments": {"from_agents": ["kid"]}}\n```'


@pytest.mark.parametrize(
    ("set_", "answer", "told"),
    [
        ("compact", SHOWN, ["wait"]),
        ("compact", "The kid said 42.", ["wait"]),
        ("compact", "", ["wait"]),
        ("full", SHOWN, ["perhaps"]),
        ("full", "The kid is at work.", []),
    ],
    ids=["shown", "made up", "no word", "shown, large", "said, large"],
)
def test_a_small_model_that_answers_right_after_a_fork_is_sent_to_wait_once(
    rig: Rig, open_mesh: Open, tmp_path: Path, set_: str, answer: str, told: list[str]
):
    configure(tmp_path, f'[tools]\nset = "{set_}"\n')
    more = [do(call("wait", from_agents=["kid"])), say("It said well.")] if told else []
    rig.script("root", do(call("fork", name="kid", prompt="look")), say(answer), *more)
    rig.script("kid", say("well"))
    mesh = open_mesh()
    with mesh.worker():
        session = mesh.start_session(permission_mode="all")
        said = session.run("go")
    rows = session.root.conversation()
    assert [row.content["correction"] for row in rows if "correction" in row.content and row.kind == "user"] == told
    if told == ["wait"]:
        assert said == "It said well."
        asked = rig.requests("root")[2].body
        assert "Call wait now" in str(asked["messages"][-1]["content"])
        assert asked["tool_choice"] == "required"


def test_a_small_model_that_goes_on_without_waiting_is_not_asked_again(rig: Rig, open_mesh: Open, tmp_path: Path):
    configure(tmp_path, '[tools]\nset = "compact"\n')
    rig.script("root", do(call("fork", name="kid", prompt="look")), say("It works."), *[say("I said so.")] * 3)
    rig.script("kid", say("well"))
    mesh = open_mesh()
    with mesh.worker():
        session = mesh.start_session(permission_mode="all")
        assert session.run("go") == "I said so."
    corrections = [
        row.content["correction"]
        for row in session.root.conversation()
        if row.kind == "user" and "correction" in row.content
    ]
    assert corrections == ["wait"]


def test_forks_have_the_set_of_their_root_and_what_it_lacks_is_refused(rig: Rig, open_mesh: Open, tmp_path: Path):
    configure(tmp_path, '[tools]\nset = "compact"\n')
    rig.script(
        "root",
        do(call("fork", name="kid", prompt="look"), call("todo", action="list")),
        do(call("wait", from_agents=["kid"])),
        do(call("task", description="look again", prompt="look")),
        say("done"),
    )
    rig.script("kid", do(call("web_fetch", url="https://example.org")), say("seen"))
    mesh = open_mesh()
    with mesh.worker():
        session = mesh.start_session(permission_mode="all")
        session.run("go")
    root, kid = (rig.requests(name)[0].body["tools"] for name in ("root", "kid"))
    assert kid == root
    refused = [
        row.content["result"]
        for name in ("root", "kid")
        for row in session.agent(name).conversation()
        if row.kind == agentmesh.Kind.TOOL_RESULT and "error" in row.content["result"]
    ]
    lacking = ("todo", "task", "web_fetch")
    assert [one["error"] for one in refused] == [f"there is no tool '{name}'" for name in lacking]
    assert all("Your tools are: " in one["hint"] for one in refused)


def test_agents_of_two_directories_share_everything_before_the_directory(rig: Rig, open_mesh: Open, tmp_path: Path):
    mesh, raw = open_mesh(), []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        offered(rig, mesh, tmp_path / name)
        raw.append(rig.requests()[-1].raw)
    marks = [one.index(b"The working directory is") for one in raw]
    assert raw[0][: marks[0]] == raw[1][: marks[1]]
    assert raw[0].index(b'"tools":') < raw[0].index(b'"messages":') < marks[0]
    assert json.loads(raw[0])["tools"] == json.loads(raw[1])["tools"]


def test_nobody_is_asked_where_nobody_is_there(rig: Rig, open_mesh: Open):
    assert "ask_user" not in offered(rig, open_mesh())


def test_a_window_that_holds_no_turn_is_told_once(rig: Rig, open_mesh: Open, tmp_path: Path, caplog):
    configure(tmp_path, server(rig, 2048))
    mesh = open_mesh()
    with caplog.at_level(logging.WARNING, logger="agentmesh"):
        mesh.start_session()
    (told,) = [record.getMessage() for record in caplog.records if "not even one turn" in record.getMessage()]
    assert told.startswith("The context of openai/scripted has 2,048 tokens. ")
