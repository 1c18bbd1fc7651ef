"""Images are known by their bytes: what is shown, what is refused and in which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain import images
from agentmesh.domain.errors import BadImage
from tests.fixtures.pictures import jpeg, pdf, png, webp


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (png(640, 480), "image/png", (640, 480)),
        (jpeg(1024, 768), "image/jpeg", (1024, 768)),
        (webp(20, 10, "VP8X"), "image/webp", (20, 10)),
        (webp(300, 200, "VP8L"), "image/webp", (300, 200)),
        (webp(64, 48, "VP8 "), "image/webp", (64, 48)),
    ],
)
def test_the_header_says_type_and_size(data, kind, size):
    found = images.read_image("any.txt", data)
    assert (found.media_type, (found.width, found.height), found.data) == (kind, size, data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"just text", "is not a PNG, JPEG or WebP image"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "is not a PNG, JPEG or WebP image"),
        (b"GIF89a" + b"\0" * 20, "is a GIF"),
        (pdf(), "is a PDF"),
        (png()[:-8], "is damaged or cut off"),
        (png()[:9], "is damaged or cut off"),
        (png().replace(b"IDAT", b"IDAX"), "is damaged or cut off"),
        (jpeg()[:-2], "is damaged or cut off"),
        (b"\xff\xd8\xff\xd9", "is damaged or cut off"),
        (webp()[:-1], "is damaged or cut off"),
        (png(8001, 1), "8,001×1 pixels"),
        (png(0, 1), "0×1 pixels"),
        (png() + b"\0" * images.MOST_BYTES, "the limit is 5 MiB"),
    ],
)
def test_what_cannot_be_shown_is_refused(data, why):
    with pytest.raises(BadImage, match="shot") as caught:
        images.read_image("/a/b/shot.png", data)
    assert why in caught.value.message
    assert caught.value.hint


@given(st.binary(max_size=80), st.sampled_from([png(), jpeg(), webp(), webp(form="VP8L"), webp(form="VP8 ")]))
def test_no_bytes_break_the_parser(noise, whole):
    for data in (whole[:12] + noise, noise, whole[: len(noise)]):
        try:
            images.read_image("x", data)
        except BadImage:
            continue


def test_a_reference_names_the_image_and_counts_its_tokens():
    one = images.read_image("shot.png", png(640, 480)).reference()
    assert images.label(one) == "[image shot.png 640×480 PNG]"
    assert one["tokens"] == 85 + 640 * 480 // 750
    assert images.tokens(8000, 8000) == 5700


def test_only_read_tools_of_servers_and_the_end_of_a_wait_have_images():
    one = images.read_image("shot.png", png()).reference()
    assert images.of_row("user", {"images": [one]}) == [one]
    assert images.of_row("tool_result", {"name": "read", "result": {"images": [one]}}) == [one]
    assert images.of_row("tool_result", {"name": "mcp__x__read", "result": {"images": [one]}}) == [one]
    assert images.of_row("tool_result", {"name": "bash", "result": {"images": [one]}}) == ()
    assert images.of_row("mail", {"images": [one]}) == ()
    assert images.of_row("tool_result", {"name": "read", "result": {"images": "x"}}) == ()
