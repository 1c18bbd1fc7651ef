"""Trees of agents' own in a terminal: forked, seen on the board, merged, sent back, undone; typed as a person would."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures import team
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git
from tests.fixtures.terminal import Desk, Terminal

pytestmark = pytest.mark.timeout(300)
_LONG = 90.0
"""Seconds for a turn of several steps, on a machine that does much else."""


@pytest.fixture
def shown(desk: Desk, rig: Rig, tmp_path: Path) -> Terminal:
    """The screen of a new session in the project."""
    rig.workdir = team.project(tmp_path / "shop")
    team.script(rig)
    rig.know_bills("openai/scripted")
    return desk.open_new("--permission-mode", "all", AGENTMESH_DATA_DIR=str(tmp_path / "data"))


def price(rig: Rig) -> str:
    return (rig.workdir / "price.py").read_text()


def says(wanted: str) -> Callable[[str], object]:
    """Return whether the screen says this, however it is wrapped."""
    return lambda text: wanted in re.sub(r"[│\s]+", " ", text)


def fork(shown: Terminal, name: str, ends: str) -> None:
    """Fork an agent from the root with a tree of its own, and go back to the root."""
    shown.enter(f"/fork --own {name} Do your part.")
    shown.until(f"root › {name}", ends, timeout=_LONG)
    shown.press("ctrl+up")
    shown.until("root  ▸")


def agree(shown: Terminal, command: str, *asked: str) -> None:
    """Enter a command that asks, and say yes once the question takes keys."""
    shown.enter(command)
    shown.until("y or Enter", *asked)
    shown.insist("enter", lambda text: "y or Enter" not in text)


def test_three_agents_two_conflict_one_is_sent_back_all_is_merged_and_the_last_undone(shown: Terminal, rig: Rig):
    fork(shown, "rounding", "Rounded.")
    fork(shown, "discount", "Discounted.")
    fork(shown, "writer", "Written.")
    assert git(rig.workdir, "status", "--porcelain") == ""
    shown.enter("/board")
    shown.until("Board", "own +1 −1", "own +2 −2", "1 conflict")
    shown.insist("escape", lambda text: "Board" not in text, "root  ▸ 3 children")
    agree(shown, "/merge writer", "Merge writer into", "README.md")
    shown.until("Merged writer into")
    agree(shown, f"/merge rounding --check {team.CHECK}", "Merge rounding into", "price.py")
    shown.until("Merged rounding into", timeout=_LONG)
    shown.enter(f"/merge discount --check {team.CHECK}")
    shown.until(says("Conflict in price.py"), says("discount was told"), timeout=_LONG)
    rig.until(lambda: rig.last("discount")[0] == "Both are in.")
    agree(shown, f"/merge discount --check {team.CHECK}", "Merge discount into", "+2 −2: price.py")
    shown.until("Merged discount into", timeout=_LONG)
    assert price(rig) == team.BOTH
    agree(shown, "/undo", "Take back the merge of discount?", "price.py")
    shown.until(says("/redo brings it back"))
    assert price(rig) == team.PRICE.replace("net + vat\n", "round(net + vat, 2)\n")
    agree(shown, "/redo", "Bring back what was undone of root?", "price.py")
    shown.until(says("is there again"))
    assert price(rig) == team.BOTH


def test_a_preview_and_the_diff_of_commands_are_shown_and_a_no_writes_nothing(shown: Terminal, rig: Rig):
    fork(shown, "discount", "Discounted.")
    shown.enter("/merge discount --preview")
    shown.until(says("would change 1 file, +2 −2"), "+def price(net, rate=0.19, discount=0):")
    shown.insist("escape", lambda text: "Esc or q leaves" not in text)
    shown.enter("/diff discount")
    shown.until("discount: 1 file, +2 −2", "changed by discount with bash")
    shown.insist("escape", lambda text: "Each change stands" not in text)
    shown.until("root  ▸ 1 child")
    shown.enter("/merge discount")
    shown.until("Merge discount into")
    shown.insist("escape", "Nothing was written")
    assert price(rig) == team.PRICE
    shown.enter("/merge discount")
    shown.until("y or Enter", "price.py")
    tree = Path(rig.one("select path from agentmesh.workspaces where kind = 'own'"))
    (tree / "more.txt").write_text("more\n")
    shown.insist("enter", says("has changed since you were asked"), "more.txt")
    assert price(rig) == team.PRICE
    shown.insist("enter", "Merged discount into")
    assert (rig.workdir / "more.txt").exists()


def test_an_undo_of_what_others_changed_since_names_them(shown: Terminal, rig: Rig):
    rig.script("root", do(call("bash", command="echo '# mine' >> price.py; echo new > new.txt")), say("Changed."))
    shown.enter("change something")
    shown.until("\n Changed.", timeout=_LONG)
    with (rig.workdir / "price.py").open("a") as file:
        file.write("# theirs\n")
    shown.enter("/undo")
    shown.until("Nothing was written", "price.py  changed by somebody else", "Esc or q leaves")
    shown.insist("escape", lambda text: "Esc or q leaves" not in text)
    agree(shown, "/undo ./new.txt", "new.txt")
    shown.until(says("/redo brings it back"))
    assert not (rig.workdir / "new.txt").exists()
    assert price(rig).endswith("# mine\n# theirs\n")
    shown.enter("/rewind @")
    shown.until("Rewind to where?", "change something")
    shown.press("escape")
