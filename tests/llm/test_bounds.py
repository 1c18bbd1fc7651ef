"""One answer is bounded, whatever the server sends: it is stopped, what came is kept, and it is said."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.bounds import BLANKS, MOST_CALLS, Bounds
from agentmesh.llm.port import LIMIT, CallFailed, ChatRequest, Reply
from agentmesh.llm.provider import Provider
from tests.llm.asking import Log, ask, client, request
from tests.llm.misbehaving import Answer, Exchange, data, delta, error, good, misbehaving, plain, stream, text

SMALL = Bounds(tokens=1000, size=4096)
TOKENS = Bounds(tokens=500, size=1024 * 1024)
WORD = "word " * 20
MEGABYTE = 1024 * 1024


def endless(*first: bytes, piece: bytes, most: int = 256 * MEGABYTE, head: str = "text/event-stream") -> Answer:
    """Send the same piece again and again, until the client has gone or after so many bytes."""

    def answer(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("content-type", head)
        exchange.send_header("transfer-encoding", "chunked")
        exchange.end_headers()
        for each in first:
            exchange.piece(each)
        block = piece * max(1, 65_536 // len(piece))
        for _ in range(most // len(block)):
            exchange.piece(block)
        exchange.hang()

    return answer


def numbered(make: Callable[[int], object]) -> Answer:
    """Send event after event, each with its number."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        number = 0
        while True:
            exchange.piece(b"".join(data(make(number + n)) for n in range(100)))
            number += 100

    return answer


def call(index: int = 0, name: str | None = None, arguments: str = "", **fields: object) -> dict[str, object]:
    return {"index": index, **fields, "function": {"name": name, "arguments": arguments}}


def said(reply: Reply) -> int:
    """Return the bytes that are kept of an answer."""
    parts = [reply.text, reply.reasoning, *(part for call in reply.tool_calls for part in (call.name, call.arguments))]
    return sum(len(part.encode()) for part in parts)


ENDLESS = {
    "text": endless(piece=data(delta(content=WORD))),
    "text in another script": endless(piece=data(delta(content="漢字かな交じり文😀"))),
    "reasoning": endless(piece=data(delta(reasoning_content=WORD))),
    "another choice": endless(piece=data({"choices": [{"index": 1, "delta": {"content": WORD}}]})),
    "refusal": endless(piece=data(delta(refusal=WORD))),
    "parts": endless(piece=data(delta(content=[{"type": "text", "text": WORD}]))),
    "arguments": endless(
        data(delta(tool_calls=[call(0, "bash", '{"command": "', id="a")])),
        piece=data(delta(tool_calls=[call(arguments=WORD)])),
    ),
    "legacy arguments": endless(
        data(delta(function_call={"name": "bash", "arguments": '{"command": "'})),
        piece=data(delta(function_call={"arguments": WORD})),
    ),
    "a name": endless(piece=data(delta(tool_calls=[call(0, "abc")]))),
    "text after the finish reason": endless(data(delta("stop", content="Hi")), piece=data(delta(content=WORD))),
    "one line": endless(data(delta(content="Hi")), b"data: ", piece=b"x" * 4096),
    "one event": endless(data(delta(content="Hi")), piece=b"data: x\n"),
    "comments": endless(data(delta(content="Hi")), piece=b": still here\n\n"),
    "empty deltas": endless(data(delta(content="Hi")), piece=data(delta(content=""))),
    "packed": endless(data(delta(content="Hi")), piece=data(delta(content=WORD))),
}


@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_answer_is_stopped_and_what_came_is_kept(answer):
    with misbehaving(answer) as server:
        reply = ask(server, bounds=SMALL)
    assert reply.finish_reason == LIMIT
    assert 0 < said(reply) <= SMALL.size
    assert "stopped at limits.answer_" in " ".join(reply.notes)
    assert len(server.chats) == 1


FORCED = replace(request(), must_call=True)
LS = '{"name": "bash", "arguments": {"command": "ls"}}'


@pytest.mark.parametrize("blank", ["\n", " \n", "\t", " " * 100])
@pytest.mark.parametrize("end", ["", "\n```"])
def test_blanks_without_end_after_a_call_that_was_demanded_are_not_awaited(blank, end):
    written = f"```json\n{LS}{end}" if end else LS
    answer = endless(
        data(delta(content=written[:9])), data(delta(content=written[9:])), piece=data(delta(content=blank))
    )
    with misbehaving(answer) as server:
        reply = ask(server, asked=FORCED)
    assert [call.arguments for call in reply.tool_calls] == ['{"command": "ls"}']
    assert reply.finish_reason == "tool_calls"
    assert f"{BLANKS} blanks in a row" in " ".join(reply.notes)


