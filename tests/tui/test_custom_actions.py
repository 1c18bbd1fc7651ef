"""Custom commands that run commands, show files or are for a child: what comes of them, against a real database."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.app import HostAndUser
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.store import person, requests, sessions
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import CUSTOM, YES, Call, Done, Failed
from tests.fixtures.mesh import Mesh
from tests.tui.test_actions import Person


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".agentmesh" / "commands").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def me(mesh: Mesh, db: Database, folder: Path):
    here = HostAndUser.here()
    mesh.conn.execute(
        "update agentmesh.workers set seen_at = now() + interval '1 hour', host = %s, os_user = %s",
        [here.host, here.os_user],
    )
    mesh.conn.execute(
        "update agentmesh.sessions set workdir = %s, host = %s, os_user = %s", [str(folder), here.host, here.os_user]
    )
    mesh.conn.execute(
        "update agentmesh.workspaces set path = %s, host = %s, os_user = %s", [str(folder), here.host, here.os_user]
    )
    one = Person(mesh, db, folder)
    yield one
    one.actions.stop()


def write(folder: Path, body: str, name: str = "x") -> None:
    (folder / ".agentmesh" / "commands" / f"{name}.md").write_text(body)


def call(me: Person, arguments: str = "", *agreed: str, name: str = "x"):
    return me.does(Call(CUSTOM, (*agreed, name, arguments), f"/{name} {arguments}"))


def bodies(mesh: Mesh) -> list[str]:
    return mesh.column("select body from agentmesh.mail order by id")


def allow(mesh: Mesh, effect: Decision, tool: str, pattern: str) -> None:
    rules = Permissions.of([Rule(effect, tool, pattern)])
    if effect is Decision.ALLOW:
        mesh.run(requests.allow, mesh.session, rules.to_json()[0])
        return
    from psycopg.types.json import Jsonb

    mesh.conn.execute("update agentmesh.agents set permissions = %s", [Jsonb(rules.to_json())])


def test_a_file_is_shown_below_the_text(mesh: Mesh, me: Person, folder: Path):
    (folder / "a.py").write_text("x = '```'\n")
    write(folder, "Review @$1, not @none.py.")
    assert call(me, "a.py") == Done("No file of text here: none.py.")
    assert bodies(mesh) == ["Review @a.py, not @none.py.\n\na.py:\n\n````\n     1\tx = '```'\n````"]


def test_an_allowed_commands_output_takes_its_place(mesh: Mesh, me: Person, folder: Path):
    allow(mesh, Decision.ALLOW, "bash", "*")
    write(folder, "On !`echo main`, !`exit 3`.\n!`printf 'a\\nb\\n'`")
    assert call(me) == Done()
    assert bodies(mesh) == ["On `main`, `no output` (exit code 3).\n```\na\nb\n```"]


def test_what_a_command_prints_is_no_template(mesh: Mesh, me: Person, folder: Path):
    allow(mesh, Decision.ALLOW, "bash", "*")
    (folder / "shot.png").write_bytes(b"no image")
    write(folder, "!`echo @shot.png '!\\`ls\\`' '\\$ARGUMENTS'`")
    done = call(me)
    assert isinstance(done, Done), done
    assert len(bodies(mesh)) == 1


def test_a_command_that_needs_a_yes_asks_and_runs_nothing(mesh: Mesh, me: Person, folder: Path):
    write(folder, "Now !`touch made`")
    asked = call(me)
    assert isinstance(asked, Done)
    assert asked.question is not None
    assert "bash touch made" in asked.question.detail
    assert asked.question.args[0] == YES
    assert not (folder / "made").exists()
    assert bodies(mesh) == []
    assert me.does(Call(asked.question.command, asked.question.args, "/x")) == Done()
    assert (folder / "made").exists()
    assert bodies(mesh) == ["Now `no output`"]


def test_a_yes_holds_only_for_what_was_asked(mesh: Mesh, me: Person, folder: Path):
    write(folder, "Now !`touch made`")
    args = call(me).question.args
    write(folder, "Now !`touch other`")
    again = me.does(Call(CUSTOM, args, "/x"))
    assert "touch other" in again.question.detail
    assert not (folder / "other").exists()
    assert bodies(mesh) == []


def test_what_a_rule_or_the_mode_denies_is_refused_whole(mesh: Mesh, me: Person, folder: Path):
    allow(mesh, Decision.DENY, "read", "*.pem")
    (folder / "key.pem").write_text("s3cret")
    write(folder, "See @key.pem and !`touch made`")
    denied = call(me)
    assert isinstance(denied, Failed)
    assert "read key.pem was refused: a rule denies" in denied.text
    mesh.run(sessions.set_mode, mesh.session, PermissionMode.PLAN)
    write(folder, "!`touch made`")
    assert "mode plan only reads" in call(me).text
    assert not (folder / "made").exists()
    assert bodies(mesh) == []


def test_a_file_outside_the_directory_asks(mesh: Mesh, me: Person, folder: Path):
    write(folder, "See @/etc/hostname and @../../../../../../etc/passwd")
    asked = call(me)
    assert asked.question.detail.count("read ") >= 1
    assert bodies(mesh) == []


def test_a_binary_file_is_refused_and_nothing_is_sent(mesh: Mesh, me: Person, folder: Path):
    (folder / "a.bin").write_bytes(b"\0\1")
    write(folder, "See @a.bin")
    assert "a.bin is a binary file" in call(me).text
    assert bodies(mesh) == []


def test_too_many_are_refused(mesh: Mesh, me: Person, folder: Path):
    write(folder, "!`ls`\n" * 21)
    assert call(me).text.startswith("/x has 21 commands and files, and 20 are the most")


def test_one_that_is_gone_says_so(mesh: Mesh, me: Person, folder: Path):
    assert call(me).text == "there is no command /x any more"


def test_a_subtask_is_for_a_child_without_the_conversation(mesh: Mesh, me: Person, folder: Path):
    write(folder, "---\nsubtask: true\nmodel: demo\n---\nReview $1.", "see")
    done = call(me, "a.py", name="see")
    assert done.text.startswith("Forked see for /see")
    assert done.goto is not None
    assert mesh.unread(done.goto) == ["Review a.py."]
    assert mesh.one("select forked_at from agentmesh.agents where id = %s", done.goto) == 0


def test_an_agent_type_is_a_fork_of_that_type(mesh: Mesh, me: Person, folder: Path):
    write(folder, "---\nagent: explore\n---\nLook.")
    done = call(me)
    assert done.goto is not None
    query = "select (subagent_type, not tools::text like '%%\"write\"%%')::text from agentmesh.v_agents where id = %s"
    assert mesh.one(query, done.goto) == "(explore,t)"
    write(folder, "---\nagent: build\n---\nLook.")
    refused = call(me)
    assert "there is no type of sub-agent 'build'" in refused.text


def test_a_model_is_a_fork_with_the_conversation(mesh: Mesh, me: Person, folder: Path):
    write(folder, "---\nmodel: demo\n---\nReview.")
    done = call(me)
    assert mesh.one("select model from agentmesh.agents where id = %s", done.goto) == "demo/demo"
    assert mesh.unread(mesh.root) == []


def test_in_a_capture_the_message_is_captured_and_a_child_refused(mesh: Mesh, me: Person, folder: Path):
    (folder / "a.py").write_text("x\n")
    mesh.run(person.begin_capture, mesh.root)
    write(folder, "See @a.py")
    assert call(me) == Done()
    assert bodies(mesh) == []
    assert mesh.run(person.captured, mesh.root)[0].startswith("See @a.py\n\na.py:")
    write(folder, "---\nsubtask: true\n---\nSee")
    assert "a capture is open" in call(me).text


def test_elsewhere_commands_are_refused_and_names_stay_words(mesh: Mesh, me: Person, folder: Path):
    mesh.conn.execute("update agentmesh.sessions set host = 'elsewhere'")
    me.actions._session = me.actions._session._replace(host="elsewhere")
    assert call(me).text == "there is no command /x any more"
