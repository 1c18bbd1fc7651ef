"""The decoder of server-sent events."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.llm.sse import EventTooLong, SseDecoder

BODY = '\ufeff: hello\nevent: x\ndata: {"a": "\u2028\x85é😀"}\n\nid: 1\ndata:two\ndata: lines\n\n\n\ndata: last\n\n'
EVENTS = ['{"a": "\u2028\x85é😀"}', "two\nlines", "last"]


def decode(*chunks: bytes) -> list[str]:
    decoder = SseDecoder(4096)
    return [event for chunk in chunks for event in decoder.feed(chunk)] + list(decoder.finish())


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=["lf", "cr", "crlf"])
@given(cuts=st.lists(st.integers(0, 120), max_size=8))
def test_events_are_the_same_wherever_the_bytes_are_cut(end, cuts):
    raw = BODY.replace("\n", end).encode()
    edges = sorted({0, len(raw), *(cut % len(raw) for cut in cuts)})
    assert decode(*(raw[a:b] for a, b in itertools.pairwise(edges))) == EVENTS


def test_event_is_given_as_soon_as_its_blank_line_is_there():
    decoder = SseDecoder(4096)
    assert list(decoder.feed(b"data: a\r\n\r")) == ["a"]
    assert list(decoder.feed(b"\ndata: b\r\n")) == []


@pytest.mark.parametrize("rest", ["data: a\n\ndata: b", "data: a\n\ndata: b\n"], ids=["no line end", "no blank line"])
def test_last_event_needs_no_blank_line(rest):
    assert decode(rest.encode()) == ["a", "b"]


def test_broken_utf8_is_replaced():
    assert decode(b"data: a\xffb\n\n") == ["a\ufffdb"]


def test_endless_line_is_refused():
    decoder = SseDecoder(10)
    assert list(decoder.feed(b"data: 1")) == []
    with pytest.raises(EventTooLong):
        list(decoder.feed(b"2345"))


def test_many_long_lines_are_not_one_endless_line():
    decoder = SseDecoder(10)
    assert [event for _ in range(9) for chunk in (b"data: 1", b"2\n\n") for event in decoder.feed(chunk)] == ["12"] * 9


def test_events_before_an_endless_line_are_not_lost():
    decoder = SseDecoder(10)
    assert list(decoder.feed(b"data: 1\n\ndata: 23456")) == ["1"]
    with pytest.raises(EventTooLong):
        decoder.feed(b"7")


def test_an_event_without_end_is_refused_too():
    decoder = SseDecoder(10)
    assert list(decoder.feed(b"data: 1\n")) == []
    with pytest.raises(EventTooLong):
        list(decoder.feed(b"data: 2\n"))
