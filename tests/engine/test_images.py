"""Images from a person's message and from ``read``, as a real server gets them over HTTP."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agentmesh.domain.images import Image, read_image
from agentmesh.llm.picture import FOLLOWS
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import context, images, mailbox, travel
from tests.fixtures.engine import Rig, call, do, say, until
from tests.fixtures.pictures import pdf, png

SHOT = png(640, 480)


def attach(rig: Rig, *made: Image, text: str = "what is on @shot.png?", agent: str = "root") -> None:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    for image in made:
        rig.db.run(images.keep, session, image)
    rig.db.run(mailbox.send, None, rig.agent(agent), text, images=[one.reference() for one in made])


def shot(name: str = "shot.png", data: bytes = SHOT) -> Image:
    return read_image(name, data)


def sent(rig: Rig, agent: str = "root", number: int = -1) -> list[dict[str, Any]]:
    return list(rig.requests(agent)[number].body["messages"])


def digests(rig: Rig, agent: str = "root", number: int = -1) -> list[str]:
    return [one.sha256 for one in ChatRequestView(rig.requests(agent)[number].body).images]


def test_a_model_that_sees_gets_the_bytes_and_the_name(rig: Rig):
    rig.worker()
    attach(rig, shot())
    rig.rest()
    text, name, picture = sent(rig)[-1]["content"]
    assert text["text"].startswith("<workplace>\n")
    assert (text["text"].partition("</workplace>\n\n")[2], name["text"]) == (
        "what is on @shot.png?",
        "[image shot.png 640×480 PNG]",
    )
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert digests(rig) == [hashlib.sha256(SHOT).hexdigest()]


def test_rows_and_mail_have_no_bytes(rig: Rig):
    rig.worker()
    attach(rig, shot())
    rig.rest()
    row = next(content for kind, content in rig.rows() if kind == "user")
    assert row["images"][0]["name"] == "shot.png"
    assert len(json.dumps(row)) < 500
    assert rig.one("select octet_length(images::text) from agentmesh.v_mail") < 500
    assert rig.one("select size from agentmesh.v_images") == len(SHOT)


def test_the_same_image_is_stored_once_a_session(rig: Rig):
    rig.worker()
    attach(rig, shot(), shot("again.png"))
    rig.rest()
    assert rig.one("select count(*) from agentmesh.images") == 1
    assert len(digests(rig)) == 2


def test_an_image_that_was_read_follows_the_results_of_its_step(rig: Rig):
    (rig.workdir / "shot.png").write_bytes(SHOT)
    (rig.workdir / "notes").write_text("words")
    rig.script("root", do(call("read", path="shot.png"), call("read", path="notes")), say("seen"))
    rig.worker()
    assert rig.run() == "seen"
    *_, first, second, follows = sent(rig)
    assert [first["role"], second["role"], follows["role"]] == ["tool", "tool", "user"]
    assert json.loads(first["content"])["images"][0]["name"] == "shot.png"
    assert "words" in second["content"]
    assert follows["content"][0]["text"] == FOLLOWS
    assert digests(rig) == [hashlib.sha256(SHOT).hexdigest()]


def test_forks_share_the_bytes_and_the_beginning_of_the_request(rig: Rig):
    (rig.workdir / "shot.png").write_bytes(SHOT)
    rig.script("root", do(call("read", path="shot.png")), say("seen"))
    rig.worker()
    attach(rig, shot("other.png", png(5, 5)))
    rig.rest()
    rig.fork("child", "look again")
    rig.rest()
    assert len(digests(rig, "child")) == 2
    assert sent(rig, "child")[: len(sent(rig))] == sent(rig)
    assert rig.requests("child")[-1].raw.startswith(rig.requests()[-1].raw[: -len("]}")])


def test_each_step_has_the_request_before_as_its_beginning(rig: Rig):
    (rig.workdir / "shot.png").write_bytes(SHOT)
    rig.script("root", do(call("read", path="shot.png")), do(call("glob", pattern="*")), say("seen"))
    rig.worker()
    rig.run()
    first, second, third = (request.raw for request in rig.requests())
    assert second.startswith(first[:-2])
    assert third.startswith(second[:-2])


def test_another_worker_goes_on_with_the_image(rig: Rig):
    (rig.workdir / "shot.png").write_bytes(SHOT)
    rig.script("root", do(call("read", path="shot.png")), say("seen"))
    died = rig.process("before finish_step 2")
    rig.prompt()
    assert died.join() == -9
    (rig.workdir / "shot.png").unlink()
    rig.bury(died.worker_id)
    rig.worker()
    rig.rest()
    assert rig.last()[0] == "seen"
    assert len(digests(rig)) == 1


def test_a_session_from_a_row_has_its_own_copy(rig: Rig):
    rig.worker()
    attach(rig, shot())
    rig.rest()
    session = rig.db.run(travel.fork_session, rig.root, 2, "again").session_id
    rig.rest()
    assert rig.one("select count(*) from agentmesh.images where session_id = %s", session) == 1
    assert len(digests(rig)) == 1


def test_a_server_that_refuses_images_gets_their_names_and_is_remembered(rig: Rig):
    with Simulator(lambda _: say("blind"), profile="blind") as blind:
        rig.worker(base_url=blind.base_url)
        attach(rig, shot())
        rig.rest()
        assert rig.last() == ("blind", None)
        attach(rig, shot(), text="and now?")
        rig.rest()
        bodies = [request.body for request in blind.requests]
    assert [len(ChatRequestView(body).images) for body in bodies] == [1, 0, 0]
    said = bodies[-1]["messages"][-1]["content"]
    assert said == "and now?\n[image shot.png 640×480 PNG]\n(not shown: this model cannot see images)"
    answer = next(content for kind, content in rig.rows() if kind == "assistant")
    assert "refuses images" in answer["notes"][0]


def test_after_a_refusal_read_says_so(rig: Rig):
    (rig.workdir / "shot.png").write_bytes(SHOT)
    with Simulator(rig.model._responder, profile="blind") as blind:
        rig.script("root", say("no"), do(call("read", path="shot.png")), say("seen"))
        rig.worker(base_url=blind.base_url)
        attach(rig, shot())
        rig.rest()
        rig.run()
    (result,) = rig.results("read")
    assert "your model cannot see images" in result["error"]
    assert rig.one("select count(*) from agentmesh.images") == 1


def test_the_users_image_ends_a_wait_and_is_shown(rig: Rig):
    rig.script("root", do(call("wait", timeout=60)), say("seen"))
    rig.worker()
    rig.prompt()
    rig.until(lambda: rig.waits("root"))
    attach(rig, shot())
    rig.rest()
    assert rig.last()[0] == "seen"
    assert digests(rig) == [hashlib.sha256(SHOT).hexdigest()]
    assert sent(rig)[-1]["content"][0]["text"] == FOLLOWS


def test_budgets_and_the_context_count_an_image(rig: Rig):
    rig.worker()
    rig.script("root", say("x", usage=None))
    image = shot()
    attach(rig, image)
    rig.rest()
    expected = image.reference()["tokens"]
    parts = {one.part: one for one in rig.db.run(context.filling, rig.root)}
    assert parts["user"].bytes >= 4 * expected
    assert parts["user"].bytes < 4 * expected + 200


def test_pages_of_a_pdf_are_shown_by_their_numbers(rig: Rig):
    (rig.workdir / "plan.pdf").write_bytes(pdf(4))
    rig.script("root", do(call("read", path="plan.pdf", pages="2-3")), say("seen"))
    rig.worker()
    rig.run()
    (result,) = rig.results("read")
    assert [one["name"] for one in result["images"]] == ["plan.pdf page 2", "plan.pdf page 3"]
    assert result["pages"] == 4
    assert len(digests(rig)) == 2


def test_old_images_are_named_once_newer_ones_take_the_room(rig: Rig, monkeypatch):
    monkeypatch.setattr("agentmesh.engine.images._MOST_SENT", 3 * len(SHOT))
    monkeypatch.setattr("agentmesh.engine.images._LEFT", 2 * len(SHOT))
    rig.worker()
    for n in range(4):
        attach(rig, shot(f"{n}.png", png(640, 480, n)))
        rig.rest()
    assert [len(ChatRequestView(request.body).images) for request in rig.requests()] == [1, 2, 3, 2]
    assert "newer images took the room" in json.dumps(sent(rig)[1], ensure_ascii=False)


def test_a_summary_names_images_and_sends_none(rig: Rig):
    rig.worker()
    attach(rig, shot())
    rig.rest()
    rig.script("root", say("x"), say("a summary that is short"), say("done"))
    rig.db.run(context.compact, rig.root)
    rig.rest()
    until(lambda: "summary" in rig.kinds())
    rig.run("go on")
    assert digests(rig) == []
