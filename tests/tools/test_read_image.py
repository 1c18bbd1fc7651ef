"""``read`` of images and PDF files; its contract for text is in test_read.py."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.images import Image
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.tools.read import Read
from tests.fixtures.pictures import jpeg, pdf, png, webp
from tests.tools.calling import call, context


def seeing(workdir: Path, kept: list[Image], **more: Any) -> ToolContext:
    return context(workdir, sees=lambda: True, keep_image=kept.append, **more)


@pytest.mark.parametrize(("name", "data"), [("a.png", png()), ("b", jpeg()), ("c.txt", webp())])
def test_an_image_is_kept_and_referred_to_whatever_its_name(tmp_path: Path, name: str, data: bytes):
    (tmp_path / name).write_bytes(data)
    kept: list[Image] = []
    where = seeing(tmp_path, kept)
    result = call(Read(), where, path=name)
    assert [one.data for one in kept] == [data]
    assert result["images"] == [kept[0].reference()]
    assert where.seen == [(str(tmp_path / name), hashlib.sha256(data).hexdigest())]


def test_a_text_named_like_an_image_is_text(tmp_path: Path):
    (tmp_path / "notes.png").write_text("words\n")
    (tmp_path / "empty.png").write_bytes(b"")
    assert call(Read(), seeing(tmp_path, []), path="notes.png")["content"] == "     1\twords"
    assert call(Read(), seeing(tmp_path, []), path="empty.png") == {"content": "", "lines": 0}


@pytest.mark.parametrize(
    ("data", "why"),
    [(png()[:-4], "damaged"), (b"GIF89a\0" + b"\0" * 9, "is a GIF"), (png() + b"\0" * (6 << 20), "limit is 5 MiB")],
)
def test_a_bad_image_is_refused(tmp_path: Path, data: bytes, why: str):
    (tmp_path / "x.png").write_bytes(data)
    kept: list[Image] = []
    with pytest.raises(ToolError, match=why):
        call(Read(), seeing(tmp_path, kept), path="x.png")
    assert kept == []


@pytest.mark.parametrize("data", [png(), pdf()])
def test_a_model_that_cannot_see_is_told(tmp_path: Path, data: bytes):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ToolError, match="your model cannot see images") as caught:
        call(Read(), context(tmp_path), path="x")
    assert caught.value.hint


def test_an_image_outside_needs_the_same_right_as_a_text(tmp_path: Path):
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "x.png").write_bytes(png())
    with pytest.raises(ToolError, match="outside the working directory"):
        call(Read(), seeing(inside, []), path="../x.png")
    assert "images" in call(Read(), seeing(inside, [], outside=True), path="../x.png")


def test_pages_of_a_pdf_become_images(tmp_path: Path):
    (tmp_path / "x.pdf").write_bytes(pdf(7))
    kept: list[Image] = []
    result = call(Read(), seeing(tmp_path, kept), path="x.pdf", pages="2-3")
    assert [one.name for one in kept] == ["x.pdf page 2", "x.pdf page 3"]
    assert (kept[0].width, kept[0].height) == (1568, 784)
    assert result["pages"] == 7
    assert result["note"].startswith("Pages 2 to 3 of 7.")
    assert len(call(Read(), seeing(tmp_path, []), path="x.pdf")["images"]) == 5


@pytest.mark.parametrize(
    ("pages", "why"),
    [("9", "only 7 pages"), ("3-1", "names no pages"), ("all", "names no pages"), ("1-11", "11 pages are too many")],
)
def test_pages_that_are_not_there_are_refused(tmp_path: Path, pages: str, why: str):
    (tmp_path / "x.pdf").write_bytes(pdf(7))
    with pytest.raises(ToolError, match=why):
        call(Read(), seeing(tmp_path, []), path="x.pdf", pages=pages)


def test_a_broken_pdf_is_an_error_of_the_call(tmp_path: Path):
    (tmp_path / "x.pdf").write_bytes(pdf()[:40] + b"\0" * 40)
    with pytest.raises(ToolError, match="cannot be drawn"):
        call(Read(), seeing(tmp_path, []), path="x.pdf")