@pytest.mark.parametrize("said", ["Well", '{"name": "bash", "arguments": {"command": "', '{"name":'])
def test_blanks_where_no_call_can_have_ended_are_counted_as_any_text(said):
    with misbehaving(endless(data(delta(content=said)), piece=data(delta(content="\n")))) as server:
        reply = ask(server, asked=FORCED, bounds=SMALL)
    assert (reply.tool_calls, reply.finish_reason) == ((), LIMIT)
    assert "limits.answer_" in " ".join(reply.notes)


def test_blanks_of_an_answer_that_may_be_text_are_counted_as_any_text():
    with misbehaving(endless(data(delta(content=LS)), piece=data(delta(content="\n")))) as server:
        reply = ask(server, bounds=SMALL)
    assert "limits.answer_" in " ".join(reply.notes)


def test_blanks_within_a_call_that_was_demanded_end_nothing():
    spread = LS.replace(": {", ": {" + "\n" + " " * 100)
    pieces = [data(delta(content=piece)) for piece in (spread[:30], spread[30:60], spread[60:], "\n" * (BLANKS - 1))]
    with misbehaving(stream(*pieces, data(delta("stop")))) as server:
        reply = ask(server, asked=FORCED)
    assert [call.arguments for call in reply.tool_calls] == ['{"command": "ls"}']
    assert "in a row" not in " ".join(reply.notes)


@pytest.mark.parametrize("name", [None, "bash"])
def test_an_answer_has_no_endless_number_of_tool_calls(name):
    with misbehaving(numbered(lambda n: delta(tool_calls=[call(n, name, "{}", id=f"c{n}")]))) as server:
        reply = ask(server)
    assert (len(reply.tool_calls), reply.finish_reason) == (MOST_CALLS, LIMIT)
    assert any(f"{MOST_CALLS} tool calls" in note for note in reply.notes)


def test_so_many_calls_written_as_text_are_text():
    written = '<tool_call>{"name": "bash", "arguments": {}}</tool_call>\n'
    with misbehaving(good(written * (MOST_CALLS + 1)), good(written * MOST_CALLS)) as server:
        assert [len(ask(server).tool_calls) for _ in range(2)] == [0, MOST_CALLS]


def test_a_whole_answer_without_stream_is_cut_to_its_bound():
    message = {"role": "assistant", "content": "word " * 1000}
    with misbehaving(plain({"choices": [{"message": message, "finish_reason": "stop"}]})) as server:
        reply = ask(server, bounds=SMALL)
    assert (reply.finish_reason, said(reply)) == (LIMIT, 4000)  # 1000 tokens
    assert reply.usage.estimated


def test_an_endless_body_without_stream_is_no_answer():
    body = endless(b'{"choices": [{"message": {"content": "', piece=b"word ", head="application/json")
    with misbehaving(body) as server, pytest.raises(CallFailed) as caught:
        ask(server, bounds=SMALL)
    assert (caught.value.kind, len(server.chats)) == ("garbage", 1)
    assert "more bytes than any answer" in caught.value.message


@pytest.mark.parametrize("piece", [b": nothing\n\n", b"data: ", data(delta(content=""))])
def test_an_endless_stream_that_says_nothing_ends_and_is_not_asked_for_again(piece):
    with misbehaving(endless(b"\n", piece=piece)) as server, pytest.raises(CallFailed) as caught:
        ask(server, bounds=SMALL)
    assert (caught.value.kind, len(server.chats)) == ("garbage", 1)


def test_the_bound_of_tokens_counts_four_bytes_for_one():
    with misbehaving(ENDLESS["text"]) as server:
        reply = ask(server, bounds=TOKENS)
    assert (reply.finish_reason, said(reply)) == (LIMIT, 2000)
    assert "limits.answer_tokens (500 output tokens)" in " ".join(reply.notes)


def test_tokens_that_the_server_reports_while_it_streams_count_as_reported():
    def event(number: int) -> object:
        return {**delta(content="ab"), "usage": {"prompt_tokens": 9, "completion_tokens": 5 * number}}

    with misbehaving(numbered(event)) as server:
        reply = ask(server, bounds=TOKENS)
    assert reply.finish_reason == LIMIT
    assert reply.usage.output_tokens == 505
    assert not reply.usage.estimated


@pytest.mark.parametrize("known", [True, False])
def test_a_stopped_answer_is_counted_as_well_as_can_be(known):
    first = {**delta(content="a"), "usage": {"prompt_tokens": 77, "completion_tokens": 1}}
    with misbehaving(endless(*[data(first)] * known, piece=data(delta(content=WORD)))) as server:
        reply = ask(server, bounds=TOKENS)
    assert (reply.usage.output_tokens, reply.usage.estimated) == (500, True)
    assert reply.usage.input_tokens == 77 if known else reply.usage.input_tokens > 0


