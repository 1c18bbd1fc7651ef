"""The simulator as an HTTP server: keep-alive, many streams, recording, faults, and nothing left after stop."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.reply import Fault, FaultKind, NoReply, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.llm.simulator_http import USER, ask, chat, get, open_connection, stream

LONG = ScriptedReply(text="one two three four five six", chunk_size=4)


def test_a_streamed_answer_arrives_in_pieces_and_complete():
    with Simulator(lambda _view: LONG) as simulator:
        answer = stream(simulator.base_url)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "".join(answer.deltas("content")) == LONG.text
    assert len(answer.deltas("content")) == 7
    assert answer.finish_reasons() == ["stop"]
    assert answer.done


def test_an_answer_without_stream_is_one_json_body():
    with Simulator(lambda _view: LONG) as simulator:
        answer = chat(simulator.base_url)
    assert answer.json["choices"][0]["message"] == {"role": "assistant", "content": LONG.text}
    assert answer.json["usage"]["completion_tokens"] > 0


def test_usage_is_what_the_script_says():
    reply = ScriptedReply(text="x", usage=Usage(input_tokens=100, output_tokens=7, cached_tokens=64))
    with Simulator(lambda _view: reply) as simulator:
        usage = stream(simulator.base_url).chunks[-1]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (100, 7, 107)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 64


def test_one_connection_carries_many_requests():
    with Simulator(lambda view: ScriptedReply(text=view.last_text)) as simulator:
        connection = open_connection(simulator.base_url)
        texts = [f"question {number}" for number in range(20)]
        answers = [
            ask(connection, stream=number % 2 == 0, messages=[{"role": "user", "content": text}])
            for number, text in enumerate(texts)
        ]
        connection.close()
        assert ["".join(answer.deltas("content")) for answer in answers[::2]] == texts[::2]
        assert [answer.json["choices"][0]["message"]["content"] for answer in answers[1::2]] == texts[1::2]
        assert [request.body["messages"][-1]["content"] for request in simulator.requests] == texts


def test_a_hundred_streams_at_once_are_all_open_before_any_ends():
    gate = threading.Barrier(100)

    def respond(view):
        gate.wait(30)
        return ScriptedReply(text=view.last_text, chunk_size=2, chunk_delay=0.001)

    with Simulator(respond) as simulator, ThreadPoolExecutor(100) as pool:
        texts = [f"agent number {number}" for number in range(100)]
        answers = list(
            pool.map(lambda text: stream(simulator.base_url, messages=[{"role": "user", "content": text}]), texts)
        )
        assert ["".join(answer.deltas("content")) for answer in answers] == texts
        assert simulator.count == 100


def test_requests_are_recorded_with_raw_bytes_and_headers_and_can_be_waited_for():
    with Simulator(lambda _view: LONG) as simulator:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(simulator.wait_for_requests, 2)
            stream(simulator.base_url, token="key", temperature=0.5)
            stream(simulator.base_url)
            first, _second = waiting.result()
        assert json.loads(first.raw) == first.body
        assert first.body["temperature"] == 0.5
        assert first.headers["authorization"] == "Bearer key"
        with pytest.raises(TimeoutError, match="2 of 3"):
            simulator.wait_for_requests(3, timeout=0.01)


def test_without_recording_requests_are_only_counted():
    with Simulator(lambda _view: LONG, record=False) as simulator:
        stream(simulator.base_url)
        assert (simulator.count, simulator.requests) == (1, [])


def test_the_token_is_demanded_of_all_but_health():
    with Simulator(lambda _view: LONG, token="secret") as simulator:
        assert chat(simulator.base_url, token="secret").status == 200
        assert chat(simulator.base_url, token="wrong").json["error"]["code"] == "invalid_api_key"
        assert chat(simulator.base_url).status == 401
        assert get(simulator.base_url, "/v1/models").status == 401
        assert get(simulator.base_url, "/health").json == {"status": "ok"}
        assert simulator.count == 1


def test_models_are_listed_and_unknown_ones_refused():
    with Simulator(lambda _view: LONG, models=("small", "large")) as simulator:
        assert [entry["id"] for entry in get(simulator.base_url, "/v1/models").json["data"]] == ["small", "large"]
        assert chat(simulator.base_url, model="large").status == 200
        assert chat(simulator.base_url, model="huge").status == 404


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000, 431),
        (b"POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\n[1]", 400),
        (b"GET /nowhere HTTP/1.0\r\n\r\n", 404),
    ],
    ids=["no request", "bad length", "chunked", "huge", "long headers", "no object", "unknown path"],
)
def test_bad_requests_get_a_status_and_the_server_lives(request_bytes, status):
    with Simulator(lambda _view: LONG) as simulator:
        place = urlsplit(simulator.base_url)
        with socket.create_connection((place.hostname, place.port), timeout=20) as sock:
            sock.sendall(request_bytes)
            assert sock.recv(12) == b"HTTP/1.1 %d" % status
        assert chat(simulator.base_url).status == 200


def test_a_refusal_after_which_the_connection_closes_says_so():
    with Simulator(lambda _view: LONG) as simulator:
        connection = open_connection(simulator.base_url)
        connection.putrequest("POST", "/v1/chat/completions")
        connection.putheader("Content-Length", "999999999")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("connection")) == (413, "close")
        connection.close()


def test_a_large_body_that_waits_for_continue_is_read():
    with Simulator(lambda view: ScriptedReply(text=str(len(view.last_text)))) as simulator:
        connection = open_connection(simulator.base_url)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 3_000_000}]})
        connection.request("POST", "/v1/chat/completions", body, {"Expect": "100-continue"})
        assert json.load(connection.getresponse())["choices"][0]["message"]["content"] == "3000000"
        connection.close()


def test_a_script_without_an_answer_is_a_bad_request_that_says_why():
    def respond(_view):
        raise NoReply("rule 3: there is nothing to say")

    with Simulator(respond) as simulator:
        answer = stream(simulator.base_url)
    assert (answer.status, answer.json["error"]["message"]) == (400, "rule 3: there is nothing to say")


def test_a_history_with_an_unanswered_tool_call_is_refused_in_openais_words():
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "{}"}
    with Simulator(lambda _view: LONG) as simulator:
        assert stream(simulator.base_url, messages=[USER, asked, result]).status == 200
        for history in ([USER, asked], [USER, asked, USER], [USER, asked, USER, result]):
            answer = stream(simulator.base_url, messages=history)
            assert answer.status == 400
            assert "did not have response messages: call_1" in answer.json["error"]["message"]
        stray = stream(simulator.base_url, messages=[USER, result])
        assert "must be a response to" in stray.json["error"]["message"]


# -- faults ------------------------------------------------------------------------------------------------------


def faulty(kind, **details):
    calls = (ScriptedCall("f", {"a": 1}), ScriptedCall("g", {"b": 2}))
    return ScriptedReply(text=LONG.text, tool_calls=calls, chunk_size=4, fault=Fault(kind, **details))


def serve_fault(kind, **details):
    return Simulator(lambda _view: faulty(kind, **details))


def test_fault_empty_is_a_status_200_with_nothing():
    with serve_fault(FaultKind.EMPTY) as simulator:
        assert (stream(simulator.base_url).status, stream(simulator.base_url).raw) == (200, b"")
        assert chat(simulator.base_url).raw == b""


def test_fault_cut_breaks_the_connection_after_so_many_events():
    with serve_fault(FaultKind.CUT, after=3) as simulator:
        with pytest.raises(http.client.IncompleteRead) as caught:
            stream(simulator.base_url)
        assert caught.value.partial.count(b"data: ") == 3
        with pytest.raises(http.client.IncompleteRead):
            chat(simulator.base_url)


def test_fault_garbage_is_one_event_that_is_no_json():
    with serve_fault(FaultKind.GARBAGE) as simulator:
        answer = stream(simulator.base_url)
        with pytest.raises(json.JSONDecodeError):
            _ = answer.chunks
        assert answer.done
        with pytest.raises(json.JSONDecodeError):
            _ = chat(simulator.base_url).json


@pytest.mark.parametrize("body", [{"stream": True}, {}], ids=["stream", "whole"])
def test_fault_hang_before_headers_sends_nothing_until_the_server_stops(body):
    with serve_fault(FaultKind.HANG_HEADERS) as simulator, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(chat, simulator.base_url, **body)
        simulator.wait_for_requests(1)
        assert not hanging.done()
        simulator.stop()
        with pytest.raises(http.client.RemoteDisconnected):
            hanging.result(20)


def test_fault_hang_in_the_stream_keeps_the_connection_open_after_some_events():
    with serve_fault(FaultKind.HANG_STREAM, after=2) as simulator:
        connection = open_connection(simulator.base_url)
        connection.request("POST", "/v1/chat/completions", json.dumps({"messages": [USER], "stream": True}))
        response = connection.getresponse()
        seen = b""
        while seen.count(b"\n\n") < 2:
            seen += response.read1()
        simulator.stop()
        with pytest.raises(http.client.IncompleteRead):
            response.read()
        connection.close()


def test_fault_disconnect_closes_before_a_status_line():
    with serve_fault(FaultKind.DISCONNECT) as simulator, pytest.raises(http.client.RemoteDisconnected):
        stream(simulator.base_url)


def test_fault_status_has_headers_and_body_of_the_script_or_the_profiles_own_words():
    headers = {"Retry-After": "7"}
    with serve_fault(FaultKind.STATUS, status=429, headers=headers) as simulator:
        answer = stream(simulator.base_url)
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert answer.json["error"]["code"] == "rate_limit_exceeded"
    with serve_fault(FaultKind.STATUS, status=500, body="<html>proxy</html>") as simulator:
        assert stream(simulator.base_url).raw == b"<html>proxy</html>"
    with serve_fault(FaultKind.STATUS, status=404, body={"oh": "no"}) as simulator:
        assert stream(simulator.base_url).json == {"oh": "no"}


def test_fault_no_ids_and_repeated_ids():
    with serve_fault(FaultKind.NO_IDS) as simulator:
        parts = [part for parts in stream(simulator.base_url).deltas("tool_calls") for part in parts]
        assert len(parts) > 2
        assert all("id" not in part for part in parts)
    with serve_fault(FaultKind.REPEATED_IDS) as simulator:
        ids = [
            part["id"] for parts in stream(simulator.base_url).deltas("tool_calls") for part in parts if "id" in part
        ]
        assert len(ids) == 2
        assert len(set(ids)) == 1


def test_fault_bad_arguments_are_no_json():
    with serve_fault(FaultKind.BAD_ARGUMENTS) as simulator:
        for call in chat(simulator.base_url).json["choices"][0]["message"]["tool_calls"]:
            with pytest.raises(json.JSONDecodeError):
                json.loads(call["function"]["arguments"])


def test_fault_error_event_stands_in_the_stream_and_nothing_follows():
    with serve_fault(FaultKind.ERROR_EVENT, message="boiler burst", after=2) as simulator:
        answer = stream(simulator.base_url)
    assert answer.status == 200
    assert answer.chunks[-1]["error"]["message"] == "boiler burst"
    assert (len(answer.chunks), answer.done) == (3, False)


def test_fault_no_done_and_no_finish():
    with serve_fault(FaultKind.NO_DONE) as simulator:
        answer = stream(simulator.base_url)
        assert (answer.finish_reasons(), answer.done) == (["tool_calls"], False)
    with serve_fault(FaultKind.NO_FINISH) as simulator:
        answer = stream(simulator.base_url)
        assert (answer.finish_reasons(), answer.done) == ([], True)


# -- life cycle --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux answers on all of 127.0.0.0/8")
def test_it_listens_on_loopback_only():
    with Simulator(lambda _view: LONG) as simulator:
        port = urlsplit(simulator.base_url).port
        # Another address of the same machine: a server bound to all of them would answer it.
        with socket.socket() as sock, pytest.raises(ConnectionRefusedError):
            sock.connect(("127.0.0.2", port))


def test_nothing_listens_and_no_thread_is_left_after_stop():
    simulator = Simulator(lambda _view: faulty(FaultKind.HANG_HEADERS))
    of_other_tests = set(threading.enumerate())
    simulator.start()
    place = urlsplit(simulator.base_url)
    with socket.create_connection((place.hostname, place.port)) as idle, ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(stream, simulator.base_url)
        simulator.wait_for_requests(1)
        simulator.stop()
        assert idle.recv(1) == b""
        with pytest.raises(http.client.RemoteDisconnected):
            hanging.result(20)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((place.hostname, place.port))
    mine = set(threading.enumerate()) - of_other_tests
    assert not [thread.name for thread in mine if thread.name.startswith("simulator-")]
    simulator.stop()


def test_a_pause_ends_when_the_server_stops():
    late = ScriptedReply(text="late", first_byte_delay=3600)
    with Simulator(lambda _view: late) as simulator, ThreadPoolExecutor(1) as pool:
        paused = pool.submit(stream, simulator.base_url)
        simulator.wait_for_requests(1)
        simulator.stop()
        with pytest.raises(http.client.RemoteDisconnected):
            paused.result(20)


def test_a_chosen_port_is_used_and_a_taken_one_is_an_error():
    with Simulator(lambda _view: LONG) as simulator:
        port = urlsplit(simulator.base_url).port or 0
        with pytest.raises(OSError, match="in use"):
            Simulator(lambda _view: LONG, port=port).start()
