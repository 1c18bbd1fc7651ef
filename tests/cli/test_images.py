"""Images with ``run`` and ``send``, against a scripted model behind a real server."""

from __future__ import annotations

import hashlib

import pytest

from agentmesh.llm.simulator.server import Simulator
from tests.fixtures.engine import say
from tests.fixtures.pictures import png

SHOT = png(640, 480)


@pytest.fixture
def server():
    with Simulator(lambda view: say(f"seen: {', '.join(one.sha256 for one in view.images) or 'nothing'}")) as made:
        yield made


@pytest.fixture
def run(am, server):
    am.folder.mkdir()
    (am.folder / "shot.png").write_bytes(SHOT)

    def run(*args: str, model: str = "gpt-4o", **more: str):
        return am("run", "--model", model, *args, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="any", **more)

    return run


def test_a_mention_and_an_option_show_images(run, am):
    other = am.folder.parent / "other.png"
    other.write_bytes(png(9, 9))
    done = run("what is on @shot.png?", "--image", str(other))
    digests = [hashlib.sha256(data).hexdigest() for data in (SHOT, png(9, 9))]
    assert done.out == f"seen: {', '.join(digests)}\n", done.err
    assert "Attached: [image shot.png 640×480 PNG], [image other.png 9×9 PNG]" in done.err


def test_standard_input_attaches_nothing(run):
    assert run(stdin="what is on @shot.png?").out == "seen: nothing\n"
    assert run("look", stdin="@shot.png").out == "seen: nothing\n"


def test_a_bad_image_ends_the_command_before_anything_is_sent(run, am, server):
    (am.folder / "bad.png").write_bytes(SHOT[:50])
    done = run("what is on @bad.png?")
    assert (done.code, server.count) == (2, 0)
    assert "bad.png is damaged or cut off." in done.err


def test_a_model_that_cannot_see_is_named(run, am):
    done = run("what is on @shot.png?", model="gpt-3.5-turbo")
    assert "gpt-3.5-turbo cannot see images: it reads only their names." in done.err
    assert done.out == "seen: nothing\n"


def test_send_attaches_too(am, here, mesh):
    am.folder.mkdir()
    (am.folder / "shot.png").write_bytes(SHOT)
    assert am("send", "root", "see @shot.png").code == 0
    assert mesh.one("select images -> 0 ->> 'name' from agentmesh.mail where recipient = %s", here) == "shot.png"
    assert am("send", "root", "hello").code == 0