def test_a_total_at_the_end_stops_nothing():
    total = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 90_000}}
    with misbehaving(stream(*text("Hello"), total)) as server:
        reply = ask(server, bounds=TOKENS)
    assert (reply.finish_reason, reply.usage.output_tokens) == ("stop", 90_000)


def test_the_connection_of_a_stopped_answer_is_not_used_again():
    with misbehaving(ENDLESS["text"], good()) as server:
        model = client(server, bounds=SMALL)
        replies = [model.complete(request(), Cancel(), Log().watch()) for _ in range(2)]
        model.close()
    assert [reply.finish_reason for reply in replies] == [LIMIT, "stop"]
    assert server.chats[0].client != server.chats[1].client


@pytest.mark.slow
def test_a_packed_answer_is_unpacked_in_small_pieces():
    packed = gzip.compress(data(delta(content="Hi")) + b": " + b"x" * (400 * MEGABYTE) + b"\n\n")

    def answer(exchange: Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("content-type", "text/event-stream")
        exchange.send_header("content-encoding", "gzip")
        exchange.send_header("content-length", str(len(packed)))
        exchange.end_headers()
        exchange.wfile.write(packed)

    with misbehaving(answer) as server:
        assert grown(server.url) < 40


_MEASURED = """
import resource, sys
from agentmesh.domain.cancel import Cancel
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import ChatRequest, Watch
from agentmesh.llm.provider import Provider
model = OpenAIChat(Provider("acme", sys.argv[1]))
model.warm()
request = ChatRequest("m-1", [{"role": "user", "content": "hi"}])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reply = model.complete(request, Cancel(), Watch())
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert reply.finish_reason == "limit", reply.finish_reason
print((after - before) // (1024 if sys.platform == "linux" else 1024 * 1024))
"""


def grown(url: str) -> int:
    """Return by how many megabytes a process grows that asks once, with the bounds of the default settings."""
    done = subprocess.run([sys.executable, "-c", _MEASURED, url], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("kind", ["text", "another choice", "arguments", "one line", "one event"])
def test_memory_stays_small_while_two_hundred_megabytes_come(kind):
    with misbehaving(ENDLESS[kind]) as server:
        assert grown(server.url) < 40


@pytest.mark.parametrize(
    ("url", "name"),
    [("https://api.openai.com/v1", "max_completion_tokens"), ("http://localhost:11434/v1", "max_tokens")],
)
def test_the_server_is_asked_for_no_more_under_the_name_that_it_takes(url, name):
    def sent(chat: ChatRequest, most: int | None = None, bounds: Bounds = TOKENS) -> dict[str, int]:
        provider = Provider("p", url, max_tokens=most, bounds=bounds)
        return provider.answer_settings(provider.answer_bound(chat))

    short = replace(request(), answer_tokens=300)
    assert sent(request()) == {}
    assert sent(request(), most=400) == {name: 400}
    assert sent(request(), most=90_000) == {name: 500}
    assert sent(short) == {name: 300}
    assert sent(short, most=400) == {name: 300}
    assert sent(short, most=200) == {name: 200}
    assert sent(replace(short, settings={"max_tokens": 250})) == {name: 250}


def test_a_server_that_was_told_the_bound_ends_the_answer_itself_and_is_stopped_later():
    """Its tokens may have more than four bytes: an estimate must not cut what it would have ended, and counted."""
    with misbehaving(ENDLESS["text"]) as server:
        reply = ask(server, max_tokens=300)
    assert (reply.finish_reason, said(reply)) == (LIMIT, 2400)
    assert "max_tokens (300 output tokens)" in " ".join(reply.notes)


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, but you gave 20000.",
        "'max_tokens' or 'max_completion_tokens' is too large: 20000. This model's maximum context length is 8192.",
        "max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for this model",
        "`max_tokens` must be less than or equal to `8192`",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "However, you requested 20100 tokens (100 in the messages, 20000 in the completion). maximum context length",
    ],
)
def test_a_server_that_refuses_the_callers_bound_is_asked_without_it(words):
    """A budget leaves 20,000 tokens, the model writes 8,192 at most: it needs not be told."""
    with misbehaving(error(400, words), good()) as server:
        model = client(server)
        reply = model.complete(replace(request(), answer_tokens=20_000), Cancel(), Log().watch())
        model.close()
    assert [seen.json.get("max_tokens") for seen in server.chats] == [20_000, None]
    assert "refuses a limit of 20,000 tokens" in " ".join(reply.notes)


def test_max_tokens_is_sent_and_renamed_where_the_server_wants_that():
    refusal = error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    with misbehaving(refusal, good()) as server:
        ask(server, max_tokens=900)
    assert [seen.json.get("max_tokens") for seen in server.chats] == [900, None]
    assert server.chats[1].json["max_completion_tokens"] == 900
    with misbehaving(good()) as server:
        ask(server)
    assert not {"max_tokens", "max_completion_tokens"} & server.chats[0].json.keys()
