"""Commands that files define, and skills, as a person meets them on the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentmesh.app import HostAndUser
from agentmesh.config.custom_commands import CustomCommand
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import CAPTURED, CUSTOM, CUSTOM_CHILD, SAY, Call, Problem
from agentmesh.tui.commands.parse import parse
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board, face
from tests.tui.piloting import Puppet, Show, play, puppet, real, shown
from tests.tui.with_defaults import completions

REVIEW = CustomCommand("review", "Reviews [b]a file[/b]", "Review $1, [/x].", ".claude/commands/review.md", "[file]")
PDF = CustomCommand(
    "pdf", "Reads PDF", "Use the skill pdf (/s/SKILL.md).", "~/.claude/skills/pdf/SKILL.md", is_skill=True
)
KNOWN = {"pdf": PDF, "review": replace(REVIEW, is_projects=True), "kill": replace(PDF, name="kill")}


def test_a_custom_command_becomes_what_it_says_and_built_in_names_win():
    assert parse("/review a.py", custom=KNOWN) == Call(SAY, ("Review a.py, [/x].",), "/review a.py")
    assert parse(" /PDF\nread it", custom=KNOWN) == Call(
        SAY, ("Use the skill pdf (/s/SKILL.md).\n\nread it",), " /PDF\nread it"
    )
    assert parse("/kill", custom=KNOWN) == Call("kill", (), "/kill")
    assert parse("/review/a.py", custom=KNOWN) == Call(SAY, ("/review/a.py",), "/review/a.py")


def test_one_that_does_more_is_a_call_of_its_own():
    custom = {
        "run": CustomCommand("run", "", "See !`ls`.", "run.md"),
        "sub": CustomCommand("sub", "", "See.", "sub.md", is_subtask=True),
        "build": CustomCommand("build", "", "See.", "build.md", agent="explore"),
    }
    assert parse("/run a b", custom=custom) == Call(CUSTOM, ("run", "a b"), "/run a b")
    assert parse("/run", custom=custom, capturing=True) == Call(CUSTOM, ("run", ""), "/run")
    assert parse("/sub", custom=custom) == Call(CUSTOM_CHILD, ("sub", ""), "/sub")
    assert parse("/build", custom=custom) == Call(CUSTOM_CHILD, ("build", ""), "/build")


def test_in_a_capture_what_it_says_is_captured():
    call = Call(CAPTURED, ("Review a.py, [/x].",), "/review a.py")
    assert parse("/review a.py", capturing=True, custom=KNOWN) == call
    assert parse("/review a.py", capturing=True, again=True, custom=KNOWN) == call


def test_one_that_says_nothing_without_arguments_says_so():
    empty = {"say": CustomCommand("say", "", "$ARGUMENTS", "say.md", "words")}
    assert parse("/say", custom=empty) == Problem("/say says nothing without arguments.", "Usage: /say words")


def test_an_unknown_name_may_mean_a_custom_one():
    problem = parse("/revew a.py", custom=KNOWN)
    assert isinstance(problem, Problem)
    assert problem.hint == "Did you mean /review?"


def test_they_are_completed_with_whose_they_are():
    seen = board(face("tester"))
    (found,) = completions("/revi", 5, seen, KNOWN)
    assert (found.text, found.shown) == ("/review ", "/review [file]")
    assert found.description == "Reviews [b]a file[/b] (project)"
    (found,) = completions("/pdf", 4, seen, KNOWN)
    assert (found.text, found.description) == ("/pdf", "Reads PDF (yours, skill)")
    assert completions("/kill", 5, seen, KNOWN)[0].description.startswith("End an agent")
    assert completions("/review ", 8, seen, KNOWN) == []


def test_the_screen_completes_sends_and_explains_them():
    async def scene(show: Show) -> None:
        assert isinstance(show.app, Puppet)
        show.app.custom |= KNOWN
        await show.type("/rev")
        await show.sees("/review [file]", "Reviews [b]a file[/b] (project)")
        await show.press("tab")
        assert show.typed == "/review "
        await show.type("a.py")
        await show.press("enter")
        assert show.typed == ""
        await show.press("up")
        assert show.typed == "/review a.py"
        await show.press("ctrl+c", "f1", *["down"] * 50)
        await show.sees("Custom commands and skills", "Reads PDF", "(yours, skill: ~/.claude/skills/pdf/SKILL.md)")
        await show.sees("Reviews [b]a file[/b]", "(project: .claude/commands/review.md)")
        await show.sees("not used: a built-in command has this name")

    app = puppet(scene, size=(110, 60))
    assert app.calls == [Call(SAY, ("Review a.py, [/x].",), "/review a.py")]


def test_without_any_the_help_has_no_place_for_them():
    async def scene(show: Show) -> None:
        await show.press("f1", *["down"] * 40)
        await show.sees("/wait timeout", "Keys  (")
        assert "Custom commands" not in show.text

    puppet(scene, size=(110, 70))


@pytest.fixture
def greet(mesh: Mesh, tmp_path: Path) -> Path:
    """A command of the session's directory."""
    file = tmp_path / "work" / ".agentmesh" / "commands" / "greet.md"
    file.parent.mkdir(parents=True)
    file.write_text("Greet $1.")
    mesh.conn.execute("update agentmesh.sessions set workdir = %s", [str(tmp_path / "work")])
    return file


def mail(mesh: Mesh) -> list[str]:
    return mesh.column("select body from agentmesh.mail order by id")


def test_a_file_of_the_directory_is_a_command_of_its_session_as_it_is_now(
    mesh: Mesh, db: Database, tmp_path: Path, greet: Path
):
    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path)) as show:
            await show.sees("Message root")
            await show.type("/greet Ann")
            await show.press("enter")
            await show.until(lambda: mail(mesh) == ["Greet Ann."])
            greet.write_text("Say goodbye to $1.")
            await show.type("/greet Ann")
            await show.press("enter")
            await show.until(lambda: mail(mesh) == ["Greet Ann.", "Say goodbye to Ann."])
            greet.unlink()
            await show.type("/greet Ann")
            await show.press("enter")
            await show.sees("There is no command /greet")

    mesh.conn.execute("update agentmesh.sessions set host = %s", [HostAndUser.here().host])
    play(scene())


def test_of_a_session_elsewhere_the_files_are_not_these(mesh: Mesh, db: Database, tmp_path: Path, greet: Path):
    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path)) as show:
            await show.sees("Message root")
            await show.type("/greet Ann")
            await show.press("enter")
            await show.sees("There is no command /greet")

    play(scene())
    assert mail(mesh) == []


def test_in_a_capture_what_a_command_says_is_kept_from_the_model(mesh: Mesh, db: Database, tmp_path: Path, greet: Path):
    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path)) as show:
            await show.sees("Message root")
            await show.type("/capture")
            await show.press("enter")
            await show.sees("(capturing)")
            await show.type("/greet Ann")
            await show.press("enter")
            captured = "select content ->> 'text' from agentmesh.transcript where kind = 'capture'"
            await show.until(lambda: mesh.column(captured) == ["Greet Ann."])

    mesh.conn.execute("update agentmesh.sessions set host = %s", [HostAndUser.here().host])
    play(scene())
    assert mail(mesh) == []
