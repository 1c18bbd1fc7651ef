"""``@``: at the beginning of the input an agent that the text goes to, everywhere else a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.tui.commands.calls import CAPTURED, SAY, SAY_TO, TASK, Call, Problem
from agentmesh.tui.commands.mentions import NamedFile, addressed, file_names, look_for
from agentmesh.tui.commands.parse import parse
from tests.fixtures.mesh import Mesh
from tests.tui.faces import face
from tests.tui.piloting import Show, asked, enter, family, puppet


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("@fixer look", "fixer", "look"),
        ("  @Fixer, look at @this\nnow ", "fixer", "look at @this\nnow"),
        ("@fixer: look", "fixer", "look"),
        ("@fixer-2.b look", "fixer-2.b", "look"),
        ("@fixer", "fixer", ""),
        ("@root/Reader/fixer, look", "root/reader/fixer", "look"),
    ],
)
def test_a_text_is_addressed_by_its_first_word(text, name, rest):
    assert addressed(text) == (name, rest)


@pytest.mark.parametrize(
    "text",
    [
        "look @fixer",
        "@",
        "@ fixer",
        "@src/main.py is",
        "@root/größe x",
        "@root//x y",
        "@größe x",
        "me@fixer x",
        "@[/x] y",
    ],
)
def test_any_other_text_is_addressed_to_nobody(text):
    assert addressed(text) is None


def test_only_an_agent_is_written_to():
    def known(name: str) -> bool:
        return name == "fixer"

    assert parse("@fixer look", is_agent=known) == Call(SAY_TO, ("fixer", "look"), "@fixer look")
    assert parse("@nobody look", is_agent=known) == Call(SAY, ("@nobody look",), "@nobody look")
    assert parse("see @fixer", is_agent=known) == Call(SAY, ("see @fixer",), "see @fixer")
    assert isinstance(parse("@fixer ", is_agent=known), Problem)
    one = Call(TASK, ("explore", "look at\nthe tests"), "@explore look at\nthe tests")
    assert parse("@explore look at\nthe tests", is_agent=known, is_type=lambda name: name == "explore") == one
    assert parse("@fixer look", is_agent=known, is_type=known) == Call(SAY_TO, ("fixer", "look"), "@fixer look")
    assert isinstance(parse("@explore", is_type=lambda _name: True), Problem)
    assert parse("@explore x", capturing=True, is_type=lambda _name: True) == Call(
        CAPTURED, ("@explore x",), "@explore x"
    )
    assert parse("/task explore look") == Call(TASK, ("explore", "look"), "/task explore look")
    assert parse("@fixer look", capturing=True, is_agent=known) == Call(CAPTURED, ("@fixer look",), "@fixer look")


def test_files_are_looked_for_without_what_ends_a_sentence(tmp_path: Path):
    (tmp_path / "a.py").write_text("x" * 2000)
    (tmp_path / "folder").mkdir()
    text = 'look at @a.py, (@folder) and "@a.py" not me@a.py, but @nope.txt!'
    assert file_names(text) == ["a.py,", "folder)", "a.py", "nope.txt!"]
    assert look_for(["a.py,", "folder)", "nope.txt!", "x\0y"], tmp_path) == [
        NamedFile("a.py", "2.0 KiB", True),
        NamedFile("folder", "folder", True),
        NamedFile("nope.txt!", "not found", False),
        NamedFile("x\0y", "not found", False),
    ]


def test_the_line_says_where_a_text_goes_and_what_it_names(tmp_path: Path):
    (tmp_path / "calc.py").write_text("1234")

    async def scene(show: Show) -> None:
        await show.board(*family())
        show.app.main.composer.mention_line.workdir = tmp_path
        await show.type("@alpha see @calc.py and @nope")
        await show.sees("to alpha · @nope not found · @calc.py 4 B")
        await show.press("enter")
        await show.until(lambda: "to alpha" not in show.text)
        await show.sees("↥ not sent yet: @alpha see")
        assert show.app.main.pending_calls.unsent_count == 1
        assert asked(show) == [Call(SAY_TO, ("alpha", "see @calc.py and @nope"), "@alpha see @calc.py and @nope")]
        await show.type("@root/alpha see it")
        await show.sees("to alpha")
        await show.press("enter")
        await show.until(lambda: "to alpha" not in show.text)
        assert asked(show)[1:] == [Call(SAY_TO, ("root/alpha", "see it"), "@root/alpha see it")]
        await show.type("@gamma hello")
        await show.sees("to gamma, which is dead")

    puppet(scene)


@pytest.mark.parametrize("size", [(40, 10), (40, 12), (80, 24)])
def test_the_line_fits_and_goes(size):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.type("@alpha hello")
        await show.sees("to alpha")
        for wanted in ("#composer", "#mention-line", "#status-line", "#key-line"):
            region = show.app.main.query_one(wanted).region
            assert region.height > 0, wanted
            assert region.bottom <= size[1], wanted
        await show.press("escape", "ctrl+c")
        await show.until(lambda: not show.app.main.query_one("#mention-line").display)

    puppet(scene, size=size)


def test_at_the_beginning_agents_are_completed_before_files(tmp_path: Path):
    for name in ("alpha.txt", "alpha"):
        (tmp_path / name).write_text("")

    async def scene(show: Show) -> None:
        await show.board(*family(), face("linter"))
        completer = show.app.main.completer
        completer.workdir = tmp_path
        completer.files.matches("")
        assert completer.files.settle(10)

        def offered(text: str) -> list[str]:
            return [f"{one.text}{'*' if one.description else ''}" for one in show.app.main._complete(text, len(text))]

        types = ["@explore *", "@general-purpose *", "@plan *"]
        assert offered("@alph") == ["@alpha *", "@alpha ", "@alpha.txt "]
        assert offered("see @alph") == ["@alpha ", "@alpha.txt "]
        assert offered("@") == ["@root *", "@alpha *", "@beta *", "@linter *", *types, "@alpha ", "@alpha.txt "]
        await show.type("@lin")
        await show.sees("linter  to it: ")
        await show.press("tab")
        assert show.typed == "@linter "

    puppet(scene)


def test_it_is_mail_of_the_user_to_that_agent(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child")

    async def scene(show: Show) -> None:
        await enter(show, "@child look at it")
        await show.sees("Sent to child (")
        await enter(show, "@nobody look")
        await show.until(lambda: mesh.unread(mesh.root))

    on_screen(scene)
    assert mesh.unread(child) == ["look at it"]
    assert mesh.one("select count(*) from agentmesh.mail where sender is not null") == 0
    assert mesh.unread(mesh.root) == ["@nobody look"]


def test_a_type_is_completed_and_said_below_the_input_and_starts_a_sub_agent():
    async def scene(show: Show) -> None:
        await show.board(*family())
        texts = [one.text for one in show.app.main._complete("@expl", 5)]
        assert texts == ["@explore "]
        assert show.app.main._complete("/task pl", 8)[0].text == "plan "
        await show.type("@explore look")
        await show.sees("starts a sub-agent of type explore")
        await show.press("enter")
        assert [(call.name, call.args) for call in asked(show)] == [(TASK, ("explore", "look"))]

    puppet(scene)


@pytest.mark.parametrize("text", ["/rewind @5", "/fork @5 later", "!echo @5"])
def test_a_row_is_no_file(text: str):
    async def scene(show: Show) -> None:
        await show.type("see @5")
        await show.sees("@5 not found")
        await show.press("ctrl+u")
        await show.type(text)
        await show.until(lambda: "not found" not in show.text)

    puppet(scene)
