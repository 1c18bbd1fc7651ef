"""Merging own trees: by the tool and by a person, with conflicts, checks and previews."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import cast

import pytest
from psycopg.types.json import Jsonb

from agentmesh.app import Mesh, trees
from agentmesh.app.tree_words import about_merge
from agentmesh.config.schema import Sandbox
from agentmesh.domain.errors import NotMergeable
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.request import read_mail
from agentmesh.store import sessions
from agentmesh.tools.wall.walls import Walls
from agentmesh.workspace import merging
from agentmesh.workspace.merging import MergeTerms
from agentmesh.workspace.results import MergeStatus
from tests.fixtures.engine import Rig, call, do, once, say
from tests.fixtures.repositories import untouched, write
from tests.workspace.conftest import edit, here, idle, own, tree_of, with_child

pytestmark = pytest.mark.timeout(120)


def test_a_child_changes_files_and_its_parent_merges_them(grove: Rig):
    rig = grove
    before = untouched(rig.workdir)
    with_child(
        rig,
        edit("new/file.txt", "hello\n"),
        call("bash", command="echo more >> src/b.py && rm new.txt"),
        then=[do(call("merge", agent="child")), say("merged")],
    )
    assert (rig.workdir / "new.txt").exists(), "nothing has reached the checkout yet"
    assert rig.run("merge it") == "merged"
    (merged,) = rig.results("merge")
    assert merged["status"] == "merged"
    assert {one["path"]: one["status"] for one in merged["files"]} == {
        "new/file.txt": "added",
        "new.txt": "removed",
        "src/b.py": "changed",
    }
    assert (rig.workdir / "new/file.txt").read_text() == "hello\n"
    assert (rig.workdir / "src/b.py").read_text() == "b = 1\nmore\n"
    assert not (rig.workdir / "new.txt").exists()
    assert untouched(rig.workdir) == before
    assert rig.one("select state from agentmesh.merges") == "done"


def test_a_person_merges_and_the_second_time_there_is_nothing(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "changed\n"))
    result = merging.merge(here(rig), rig.agent("child"))
    assert (result.status, result.source, result.target) == (MergeStatus.MERGED, "child", "")
    assert [(one.path, one.status) for one in result.files] == [("a.txt", "changed")]
    assert (rig.workdir / "a.txt").read_text() == "changed\n"
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.NOTHING


def test_a_model_is_told_of_a_merge_and_not_that_somebody_forgot_to_report(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "changed\n"))
    merging.merge(here(rig), rig.agent("child"))
    rig.script("child", say("good"))
    rig.prompt("Go on.", "child")
    rig.rest()
    texts = [one["content"] for one in rig.requests("child")[-1].body["messages"] if one["role"] == "user"]
    (mail,) = [json.loads(text)["mail"] for text in texts if "were merged" in text]
    assert mail["merge"] == "Your files were merged into the session's directory: a.txt."
    assert not {"output", "error", "message"} & set(mail)
    assert "report" not in mail["note"]
    assert [one.automatic for text in texts for one in read_mail(text) if "were merged" in one.message] == [True]


def test_an_agent_merges_nothing_outside_the_session_s_directory_but_a_person_may(below: Rig):
    """The wall keeps commands in the session's directory; a tree has the whole repository."""
    rig = below
    merge = do(call("merge", agent="child"))
    with_child(rig, call("bash", command="echo up >> ../a.txt; echo down >> b.py"), then=[merge, say("refused")])
    rig.run("merge it")
    (refused,) = rig.results("merge")
    assert refused["error"] == "child changed files outside the session's directory: ../a.txt"
    assert (rig.workdir / "b.py").read_text() == "b = 1\n"
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    assert (rig.workdir.parent / "a.txt").read_text() == "not committed\nup\n"
    assert (rig.workdir / "b.py").read_text() == "b = 1\ndown\n"


