"""Images in the input: a dropped file becomes a mention, the line below says what is attached, a message has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from agentmesh.domain.images import read_image
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.tui.commands.mentions import NamedFile, look_for
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.conversation.entries import ChatMessage, entries_of
from agentmesh.tui.input.dropped_images import as_mentions
from tests.fixtures.pictures import png
from tests.tui.piloting import Show, puppet

REFERENCE = read_image("shot.png", png(640, 480)).reference()


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    folder = tmp_path / "my pictures"
    folder.mkdir()
    for path in (tmp_path / "shot.png", folder / "it's.png", folder / "b.jpg"):
        path.write_bytes(png())
    return tmp_path


def test_a_dropped_image_becomes_a_mention(shot: Path):
    blank = str(shot / "my pictures" / "b.jpg")
    assert as_mentions(f"{shot}/shot.png") == f"@{shot}/shot.png "
    for pasted in (blank, f"'{blank}' ", blank.replace(" ", "\\ "), f"file://{blank.replace(' ', '%20')}"):
        assert as_mentions(pasted) == f'@"{blank}" '
    assert as_mentions(f"{shot}/shot.png '{blank}'") == f'@{shot}/shot.png @"{blank}" '


@pytest.mark.parametrize("pasted", ["/nowhere/x.png", "shot.png", "look at /x.png", "/", "", "'/x.png", "/a\n/b.png"])
def test_any_other_paste_is_left_alone(pasted: str):
    assert as_mentions(pasted) is None


def test_a_paste_of_a_path_attaches(shot: Path):
    async def scene(show: Show) -> None:
        await show.type("see ")
        show.app.main.composer.prompt.post_message(events.Paste(f"'{shot}/shot.png'"))
        await show.pilot.pause()
        assert show.typed == f"see @{shot}/shot.png "
        await show.press("enter")

    (call,) = puppet(scene).calls
    assert call.args == (f"see @{shot}/shot.png",)


def test_the_line_below_says_that_a_file_is_an_image(shot: Path):
    size = (shot / "shot.png").stat().st_size
    assert look_for(["shot.png,"], shot) == [NamedFile("shot.png", f"image, {size} B", True)]


def test_the_conversation_names_images():
    content = {"text": "what is this?", "images": [REFERENCE]}
    (entry,) = entries_of(Row(None, 1, Kind.USER, content))  # type: ignore[arg-type]
    assert isinstance(entry, ChatMessage)
    assert entry.text == "what is this?\n[image shot.png 640×480 PNG]"
    assert tool_text.outcome("read", {"images": [REFERENCE]}) == "[image shot.png 640×480 PNG]"
