"""Trees of agents' own on the command line: fork, diff, merge, blame, undo, and the list of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import psutil
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents
from tests.cli.conftest import CommandLine, Outcome
from tests.fixtures import team
from tests.fixtures.engine import Rig
from tests.fixtures.repositories import git

pytestmark = pytest.mark.timeout(180)
_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
"""Outside of the project: what they get would be changes of it."""


class Shop:
    """The project, its session, and commands in it."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig = rig
        self.folder = team.project(folder)
        team.script(rig)
        rig.know_bills("openai/scripted")
        self.run = CommandLine(
            folder,
            AGENTMESH_DATABASE_URL=rig.url,
            AGENTMESH_DATA_DIR=str(folder.parent / "data"),
            OPENAI_BASE_URL=rig.model.base_url,
            OPENAI_API_KEY="none",
            AGENTMESH_MODEL="scripted",
            **{name: str(folder.parent / "home") for name in _HOMES},
        )
        self("run", "--permission-mode", "all", "Hello")
        newest = "select root_id from agentmesh.sessions order by created_at desc limit 1"
        rig.root = AgentId(rig.one(newest))

    def __call__(self, *words: str, code: int = 0) -> Outcome:
        """Run a command that ends with this code."""
        done = self.run(*words)
        assert done.code == code, f"{words}: {done}"
        return done

    def asks(self, *words: str) -> pexpect.spawn:
        """Begin a command that asks at a terminal."""
        command = ["-m", "agentmesh", *words]
        environ = {**self.run.environ, "COLUMNS": "400"}
        return pexpect.spawn(
            sys.executable,
            command,
            cwd=str(self.folder),
            env=environ,
            encoding="utf-8",
            timeout=50,
            dimensions=(24, 400),
        )

    def fork(self, *names: str) -> None:
        """Fork agents with trees of their own, and wait until they rest."""
        self("fork", "--own", names[0], "Do your part.")  # starts the worker
        for name in names[1:]:
            self.rig.db.run(agents.fork, self.rig.root, name, "Do your part.", workspace="own")
        self.rig.rest()

    @property
    def price(self) -> str:
        """The text of price.py in the user's checkout."""
        return (self.folder / "price.py").read_text()

    def close(self) -> None:
        """End the worker that commands have started."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.cwd() == str(self.folder) and "worker" in process.cmdline():
                    process.kill()


def declined(asking: pexpect.spawn) -> int | None:
    """Say no, and return the exit code."""
    asking.sendline("n")
    asking.expect("Nothing was done.")
    asking.expect(pexpect.EOF)
    asking.close()
    code: int | None = asking.exitstatus
    return code


@pytest.fixture
def shop(rig: Rig, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(rig, tmp_path / "shop")
    try:
        yield made
    finally:
        made.close()


def test_three_agents_two_conflict_one_is_sent_back_all_is_merged_and_the_last_undone(shop: Shop):
    before = git(shop.folder, "status", "--porcelain")
    shop.fork("rounding", "discount", "writer")
    assert git(shop.folder, "status", "--porcelain") == before
    assert shop("merge", "writer", "--yes").out == "added  README.md  +1  −0\n"
    done = shop("merge", "rounding", "--check", team.CHECK, "--yes")
    assert "Merged rounding into " in done.err
    refused = shop("merge", "discount", "--check", team.CHECK, "--yes", "--json", code=1)
    assert (refused.data["status"], refused.data["told"]) == ("conflicts", "discount")
    assert [one["path"] for one in refused.data["conflicts"]] == ["price.py"]
    assert "Conflict in price.py" in refused.err
    assert "round(net + vat, 2)" in shop.price
    shop.rig.rest()
    assert shop.rig.last("discount")[0] == "Both are in."
    merged = shop("merge", "discount", "--check", team.CHECK, "--yes", "--json").data
    assert (merged["status"], merged["check"]["exit_code"], merged["target"]) == ("merged", 0, None)
    assert shop.price == team.BOTH
    lines = shop("blame", "price.py", "--json").events
    assert [line["name"] for line in lines] == ["discount", None, "discount"]
    undone = shop("undo", "root", "--yes", "--json").data
    assert (undone["status"], undone["merges_undone"]) == ("done", ["discount"])
    assert "round(net + vat, 2)" in shop.price
    assert "It writes 1 file, " in shop("redo", "root", code=2).err, "nobody can be asked here"
    shop("redo", "root", "--yes")
    assert shop.price == team.BOTH
    shop("undo", "root", "--conversation")
    assert "0 files" not in shop("redo", "root").err, "nothing is to be written, so nobody is asked"


def test_a_diff_has_what_commands_changed_and_the_net_of_it_applies(shop: Shop, tmp_path: Path):
    shop.fork("discount")
    each = shop("diff", "discount")
    assert "# price.py: bash by discount, " in each.out
    assert "Not in it" not in each.err
    (change,) = shop("diff", "discount", "--json").events
    assert (change["tool"], change["added"], change["removed"], change["created"]) == ("bash", 2, 2, False)
    net = shop("diff", "discount", "--net")
    (tmp_path / "it.patch").write_text(net.out)
    git(shop.folder, "apply", str(tmp_path / "it.patch"))
    assert shop.price == team.DISCOUNT
    assert shop("diff", "discount", "--net", "--since", str(change["seq"])).out == ""
    assert shop("diff", "root").out == each.out


def test_a_preview_changes_nothing_and_prints_the_diff(shop: Shop):
    shop.fork("writer")
    done = shop("merge", "writer", "--preview")
    assert "+# Prices" in done.out
    assert "would change 1 file, +1 −0" in done.err
    assert not (shop.folder / "README.md").exists()
    assert "Nothing to merge" in shop("merge", "writer", "--yes").err or (shop.folder / "README.md").exists()
    assert "Nothing to merge" in shop("merge", "writer").err


def test_the_exit_code_says_whether_something_conflicts_or_would(shop: Shop):
    shop.fork("discount")
    (tree,) = [Path(one["path"]) for one in shop("workspaces", "--json").data if one["kind"] == "own"]
    shop("merge", "discount", "--preview")
    (shop.folder / "price.py").write_text("def price():\n    return 0\n")
    assert "would conflict in price.py" in shop("merge", "discount", "--preview", code=1).err
    down = shop("merge", "discount", "--down", "--preview", "--json", code=1)
    assert [one["path"] for one in down.data["conflicts"]] == ["price.py"]
    assert "<<<<<<<" not in (tree / "price.py").read_text()
    done = shop("merge", "discount", "--down", "--json", code=1)
    assert (done.data["status"], [one["path"] for one in done.data["conflicts"]]) == ("merged", ["price.py"])
    assert "<<<<<<<" in (tree / "price.py").read_text()
    left = shop("merge", "discount", "--preview", code=1)
    assert "Conflict markers are left in: price.py. A merge would be refused." in left.err


def test_a_merge_says_as_data_why_files_stand_in_its_way(shop: Shop):
    shop.fork("discount")
    (tree,) = [Path(one["path"]) for one in shop("workspaces", "--json").data if one["kind"] == "own"]
    (tree / "out.log").write_text("of the agent\n")
    shop("merge", "discount", "--preview")  # it is in a snapshot now
    (shop.folder / ".git" / "info" / "exclude").write_text("*.log\n")
    (shop.folder / "out.log").write_text("of the user\n")
    refused = shop("merge", "discount", "--yes", "--json", code=1)
    assert (refused.data["status"], refused.data["differs"]) == ("changed", ["out.log"])
    assert (refused.data["in_the_way"], refused.data["absent"]) == (["out.log"], [])


def test_a_merge_into_the_directory_asks_and_without_a_terminal_needs_yes(shop: Shop):
    shop.fork("writer")
    refused = shop("merge", "writer", code=2)
    assert "It writes 1 file, +1 −0: README.md" in refused.err
    assert "--yes" in refused.err
    (tree,) = [Path(one["path"]) for one in shop("workspaces", "--json").data if one["kind"] == "own"]
    for number in range(13):
        (tree / f"more{number:02}.md").touch()
    refused = shop("merge", "writer", code=2)
    assert "  added   more12.md\n" in refused.err, "all are listed"
    assert "more10.md and 2 more" in refused.err
    asking = shop.asks("merge", "writer")
    asking.expect(r"Go on\?")
    assert declined(asking) == 1
    assert not (shop.folder / "README.md").exists()


def test_what_has_changed_while_a_person_was_asked_is_asked_again(shop: Shop):
    shop.fork("writer")
    tree = Path(shop.rig.one("select path from agentmesh.workspaces where kind = 'own'"))
    asking = shop.asks("merge", "writer")
    asking.expect(r"It writes 1 file, \+1 −0: README.md. Go on\?")
    (tree / "more.md").write_text("more\n")
    asking.sendline("y")
    asking.expect(r"has changed since you were asked")
    asking.expect(r"It writes 2 files, \+2 −0: README.md, more.md. Go on\?")
    assert not (shop.folder / "README.md").exists()
    asking.sendline("y")
    asking.expect(pexpect.EOF)
    assert (shop.folder / "README.md").exists()

    asking = shop.asks("undo", "root")
    asking.expect(r"It writes 2 files, \+0 −2: README.md, more.md. Go on\?")
    (tree / "last.md").write_text("last\n")
    shop("merge", "writer", "--yes")
    asking.sendline("y")
    asking.expect(r"has changed since you were asked")
    asking.expect(r"It writes 1 file, \+0 −1: last.md. Go on\?")
    assert declined(asking) == 1
    assert (shop.folder / "README.md").exists()
    assert (shop.folder / "last.md").exists()


def test_blame_shows_the_lines_of_a_file_with_crlf_as_others(shop: Shop):
    (shop.folder / "windows.txt").write_bytes(b"one\r\ntwo\rhalves\r\n")
    shop.fork("writer")
    shop("merge", "writer", "--yes")
    assert [line.split(maxsplit=1)[1] for line in shop("blame", "windows.txt").out.splitlines()] == [
        "one",
        "two\\u000dhalves",
    ]


def test_files_are_named_from_where_one_is_and_a_wrong_name_is_refused(shop: Shop):
    shop.fork("writer")
    shop("merge", "writer", "--yes")
    file = shop.folder / "README.md"
    for name in ("README.md", "./README.md", str(file)):
        assert [line["name"] for line in shop("blame", name, "--json").events] == ["writer"], name
    (shop.folder / "below").mkdir()
    shop.run.folder = shop.folder / "below"
    lines = shop("blame", "../README.md", "--agent", str(shop.rig.root), "--json").events
    assert [line["name"] for line in lines] == ["writer"]
    shop.run.folder = shop.folder
    refused = shop("undo", "root", "READ.md", "--yes", code=1)
    assert "has not changed READ.md" in refused.err
    assert file.exists()
    for name in ("./README.md", str(file)):
        assert "Wrote 1 file" in shop("undo", "root", name, "--yes").err
        assert not file.exists()
        shop("redo", "root", "--files", "--yes")


def test_a_check_that_fails_merges_nothing(shop: Shop):
    shop.fork("writer")
    done = shop("merge", "writer", "--check", "echo broken; exit 3", "--yes", "--json", code=1)
    assert (done.data["status"], done.data["check"]["exit_code"]) == ("check_failed", 3)
    assert "broken" in done.err
    assert not (shop.folder / "README.md").exists()


def test_workspaces_are_listed_and_those_of_the_dead_removed(shop: Shop):
    shop.fork("rounding", "discount")
    listed = shop("workspaces", "--json").data
    assert [(one["kind"], one["state"], one["agents"]) for one in listed] == [
        ("shared", "ready", ["root"]),
        ("own", "ready", ["rounding"]),
        ("own", "ready", ["discount"]),
    ]
    assert listed[1]["conflicts"] == listed[2]["conflicts"] == ["price.py"]
    assert "rounding" in shop("workspaces").out
    used = shop("workspaces", "remove", listed[1]["workspace_id"], "--yes", code=1)
    assert "rounding still works in" in used.err
    assert "CONFLICTS" in shop("board").out
    assert "own +1 −1" in shop("ps").out
    shop("merge", "rounding", "--yes")
    for command in ("ps", "tree", "board"):
        lines = [line for line in shop(command).out.splitlines() if "own +1 −1" in line]
        assert [("rounding" in line, "own +1 −1 merged" in line) for line in lines].count((True, True)) == 1, lines
        assert sum("merged" in line for line in lines) == 1, lines
    assert [one["merged"] for one in shop("workspaces", "--json").data] == [False, True, False]
    assert shop("workspaces").out.count("ready, merged") == 1
    assert [one["name"] for one in shop("ps", "--json").data if one["merged"]] == ["rounding"]


def test_what_no_repository_has_is_refused_in_words(am, mesh, here):
    done = am("fork", "--own", "child", "work")
    assert done.code == 1
    assert "Git repository" in done.err
    assert am("diff", "root", "--net").code == 1
    assert am("blame", "a.txt").code == 2


def test_usage_errors_are_said_before_anything_is_opened(lonely):
    assert lonely("rewind", "root").code == 2
    assert lonely("undo", "root", "a.txt", "--conversation").code == 2
    assert lonely("merge", "x", "--preview", "--check", "true").code == 2


def test_doctor_names_directories_that_no_row_knows(am, mesh, here, tmp_path: Path):
    data = str(tmp_path / "data")
    assert am("doctor", "--deep", AGENTMESH_DATA_DIR=data).code == 0
    stray = tmp_path / "data" / "trees" / "0f0f0f0f-0000-4000-8000-000000000001"
    stray.mkdir(parents=True)
    told = am("doctor", "--deep", AGENTMESH_DATA_DIR=data)
    assert (told.code, stray.name in told.out) == (0, True), "it may belong to another database"
    done = am("workspaces", "--repair", "--yes", AGENTMESH_DATA_DIR=data)
    assert (done.code, stray.name in done.out, stray.exists()) == (0, True, True)
    assert am("workspaces", "remove", stray.name[:8], "--yes", AGENTMESH_DATA_DIR=data).code == 1, (
        "not by its beginning"
    )