def test_an_agent_merges_no_file_that_a_rule_keeps_from_being_written_but_a_person_may(grove: Rig):
    rig = grove
    layer = (Rule(Decision.DENY, "write", "*.lock"), Rule(Decision.DENY, "edit", "/nowhere/**"))
    rules = Permissions((layer,)).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])
    merge = do(call("merge", agent="child"))
    command = "python3 -c \"open('x.lock', 'w').write('x')\"; echo changed > a.txt"
    with_child(rig, call("bash", command=command), then=[merge, say("refused")])
    rig.run("merge it")
    (refused,) = rig.results("merge")
    assert refused["error"] == "child changed files that a rule keeps from being written: x.lock"
    assert not (rig.workdir / "x.lock").exists()
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    assert (rig.workdir / "x.lock").exists()


def test_what_the_person_has_changed_meanwhile_is_merged_with_it(grove: Rig):
    rig = grove
    write(rig.workdir, {"list.txt": "".join(f"{n}\n" for n in range(30))})
    with_child(rig, call("edit", path="list.txt", old="3\n4\n5", new="3\nfour\n5"))
    write(rig.workdir, {"list.txt": "".join(f"{n}\n" for n in range(30)) + "30\n", "mine.txt": "mine\n"})
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    lines = (rig.workdir / "list.txt").read_text().split()
    assert (lines[4], lines[-1]) == ("four", "30")
    assert (rig.workdir / "mine.txt").read_text() == "mine\n"


def test_a_preview_changes_nothing(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "changed\n"))
    result = merging.merge(here(rig), rig.agent("child"), terms=MergeTerms(preview=True))
    assert result.status is MergeStatus.PREVIEW
    assert "+changed" in result.diff
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert rig.one("select count(*) from agentmesh.merges") == 0


def test_only_what_was_agreed_to_is_merged(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "changed\n"))
    child, tree = rig.agent("child"), tree_of(rig, "child")
    shown = merging.merge(here(rig), child, terms=MergeTerms(preview=True))
    for changed in ({"more.txt": "more\n"}, {"more.txt": "text\n"}):  # also if the names and figures are the same
        write(tree, changed)
        again = merging.merge(here(rig), child, terms=MergeTerms(agreed=shown.plan))
        assert (again.status, [one.path for one in again.files]) == (MergeStatus.PREVIEW, ["a.txt", "more.txt"])
        assert again.plan != shown.plan
        shown = again
    assert not (rig.workdir / "more.txt").exists()
    write(rig.workdir, {"mine.txt": "of the person\n"})
    assert merging.merge(here(rig), child, terms=MergeTerms(agreed=shown.plan)).status is MergeStatus.MERGED
    assert (rig.workdir / "more.txt").read_text() == "text\n"


def test_the_loser_of_a_conflict_is_told_resolves_it_and_is_merged(grove: Rig):
    rig = grove
    rig.script(
        "root",
        do(own("one"), own("two")),
        once(idle(rig, "one", "two"), do(call("merge", agent="one"))),
        do(call("merge", agent="two")),
        do(call("wait", timeout=60, from_agents=["two"])),
        do(call("merge", agent="two")),
        say("all merged"),
    )
    rig.script("one", do(edit("a.txt", "of one\n")), say("ready"))
    rig.script(
        "two",
        do(edit("a.txt", "of two\n")),
        say("ready"),
        do(call("merge", agent="parent")),
        do(call("read", path="a.txt")),
        do(edit("a.txt", "of one\nof two\n")),
        do(call("send", to="parent", message="merge me")),
        say("solved"),
    )
    rig.worker()
    rig.run()
    assert "all merged" in [content.get("text") for _, content in rig.rows("root")]
    first, second, third = rig.results("merge")
    assert (first["status"], second["status"], third["status"]) == ("merged", "conflicts", "merged")
    assert [one["path"] for one in second["conflicts"]] == ["a.txt"]
    (down,) = rig.results("merge", "two")
    assert down["status"] == "merged"
    assert down["conflicts"] == [{"path": "a.txt", "kind": "both sides changed the same lines"}]
    (shown,) = rig.results("read", "two")
    assert "<<<<<<< two" in shown["content"]
    assert ">>>>>>> root" in shown["content"]
    assert (rig.workdir / "a.txt").read_text() == "of one\nof two\n"
    mails = [content["text"] for kind, content in rig.rows("two") if kind == "mail"]
    assert any('Call merge("parent")' in text and "of one" in text and "of two" in text for text in mails)


