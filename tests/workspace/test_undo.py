"""Undo, redo and rewind: of files and conversation, also of what commands and merges changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from agentmesh.app.tree_words import about_undo, undo_question
from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.errors import AgentBusy, NoRepository, UnknownFile
from agentmesh.domain.shape import Shape
from agentmesh.git.mixed_trees import mixed
from agentmesh.git.store import Store
from agentmesh.store import agents, moves, snapshots, transcript
from agentmesh.store import workspaces as rows
from agentmesh.store.tx import Database
from agentmesh.workspace import merging, undo
from agentmesh.workspace.blame import blame
from agentmesh.workspace.results import Later, MergeStatus, UndoStatus
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.database import NewDatabase
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, untouched, write
from tests.fixtures.worker_process import HOST, USER, WatchedDatabase
from tests.workspace.conftest import edit, here, tree_of, with_child

pytestmark = pytest.mark.timeout(120)


def texts(rig: Rig, agent: str = "root") -> list[str]:
    """Return what the agent's model is sent, without results."""
    rows = rig.db.run(transcript.context, rig.agent(agent))
    return [str(row.content.get("text")) for row in rows if row.content.get("text")]


def two_turns(rig: Rig) -> None:
    """Let the root change files in two turns."""
    rig.script(
        "root",
        do(edit("a.txt", "first turn\n"), edit("made.txt", "made\n")),
        say("one"),
        do(call("bash", command="echo second turn > a.txt; rm src/b.py; mkdir -p deep/er; echo x > deep/er/x")),
        say("two"),
    )
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")


def test_undo_takes_back_a_turn_in_files_and_conversation_and_redo_brings_it_again(grove: Rig):
    rig = grove
    before = untouched(rig.workdir)
    two_turns(rig)
    assert texts(rig) == ["turn one", "one", "turn two", "two"]
    done = undo.undo(here(rig), rig.agent("root"))
    assert done.status is UndoStatus.DONE
    assert {one.path: one.status for one in done.files} == {
        "a.txt": "changed",
        "deep/er/x": "removed",
        "src/b.py": "added",
    }
    assert (rig.workdir / "a.txt").read_text() == "first turn\n"
    assert (rig.workdir / "src/b.py").read_text() == "b = 1\n"
    assert not (rig.workdir / "deep").exists()
    assert texts(rig) == ["turn one", "one"]

    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert not (rig.workdir / "made.txt").exists()
    assert texts(rig) == []
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.NOTHING

    shown = undo.redo(here(rig), rig.agent("root"), preview=True)
    assert (shown.status, sorted(one.path for one in shown.files)) == (UndoStatus.PREVIEW, ["a.txt", "made.txt"])
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert texts(rig) == []
    assert undo.redo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "first turn\n"
    assert texts(rig) == ["turn one", "one"]
    assert undo.redo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "second turn\n"
    assert not (rig.workdir / "src/b.py").exists()
    assert texts(rig) == ["turn one", "one", "turn two", "two"]
    assert undo.redo(here(rig), rig.agent("root")).status is UndoStatus.NOTHING
    assert untouched(rig.workdir) == before


def test_undo_takes_back_a_turn_with_a_correction_in_it_as_one(grove: Rig):
    rig = grove
    rig.script(
        "root", say('{"name": "edit", "arguments": {"path": "a.txt"'), do(edit("a.txt", "changed\n")), say("one")
    )
    rig.worker()
    rig.run("turn one")
    assert len(texts(rig)) == 4
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert texts(rig) == []


