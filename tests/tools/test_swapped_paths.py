"""A path that leads elsewhere after it was judged: no tool opens the other file.

Each swap is made at a fixed place between the judgement and the opening, as a command in the background could make it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.config.schema import Sandbox
from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.rows import Allowance
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.tool import Rights, ToolContext, ToolError
from agentmesh.tools import files
from agentmesh.tools.edit import Edit
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.glob import Glob
from agentmesh.tools.grep import Grep
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.ledger import FileLedger
from agentmesh.tools.read import Read
from agentmesh.tools.wall.walls import Walls
from agentmesh.tools.write import Write
from tests.fixtures.pictures import png
from tests.tools.calling import call, context

pytestmark = pytest.mark.only_rows

RULES = Permissions.of(
    [
        Rule(Decision.DENY, "read", "secret.env"),
        Rule(Decision.DENY, "write", "closed/**"),
        Rule(Decision.ALLOW, "read", "/**/allowed/**"),
    ]
).to_json()
GIVEN: dict[str, dict[str, Any]] = {
    "read": {},
    "write": {"content": "new"},
    "edit": {"old": "open", "new": "new"},
    "grep": {"pattern": "."},
    "glob": {"pattern": "**"},
}


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A working directory beside the mesh's own folder and a folder that a rule allows to read."""
    for path in ("work/open.txt", "work/open/a.txt", "allowed/a.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("open\n")
    for path in ("work/secret.env", "work/closed/a.txt", "conf/a.txt", "private/a.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("SECRET open\n")
    return tmp_path


@pytest.fixture
def tools(ledger: FileLedger) -> Iterator[dict[str, Any]]:
    """The tools that take a path."""
    spawner = Spawner()
    yield {tool.name: tool for tool in (Read(), Write(ledger), Edit(ledger), Grep(spawner), Glob())}
    spawner.close()


def link(path: Path, target: Path) -> None:
    """Let a link lead to a target, in one step."""
    beside = path.with_name("beside")
    beside.symlink_to(target)
    beside.replace(path)


def judged(top: Path, tool: str, path: str, mode: PermissionMode = PermissionMode.ALL) -> ToolContext:
    """Return the context of a call that the gate allows."""
    gate, rights, workdir = (
        ToolGate(walls=Walls(Sandbox(), [top / "conf"])),
        Rights(RULES, Allowance(mode)),
        top / "work",
    )
    verdict = gate.judge(tool, {**GIVEN[tool], "path": path}, rights, workdir)
    assert verdict.decision is Decision.ALLOW
    withheld = gate.withheld(tool, rights, workdir, approved=False)
    forbidden = gate.forbidden(tool, rights, workdir)
    return context(workdir, outside=verdict.outside, judged=verdict.place, withheld=withheld, forbidden=forbidden)


def refused(tools: dict[str, Any], tool: str, path: str, where: ToolContext) -> ToolError:
    """Return the refusal of a call."""
    with pytest.raises(ToolError) as caught:
        call(tools[tool], where, path=path, **GIVEN[tool])
    assert "SECRET" not in f"{caught.value} {caught.value.hint}"
    return caught.value


@pytest.mark.parametrize("tool", GIVEN)
@pytest.mark.parametrize("target", ["work/secret.env", "work/closed/a.txt", "conf/a.txt", "private/a.txt"])
def test_a_link_that_leads_elsewhere_after_the_judgement_is_refused(
    tools: dict[str, Any], top: Path, tool: str, target: str
):
    link(top / "work/x", top / "work/open.txt" if tool != "glob" else top / "work/open")
    where = judged(top, tool, "x")
    link(top / "work/x", top / target if tool != "glob" else (top / target).parent)
    assert "x changed while it was opened" in str(refused(tools, tool, "x", where))
    assert (top / target).read_text() == "SECRET open\n"


def test_a_link_to_an_image_that_leads_elsewhere_after_the_judgement_is_refused(tools: dict[str, Any], top: Path):
    (top / "work/a.png").write_bytes(png(2, 2))
    (top / "work/secret.env").write_bytes(png(3, 3))
    link(top / "work/x", top / "work/a.png")
    where = judged(top, "read", "x")
    link(top / "work/x", top / "work/secret.env")
    assert "x changed while it was opened" in str(refused(tools, "read", "x", where))


def test_a_place_outside_that_a_rule_allows_does_not_allow_another(tools: dict[str, Any], top: Path):
    link(top / "work/x", top / "allowed/a.txt")
    where = judged(top, "read", "x", PermissionMode.ASK)
    link(top / "work/x", top / "private/a.txt")
    assert "x changed while it was opened" in str(refused(tools, "read", "x", where))


def test_a_link_that_leads_back_in_time_is_followed(tools: dict[str, Any], top: Path):
    link(top / "work/x", top / "work/open.txt")
    where = judged(top, "read", "x")
    link(top / "work/x", top / "work/secret.env")
    link(top / "work/x", top / "work/open.txt")
    assert call(tools["read"], where, path="x")["content"].endswith("open")


@pytest.mark.parametrize("tool", ["read", "edit"])
def test_what_rules_withhold_is_refused_where_it_is_opened_too(tools: dict[str, Any], top: Path, tool: str):
    gate, rights = ToolGate(walls=Walls(Sandbox(), [top / "conf"])), Rights(RULES, Allowance(PermissionMode.ALL))
    where = context(top / "work", outside=True, withheld=gate.withheld(tool, rights, top / "work", approved=False))
    for path in ("secret.env", str(top / "conf/a.txt")):
        assert "from being read" in str(refused(tools, tool, path, where))


@pytest.mark.parametrize("tool", ["write", "edit"])
def test_what_rules_forbid_to_write_is_refused_where_it_is_opened_too(tools: dict[str, Any], top: Path, tool: str):
    gate, rights = ToolGate(walls=Walls(Sandbox(), [top / "conf"])), Rights(RULES, Allowance(PermissionMode.ALL))
    where = context(top / "work", outside=True, forbidden=gate.forbidden(tool, rights, top / "work"))
    for path in ("closed/a.txt", str(top / "conf/a.txt"), str(top / "conf/agents/new.md")):
        assert "from being written" in str(refused(tools, tool, path, where))
    assert (top / "work/closed/a.txt").read_text() == "SECRET open\n"
    assert os.listdir(top / "conf") == ["a.txt"]


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Do something between the resolving of a path and the opening of the place that it leads to."""

    def prepare(change: Callable[[], None]) -> None:
        resolve = files._resolve

        def resolved(workdir: Path, given: str) -> tuple[str, str]:
            found = resolve(workdir, given)
            change()
            return found

        monkeypatch.setattr(files, "_resolve", resolved)

    return prepare


SWAPPED = [(tool, part) for part in ("work/open/a.txt", "work/open", "work") for tool in GIVEN]
SWAPPED.remove(("glob", "work/open/a.txt"))


@pytest.mark.parametrize(("tool", "part"), SWAPPED)
def test_a_part_of_a_path_that_becomes_a_link_while_it_is_opened_is_not_followed(
    tools: dict[str, Any], top: Path, tool: str, part: str, opening: Callable[[Callable[[], None]], None]
):
    path = "open" if tool == "glob" or (tool, part) == ("grep", "work/open") else "open/a.txt"
    where = judged(top, tool, path)
    other = top / "private" if part != "work/open/a.txt" else top / "private/a.txt"
    if part == "work":
        (top / "private/open").mkdir()
        (top / "private/open/a.txt").write_text("SECRET open\n")

    def swap() -> None:
        if not (top / part).is_symlink():
            (top / part).rename(top / "old")
            (top / part).symlink_to(other)

    opening(swap)
    error = refused(tools, tool, path, where)
    assert str(error) == f"{path} changed while it was opened."
    assert error.hint == "Look at it again, then repeat the call."
    assert "new" not in "".join(file.read_text() for file in (top / "private").rglob("*.txt"))
