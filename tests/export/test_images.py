"""Images in exports: the page shows them, Markdown names them, JSON lines refer to them."""

from __future__ import annotations

import base64
import io

import pytest

from agentmesh.domain.ids import SessionId
from agentmesh.domain.images import read_image
from agentmesh.export.writing import Format, write
from agentmesh.store import images, mailbox
from tests.export.conftest import objects, of_type
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.pictures import png

SHOT = png(640, 480)


@pytest.fixture
def exported(rig: Rig):
    (rig.workdir / "read.png").write_bytes(png(5, 5))
    rig.script("root", do(call("read", path="read.png")), say("seen"))
    session = SessionId(rig.one("select session_id from agentmesh.agents where id = %s", rig.root))
    shot = read_image("<b>.png", SHOT)
    rig.db.run(images.keep, session, shot)
    rig.worker()
    rig.db.run(mailbox.send, None, rig.root, "what is this?", images=[shot.reference()])
    rig.rest()

    def export(form: Format) -> str:
        out = io.StringIO()
        write(rig.db, session, out, form, secrets=())
        return out.getvalue()

    return export


def test_the_page_shows_them(exported):
    page = exported(Format.HTML)
    assert f'src="data:image/png;base64,{base64.b64encode(SHOT).decode()}"' in page
    assert base64.b64encode(png(5, 5)).decode() in page
    assert "img-src data:;" in page
    assert "<b>.png" not in page
    assert "[image &lt;b&gt;.png 640×480 PNG]" in page


def test_markdown_names_them(exported):
    text = exported(Format.MD)
    assert "what is this?\n[image <b>.png 640×480 PNG]" in text
    assert "base64" not in text


def test_json_lines_refer_to_them(exported):
    rows = objects(exported(Format.JSONL))
    digests = {row["digest"] for row in of_type(rows, "image")}
    (mail,) = of_type(rows, "mail")
    assert mail["images"][0]["sha256"] in digests
    assert len(digests) == 2
    fields = {"type", "digest", "media_type", "width", "height", "size", "created_at"}
    assert all(set(row) == fields for row in of_type(rows, "image"))