def _withhold(rig: Rig, path: str) -> None:
    rules = Permissions.of([Rule(Decision.DENY, "read", path)]).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])


def test_a_preview_shows_an_agent_no_file_that_it_must_not_read(grove: Rig):
    rig = grove
    _withhold(rig, "a.txt")
    look = call("merge", agent="parent", preview=True)
    rig.script("root", do(own("child")), say("forked"))
    rig.script("child", do(call("bash", command="touch begun")), say("begun"), do(look), say("looked"))
    rig.worker()
    rig.run()
    rig.rest()
    write(rig.workdir, {"a.txt": "canary\n", "src/b.py": "b = 2\n"})
    rig.prompt("Look.", "child")
    rig.rest()
    (shown,) = rig.results("merge", "child")
    assert "+b = 2" in shown["diff"]
    assert "a.txt: not shown, because a rule keeps it from being read" in shown["diff"]
    assert "canary" not in json.dumps(rig.rows("child"), default=str)
    assert "+canary" in merging.merge(here(rig), rig.agent("child"), down=True, terms=MergeTerms(preview=True)).diff


def test_mail_about_a_conflict_shows_an_agent_no_file_that_it_must_not_read(grove: Rig):
    rig = grove
    _withhold(rig, "a.txt")
    with_child(rig, edit("src/b.py", "of child\n"))
    write(tree_of(rig, "child"), {"a.txt": "of child\n"})
    write(rig.workdir, {"a.txt": "canary\n", "src/b.py": "of the user\n"})
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.CONFLICTS
    told = lambda: [str(content) for _, content in rig.rows("child") if "of the user" in str(content)]  # noqa: E731
    (mail,) = rig.until(told, "the mail")
    rig.rest()
    assert "a.txt: both sides changed the same lines" in mail
    assert "canary" not in mail