def test_undo_takes_back_a_turn_that_was_told_to_report_as_one(grove: Rig):
    rig = grove
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    rig.script("child", do(edit("a.txt", "changed\n")), say("Done."), do(call("report", n=1)))
    rig.worker()
    rig.db.run(agents.fork, rig.agent("root"), "child", "go", shape=Shape(schema=schema), report=True)
    rig.rest()
    assert undo.undo(here(rig), rig.agent("child")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"


def test_redo_brings_back_what_the_newest_undo_took_and_no_more(grove: Rig):
    """The newest undo took back a turn without files, so files of the turn after it must not come first."""
    rig = grove
    rig.script("root", say("one"), do(call("bash", command="echo changed > a.txt")), say("two"))
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")
    for _ in range(2):
        assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert texts(rig) == []
    assert undo.redo(here(rig), rig.agent("root"), preview=True).files == ()
    assert undo.redo(here(rig), rig.agent("root")).files == ()
    assert texts(rig) == ["turn one", "one"]
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    undo.undo(here(rig), rig.agent("root"), files=False)
    assert [one.path for one in undo.redo(here(rig), rig.agent("root"), conversation=False).files] == ["a.txt"]
    undo.undo(here(rig), rig.agent("root"), conversation=False)


@contextmanager
def saving_meanwhile(rig: Rig, save: Callable[[], None]) -> Iterator[Workspaces]:
    """Yield the workspaces of a process in which somebody saves a file after an undo wrote, before its row is there."""

    saved = threading.Event()

    def hook(when: str, name: str) -> None:
        if (when, name) == ("before", "record") and not saved.is_set():
            saved.set()
            save()

    database = WatchedDatabase(rig.url, role="test")
    database.hook = hook
    try:
        yield Workspaces(database, rig.data_dir, host=HOST, os_user=USER)
    finally:
        database.close()
    assert saved.is_set()


def test_what_somebody_saves_while_an_undo_writes_is_no_part_of_it(grove: Rig):
    rig = grove
    two_turns(rig)
    write(rig.workdir, {"mine.txt": "before\n"})

    def save() -> None:
        write(rig.workdir, {"mine.txt": "before\nan hour of work\n"})

    with saving_meanwhile(rig, save) as among:
        assert undo.undo(among, rig.agent("root")).status is UndoStatus.DONE
    write(rig.workdir, {"mine.txt": "before\nan hour of work\nand more\n"})
    redone = undo.redo(here(rig), rig.agent("root"))
    assert redone.status is UndoStatus.DONE, redone
    assert {one.path for one in redone.files} == {"a.txt", "deep/er/x", "src/b.py"}
    assert (rig.workdir / "mine.txt").read_text() == "before\nan hour of work\nand more\n"


def test_a_snapshot_that_another_process_stores_while_an_undo_writes_is_no_part_of_it(grove: Rig):
    rig = grove
    two_turns(rig)

    def save() -> None:
        row = rig.db.run(rows.of_agent, rig.agent("root"))
        write(rig.workdir, {"mine.txt": "an hour of work\n", "theirs.txt": "theirs\n"})
        place = here(rig).place(rig.workdir)
        now = Store(place, rig.data_dir / "another").take(row.head, "refs/agentmesh/s/a/1").tree
        tree = mixed(place, str(row.head), {"theirs.txt": now})
        rig.db.run(snapshots.record, row.id, "outside", snapshots.entry(tree, row.head, "refs/agentmesh/s/a/2"))

    with saving_meanwhile(rig, save) as among:
        assert undo.undo(among, rig.agent("root")).status is UndoStatus.DONE
    write(rig.workdir, {"mine.txt": "an hour of work\nand more\n"})
    redone = undo.redo(here(rig), rig.agent("root"))
    assert redone.status is UndoStatus.DONE, redone
    assert {one.path for one in redone.files} == {"a.txt", "deep/er/x", "src/b.py"}
    assert (rig.workdir / "mine.txt").read_text() == "an hour of work\nand more\n"
    assert (rig.workdir / "theirs.txt").read_text() == "theirs\n"


def test_redo_of_files_alone_leaves_the_conversation(grove: Rig):
    rig = grove
    two_turns(rig)
    undo.undo(here(rig), rig.agent("root"), files=False)
    assert undo.undo(here(rig), rig.agent("root"), conversation=False).status is UndoStatus.DONE
    before = texts(rig)
    assert undo.redo(here(rig), rig.agent("root")).files
    assert texts(rig) == before
    assert undo.redo(here(rig), rig.agent("root")).files == ()
    assert len(texts(rig)) > len(before)


def test_a_turn_that_was_taken_back_comes_back_in_another_database(
    grove: Rig, new_database: NewDatabase, template: str
):
    rig = grove
    two_turns(rig)
    rig.rest()
    root, before = rig.agent("root"), texts(rig)
    undo.undo(here(rig), root)
    session = rig.one("select session_id from agentmesh.agents where id = %s", root)
    with new_database(template) as url, psycopg.connect(url, autocommit=True) as there:
        there.execute("select setval(pg_get_serial_sequence('agentmesh.snapshots', 'id'), 7000)")
        this = moves.begin(rig.conn, session, "there")
        moves.leave(rig.conn, there, this, session, "here")
        moves.unpack(there, this)
        moves.end(rig.conn, this)
        with Database(url, role="test") as database:
            done = undo.redo(Workspaces(database, rig.data_dir, host=HOST, os_user=USER), root)
            rows = database.run(transcript.context, root)
    assert (done.status, {one.path for one in done.files}) == (UndoStatus.DONE, {"a.txt", "deep/er/x", "src/b.py"})
    assert (rig.workdir / "a.txt").read_text() == "second turn\n"
    assert [str(row.content.get("text")) for row in rows if row.content.get("text")] == before


def test_what_somebody_else_has_changed_since_is_refused_and_the_others_offered(grove: Rig):
    rig = grove
    two_turns(rig)
    write(rig.workdir, {"a.txt": "of the user\n"})
    done = undo.undo(here(rig), rig.agent("root"))
    assert (done.status, done.refused) == (UndoStatus.REFUSED, (Later("a.txt", ""),))
    assert {one.path for one in done.files} == {"src/b.py", "deep/er/x"}
    assert (rig.workdir / "deep/er/x").exists(), "nothing was changed"
    assert texts(rig)[-1] == "two"
    done = undo.undo(here(rig), rig.agent("root"), paths=["src/b.py", "deep"])
    assert done.status is UndoStatus.DONE
    assert (rig.workdir / "src/b.py").exists()
    assert (rig.workdir / "a.txt").read_text() == "of the user\n"
    assert texts(rig)[-1] == "two", "single files leave the conversation as it is"


@pytest.mark.parametrize("path", ["a.tx", "src/a.py", "deep/x", "c.txt"])
def test_a_path_that_the_turn_has_not_changed_is_refused(grove: Rig, path: str):
    rig = grove
    with pytest.raises(UnknownFile):
        undo.undo(here(rig), rig.agent("root"), paths=[path])
    two_turns(rig)
    with pytest.raises(UnknownFile, match=path):
        undo.undo(here(rig), rig.agent("root"), paths=["a.txt", path])
    assert (rig.workdir / "a.txt").read_text() == "second turn\n", "nothing was changed"
    assert undo.undo(here(rig), rig.agent("root"), paths=["a.txt"]).status is UndoStatus.DONE
    assert undo.undo(here(rig), rig.agent("root"), paths=["a.txt"]).status is UndoStatus.NOTHING


@pytest.mark.parametrize("way", ["undo", "rewind"])
def test_only_what_was_agreed_to_is_taken_back(grove: Rig, way: str):
    rig = grove
    rig.script("root", do(edit("a.txt", "one\n")), say("1"), do(edit("a.txt", "two\n")), say("2"), say("3"))
    rig.worker()

    def back(**how):
        if way == "rewind":
            return undo.rewind(here(rig), rig.agent("root"), 0, **how)
        return undo.undo(here(rig), rig.agent("root"), **how)

    rig.run("turn one")
    shown = back(preview=True)
    rig.run("turn two")
    again = back(agreed=shown.plan)
    assert (again.status, [one.path for one in again.files]) == (UndoStatus.PREVIEW, ["a.txt"])
    assert again.plan != shown.plan
    assert (rig.workdir / "a.txt").read_text() == "two\n"
    assert "turn two" in texts(rig)
    assert back(agreed=again.plan).status is UndoStatus.DONE
    assert "turn two" not in texts(rig)


def test_an_agreed_undo_takes_back_no_later_turn_even_if_that_wrote_nothing(grove: Rig):
    rig = grove
    rig.script("root", do(edit("a.txt", "one\n")), say("1"), say("2"))
    rig.worker()
    rig.run("turn one")
    shown = undo.undo(here(rig), rig.agent("root"), preview=True)
    rig.run("turn two")
    again = undo.undo(here(rig), rig.agent("root"), agreed=shown.plan)
    assert (again.status, again.files) == (UndoStatus.PREVIEW, ())
    assert "turn two" in texts(rig)


def test_only_what_was_agreed_to_is_done_again(grove: Rig):
    rig = grove
    two_turns(rig)
    undo.undo(here(rig), rig.agent("root"))
    shown = undo.redo(here(rig), rig.agent("root"), preview=True)
    undo.undo(here(rig), rig.agent("root"))
    again = undo.redo(here(rig), rig.agent("root"), agreed=shown.plan)
    assert (again.status, sorted(one.path for one in again.files)) == (UndoStatus.PREVIEW, ["a.txt", "made.txt"])
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert undo.redo(here(rig), rig.agent("root"), agreed=again.plan).status is UndoStatus.DONE


def test_the_work_of_a_sibling_in_the_same_directory_stays(grove: Rig):
    rig = grove
    rig.script("root", do(edit("mine.txt", "mine\n"), edit("both.txt", "mine\n")), say("made"))
    rig.script("other", do(edit("theirs.txt", "theirs\n"), call("bash", command="echo theirs >> both.txt")), say("x"))
    rig.worker()
    rig.run()
    rig.fork("other")
    rig.prompt("go", "other")
    rig.rest()
    done = undo.undo(here(rig), rig.agent("root"))
    assert done.refused == (Later("both.txt", "other"),)
    assert undo.undo(here(rig), rig.agent("root"), paths=["mine.txt"]).status is UndoStatus.DONE
    assert not (rig.workdir / "mine.txt").exists()
    assert (rig.workdir / "theirs.txt").exists()
    assert (rig.workdir / "both.txt").read_text() == "mine\ntheirs\n"


def test_rewind_goes_to_a_row_and_a_preview_only_looks(grove: Rig):
    rig = grove
    two_turns(rig)
    row = next(row.seq for row in rig.db.run(transcript.own, rig.agent("root")) if row.content.get("text") == "one")
    looked = undo.rewind(here(rig), rig.agent("root"), row, preview=True)
    assert looked.status is UndoStatus.PREVIEW
    assert (rig.workdir / "a.txt").read_text() == "second turn\n"
    done = undo.rewind(here(rig), rig.agent("root"), row)
    assert (done.status, done.row) == (UndoStatus.DONE, row)
    assert (rig.workdir / "a.txt").read_text() == "first turn\n"
    assert texts(rig) == ["turn one", "one"]
    files_only = undo.rewind(here(rig), rig.agent("root"), 0, conversation=False)
    assert files_only.status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert texts(rig) == ["turn one", "one"]


def test_a_merge_is_undone_and_merged_again(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"), edit("made.txt", "made\n"))
    child = rig.agent("child")
    base = rig.one("select base from agentmesh.workspaces where kind = 'own'")
    assert merging.merge(here(rig), child).status is MergeStatus.MERGED
    done = undo.undo(here(rig), rig.agent("root"))
    assert (done.status, done.merges) == (UndoStatus.DONE, ("child",))
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert not (rig.workdir / "made.txt").exists()
    assert rig.one("select state from agentmesh.merges") == "undone"
    assert rig.one("select base from agentmesh.workspaces where kind = 'own'") == base
    assert (tree_of(rig, "child") / "made.txt").exists()
    assert merging.merge(here(rig), child).status is MergeStatus.MERGED
    assert (rig.workdir / "made.txt").read_text() == "made\n"
    again = undo.undo(here(rig), rig.agent("root"))
    assert again.merges == ("child",)
    assert undo.redo(here(rig), rig.agent("root"), conversation=False).merges == ("child",)
    assert (rig.workdir / "made.txt").exists()
    assert merging.merge(here(rig), child).status is MergeStatus.NOTHING


def test_blame_names_who_wrote_a_line_also_after_an_undo_and_a_redo(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    merging.merge(here(rig), rig.agent("child"))
    written = blame(here(rig), rig.root, "a.txt")
    assert [(line.text, line.agent_id) for line in written] == [("of the child", rig.agent("child"))]
    assert undo.undo(here(rig), rig.root).status is UndoStatus.DONE
    assert [(line.text, line.by) for line in blame(here(rig), rig.root, "a.txt")] == [("not committed", None)]
    assert undo.redo(here(rig), rig.root, conversation=False).status is UndoStatus.DONE
    assert blame(here(rig), rig.root, "a.txt") == written


@pytest.mark.parametrize("later", [(), (edit("later.txt", "later\n"),)], ids=["words", "files"])
def test_what_was_merged_before_the_newest_turn_is_undone_after_it(grove: Rig, later: tuple[Any, ...]):
    rig = grove
    said = [say("later")] if not later else [do(*later), say("later")]
    with_child(rig, edit("made.txt", "made\n"), then=[say("first"), *said])
    rig.run("first")
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    rig.run("go on")
    assert (rig.workdir / "later.txt").exists() == bool(later)
    done = undo.undo(here(rig), rig.agent("root"))
    assert (done.status, done.merges) == (UndoStatus.DONE, ())
    assert (rig.workdir / "made.txt").exists()
    assert not (rig.workdir / "later.txt").exists()
    assert undo.undo(here(rig), rig.agent("root")).merges == ("child",)
    assert not (rig.workdir / "made.txt").exists()
    assert "first" in texts(rig)


def test_a_turn_that_merged_is_undone_with_its_merge(grove: Rig):
    rig = grove
    with_child(rig, edit("made.txt", "made\n"), then=[do(call("merge", agent="child")), say("merged")])
    rig.run("merge")
    assert (rig.workdir / "made.txt").exists()
    done = undo.undo(here(rig), rig.agent("root"))
    assert done.merges == ("child",)
    assert not (rig.workdir / "made.txt").exists()
    assert "merge" not in texts(rig)
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED


def test_an_agent_that_works_is_not_undone(grove: Rig):
    rig = grove
    rig.prompt()
    with pytest.raises(AgentBusy):
        undo.undo(here(rig), rig.agent("root"))


def test_without_a_repository_only_the_conversation_goes_back(rig: Rig):
    rig.script("root", do(edit("a.txt", "x\n")), say("one"))
    rig.worker()
    rig.run("turn one")
    done = undo.undo(here(rig), rig.agent("root"))
    assert done.status is UndoStatus.DONE
    assert "Files stay as they are" in done.note
    assert (rig.workdir / "a.txt").exists()
    assert texts(rig) == []
    with pytest.raises(NoRepository):
        undo.rewind(here(rig), rig.agent("root"), 0, conversation=False)


def test_undo_in_an_own_tree_is_for_that_tree_only(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    done = undo.undo(here(rig), rig.agent("child"))
    assert done.status is UndoStatus.DONE
    assert (tree_of(rig, "child") / "a.txt").read_text() == "not committed\n"
    assert rig.db.run(agents.get, rig.agent("child")).status == "idle"


@pytest.mark.parametrize(
    "command",
    [
        "printf 'other\\n' > .gitignore",
        "git checkout -q without",
        "mv inner/.git inner/git-old",
        "printf 'other\\n' > .gitignore; mkdir new; echo x > new/x; echo y > y",
    ],
)
def test_files_that_no_snapshot_knew_stay_when_a_call_has_brought_them_to_light(grove: Rig, command: str):
    rig = grove
    git(rig.workdir, "checkout", "-q", "-b", "without")
    git(rig.workdir, "checkout", "-q", "-")
    write(rig.workdir, {".gitignore": ".env\nmodules/\n"})
    git(rig.workdir, "add", ".gitignore")
    git(rig.workdir, "commit", "-q", "-m", "ignore")
    write(rig.workdir, {".env": "SECRET=1\n"})
    write(rig.workdir, {"modules/m.js": "m\n"})
    write(rig.workdir, {"inner/one": "1\n"})
    git(rig.workdir / "inner", "init", "-q")
    rig.script("root", do(edit("a.txt", "first\n")), say("one"), do(call("bash", command=command)), say("two"))
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")
    done = undo.undo(here(rig), rig.agent("root"))
    assert done.status is UndoStatus.DONE
    assert not {one.path for one in done.files} & {".env", "modules/m.js", "inner/one"}
    kept = {".env": "SECRET=1\n", "modules/m.js": "m\n", "inner/one": "1\n"}
    assert {name: (rig.workdir / name).read_text() for name in kept} == kept
    assert not (rig.workdir / "new").exists(), "what the call made is gone"
    assert not (rig.workdir / "y").exists()
    assert (rig.workdir / ".gitignore").read_text() == ".env\nmodules/\n"


@pytest.mark.parametrize(
    ("command", "name", "content"),
    [
        ("mv .env env.bak", "env.bak", "SECRET=1\n"),
        ("printf 'other\n' > .gitignore; echo MORE=2 >> .env", ".env", "SECRET=1\nMORE=2\n"),
    ],
    ids=["renamed", "written too"],
)
def test_an_ignored_file_that_a_call_has_brought_to_light_by_its_own_hand_stays(
    grove: Rig, command: str, name: str, content: str
):
    rig = grove
    write(rig.workdir, {".gitignore": ".env\n", ".env": "SECRET=1\n"})
    rig.script("root", do(edit("a.txt", "first\n")), say("one"), do(call("bash", command=command)), say("two"))
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / name).read_text() == content


@pytest.mark.parametrize("command", ["ln a.txt linked", "cp -p a.txt linked", "mv a.txt linked; echo more >> linked"])
def test_another_name_for_a_file_that_git_knows_is_the_work_of_the_call(grove: Rig, command: str):
    rig = grove
    rig.script("root", do(edit("b.txt", "first\n")), say("one"), do(call("bash", command=command)), say("two"))
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert not (rig.workdir / "linked").exists()


def test_undo_says_which_files_changed_while_a_command_ran_beside_others(grove: Rig):
    rig = grove
    rig.script(
        "root", do(call("bash", command="echo x > a.txt")), do(call("write", path="made.txt", content="x")), say("done")
    )
    rig.worker()
    rig.run("work")
    shown = undo.undo(here(rig), rig.agent("root"), preview=True)
    assert (sorted(one.path for one in shown.files), shown.by_command) == (["a.txt", "made.txt"], ("a.txt",))
    said = " A command changed a.txt: what somebody else saved there while it ran goes too."
    assert said in undo_question(shown)[1]
    assert said in about_undo(shown, again="", alone="").text
    assert undo.undo(here(rig), rig.agent("root")).by_command == ("a.txt",)


def test_in_an_own_tree_nobody_else_saves_anything(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    shown = undo.undo(here(rig), rig.agent("child"), preview=True)
    assert ([one.path for one in shown.files], shown.by_command) == (["a.txt"], ())


@pytest.mark.parametrize("program", ["gzip", "xz", "bzip2", "zstd -q --rm"])
def test_what_packs_a_file_that_no_snapshot_has_stays_because_nobody_could_bring_that_back(grove: Rig, program: str):
    rig = grove
    write(rig.workdir, {"big.log": "x" * 5000, "ignored/app.log": "y\n", "small.log": "z\n"})
    write(rig.workdir, {".gitignore": "ignored/*.log\n"})
    pack = call("bash", command=f"{program} big.log ignored/app.log small.log; echo new | gzip > new.gz")
    rig.script("root", do(call("bash", command="echo first > a.txt")), say("one"), do(pack), say("two"))
    rig.worker(workspace=Settings(max_file=2000))
    rig.run("turn one")
    rig.run("turn two")
    done = undo.undo(here(rig), rig.agent("root"))
    packed = {path.name for path in rig.workdir.rglob("*.log.*")}
    assert {name.rpartition(".")[0] for name in packed} == {"big.log", "app.log"}
    assert {one.path for one in done.files if one.status == "added"} == {"small.log"}
    assert not (rig.workdir / "new.gz").exists()


def test_a_folder_that_a_call_has_renamed_is_its_work(grove: Rig):
    rig = grove
    write(rig.workdir, {"lib/deep/one.py": "one = 1\n"})
    rig.script("root", do(edit("a.txt", "first\n")), say("one"), do(call("bash", command="mv lib moved")), say("two"))
    rig.worker()
    rig.run("turn one")
    rig.run("turn two")
    done = undo.undo(here(rig), rig.agent("root"))
    assert {one.path: one.status for one in done.files} == {"lib/deep/one.py": "added", "moved/deep/one.py": "removed"}
    assert (rig.workdir / "lib/deep/one.py").read_text() == "one = 1\n"
    assert not (rig.workdir / "moved").exists()


def test_a_file_that_was_too_large_stays_when_a_call_has_cut_it(grove: Rig):
    rig = grove
    write(rig.workdir, {"big": "x" * 5000})
    cut = call("bash", command="truncate -s 10 big")
    rig.script("root", do(call("bash", command="echo first > a.txt")), say("one"), do(cut), say("two"))
    rig.worker(workspace=Settings(max_file=2000))
    rig.run("turn one")
    rig.run("turn two")
    undo.undo(here(rig), rig.agent("root"))
    assert (rig.workdir / "big").read_text() == "x" * 10
