"""Traces as they arrive at a collector, and that none of it disturbs a run."""

from __future__ import annotations

import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROMPT = "Say s3cret-words, read notes.txt, list the files"


class Collector:
    """Takes spans by OTLP over HTTP."""

    def __init__(self):
        collector = self
        self.bodies: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                collector.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self):
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    @property
    def groups(self):
        return [group for body in self.bodies for group in ExportTraceServiceRequest.FromString(body).resource_spans]

    @property
    def senders(self):
        return [group.resource for group in self.groups]

    @property
    def spans(self):
        return [span for group in self.groups for scope in group.scope_spans for span in scope.spans]


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


def facts(span):
    """Return the attributes of a span as plain values."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


def test_agents_model_calls_and_tool_calls_are_spans_of_one_trace(am, collector, conn):
    done = am("run", "--model", "demo", "fork", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.code == 0, done.err
    [(session,)] = conn.execute("select id from agentmesh.sessions")
    spans = collector.spans
    assert {uuid.UUID(bytes=span.trace_id) for span in spans} == {session}
    agents = dict(conn.execute("select name, id::text from agentmesh.agents").fetchall())
    runs = [span for span in spans if span.name.startswith("invoke_agent ")]
    assert {span.name.removeprefix("invoke_agent ") for span in runs} == set(agents)
    for span in spans:
        about = facts(span)
        assert about["gen_ai.agent.id"] == agents[about["gen_ai.agent.name"]]
        assert about["gen_ai.conversation.id"] == str(session)
        assert about["gen_ai.operation.name"] == span.name.split()[0]
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    by_id = {span.span_id: span for span in spans}
    for span in runs:
        about = facts(span)
        if about["gen_ai.agent.name"] == "root":
            assert "agentmesh.parent_agent.id" not in about
        else:
            above = facts(by_id[span.parent_span_id])
            assert above["gen_ai.agent.id"] == about["agentmesh.parent_agent.id"]
    for span in spans:
        if span not in runs:
            assert by_id[span.parent_span_id] in runs
            assert facts(by_id[span.parent_span_id])["gen_ai.agent.id"] == facts(span)["gen_ai.agent.id"]
    chats = [facts(span) for span in spans if span.name == "chat demo"]
    used = conn.execute(
        "select sum(input_tokens)::int, sum(output_tokens)::int, count(*)::int from agentmesh.model_calls"
    )
    sums = [sum(about[f"gen_ai.usage.{kind}_tokens"] for about in chats) for kind in ("input", "output")]
    assert used.fetchall() == [(*sums, len(chats))]
    assert {"execute_tool fork", "execute_tool wait", "execute_tool send"} <= {span.name for span in spans}
    senders = [{one.key: one.value.string_value for one in sender.attributes} for sender in collector.senders]
    assert {sender["service.name"] for sender in senders} == {"agentmesh"}


def test_nothing_that_anybody_says_is_in_a_trace(am, collector):
    am.folder.mkdir()
    (am.folder / "notes.txt").write_text("t0p-secret")
    done = am("run", "--model", "demo", PROMPT, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="mine")
    assert done.code == 0
    everything = b"".join(collector.bodies)
    assert b"invoke_agent root" in everything
    assert b"mine" in everything
    for words in (b"s3cret", b"t0p-secret", b"notes.txt", str(am.folder).encode()):
        assert words not in everything


@pytest.mark.parametrize("environ", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_it_is_off_unless_it_is_asked_for(am, collector, environ):
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url} if environ else {}
    assert am("run", "--model", "demo", "hello", **environ, **endpoint).code == 0
    assert collector.bodies == []


def test_a_collector_that_is_not_there_is_not_noticed(am):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        done = am(
            "run", "--model", "demo", "hello", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{closed.getsockname()[1]}"
        )
    assert done.code == 0
    assert "I am a scripted model" in done.out
    assert [word for word in ("Traceback", "trace", "telemetry", "127.0.0.1") if word in done.err] == []


def test_a_collector_that_never_answers_keeps_nobody(am):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = am("run", "--model", "demo", "hello", OTEL_EXPORTER_OTLP_ENDPOINT=url)
    assert (done.code, "Traceback" in done.err) == (0, False)


def test_what_cannot_be_done_is_said_once(am, collector):
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    done = am("run", "--model", "demo", "hello", **asked)
    assert done.code == 0
    assert done.err.count("no traces are sent: OpenTelemetry's protocol grpc is not supported here") == 1
    assert collector.bodies == []