def test_files_with_conflict_markers_are_not_merged(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of child\n"), name="child")
    write(rig.workdir, {"a.txt": "of the user\n"})
    down = merging.merge(here(rig), rig.agent("child"), down=True)
    assert (down.status, down.down, down.target) == (MergeStatus.MERGED, True, "child")
    assert (
        "<<<<<<< child\nof child\n=======\nof the user\n>>>>>>> root\n" in (tree_of(rig, "child") / "a.txt").read_text()
    )
    up = merging.merge(here(rig), rig.agent("child"))
    assert (up.status, up.owner) == (MergeStatus.CONFLICTS, "child")
    assert up.note == "Conflict markers are left in: a.txt."
    session = rig.db.run(sessions.get, rig.one("select session_id from agentmesh.agents where id = %s", rig.root))
    assert about_merge(up, session).text == f"Nothing was merged. child was told and works on it. {up.note}"
    assert (rig.workdir / "a.txt").read_text() == "of the user\n"
    preview = merging.merge(here(rig), rig.agent("child"), terms=MergeTerms(preview=True))
    assert preview.note == up.note + " A merge would be refused."


MARKED = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n"


def test_a_file_that_is_about_conflict_markers_is_merged(grove: Rig):
    rig = grove
    with_child(rig, edit("fixture.txt", MARKED), edit("a.txt", "of child\n"))
    write(rig.workdir, {"a.txt": "of the user\n", "theirs.txt": MARKED})
    assert merging.merge(here(rig), rig.agent("child"), down=True).status is MergeStatus.MERGED
    assert merging.merge(here(rig), rig.agent("child")).note == "Conflict markers are left in: a.txt."
    rig.rest()
    write(tree_of(rig, "child"), {"a.txt": "of both\n"})
    assert merging.merge(here(rig), rig.agent("child"), terms=MergeTerms(preview=True)).note == ""
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    assert (rig.workdir / "fixture.txt").read_text() == MARKED


@pytest.mark.parametrize(("command", "status"), [("test -f made.txt", "merged"), ("echo bad; exit 3", "check_failed")])
def test_the_exit_code_of_the_check_decides(grove: Rig, command: str, status: str):
    rig = grove
    with_child(rig, edit("made.txt", "x\n"), then=[do(call("merge", agent="child", check=command)), say("over")])
    assert rig.run("merge") == "over"
    (merged,) = rig.results("merge")
    assert merged["status"] == status, merged
    assert (rig.workdir / "made.txt").exists() is (status == "merged")
    if status == "check_failed":
        assert (merged["check"]["exit_code"], merged["check"]["output"]) == (3, "bad\n")
    assert not [path for path in (rig.data_dir / "trees").iterdir() if path.name.startswith("check-")]


@pytest.mark.parametrize("by", ["tool", "person"])
def test_the_check_sees_no_file_that_rules_withhold(grove: Rig, by: str):
    rig = grove
    (rig.workdir / "secret.txt").write_text("canary\n")
    rules = Permissions.of([Rule(Decision.DENY, "read", "secret.txt")]).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [Jsonb(rules), rig.root])
    check = "sh look.sh"
    with_child(
        rig,
        edit("look.sh", f"cat s*.txt {rig.workdir}/s*.txt; echo looked; exit 3"),
        then=[do(call("merge", agent="child", check=check)), say("over")],
    )
    if by == "tool":
        rig.run("merge")
        (merged,) = rig.results("merge")
        output = merged["check"]["output"]
    else:
        session = rig.db.run(sessions.get, rig.one("select session_id from agentmesh.agents where id = %s", rig.root))
        checked = trees.merge(here_mesh(rig), session, rig.agent("child"), check=check).check
        assert checked is not None
        output = checked.output
    assert "looked" in output
    assert "canary" not in output


def here_mesh(rig: Rig) -> Mesh:
    """Return as much of a person's program as a merge needs."""
    walls = Walls(Sandbox(), trees=rig.data_dir / "trees")
    return cast(Mesh, SimpleNamespace(database=rig.db, workspaces=here(rig), walls=walls))


def test_what_cannot_be_merged_says_why(grove: Rig):
    rig = grove
    rig.script("root", do(call("fork", name="child", prompt="work")), do(call("merge", agent="child")), say("over"))
    rig.worker()
    rig.run()
    (refused,) = rig.results("merge")
    assert "same files" in refused["error"]
    with pytest.raises(NotMergeable):
        merging.merge(here(rig), rig.agent("child"))


def test_a_merge_into_the_checkout_asks_and_one_into_an_own_tree_is_an_edit(grove: Rig):
    rig = grove
    rig.root = rig.session(mode=PermissionMode.EDITS)
    rig.script("root", do(own("child")), once(idle(rig, "child"), do(call("merge", agent="child"))), say("over"))
    rig.script("child", do(own("grand")), once(idle(rig, "grand"), do(call("merge", agent="grand"))), say("merged"))
    rig.script("grand", do(call("write", path="deep.txt", content="x\n")), say("done"))
    rig.worker()
    rig.prompt()
    asked = "select reason from agentmesh.requests where tool = 'merge'"
    assert "the session's directory" in rig.until(lambda: rig.one(asked), "the question")
    assert rig.results("merge", "child")[0]["status"] == "merged"
    assert (tree_of(rig, "child") / "deep.txt").exists()
    assert not (rig.workdir / "deep.txt").exists()
