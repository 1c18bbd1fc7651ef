"""Spans by themselves: what becomes of errors, and that nothing reaches the engine."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from agentmesh import telemetry
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import AgentStatus
from agentmesh.engine import recording
from agentmesh.engine.observer import Observer
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.llm.port import Reply
from agentmesh.telemetry.sending import SessionIds
from agentmesh.telemetry.spans import Spans

SESSION = SessionId(uuid.UUID("cccccccc-0000-4000-8000-000000000003"))
ROOT = Agent(
    AgentId(uuid.UUID("aaaaaaaa-0000-4000-8000-000000000001")),
    *(SESSION, None, "root", 0, AgentStatus.RUNNING, "openai/vendor/m", "s", (), None, 3, None, 1),
)


class Failing:
    """A tool that fails as it is told."""

    name, effect, args, description = "failing", Effect.READ, BaseModel, "It fails."

    def run(self, args: Any, context: ToolContext) -> dict[str, Any]:
        if isinstance(args, Exception):
            raise args
        return dict(args)


@pytest.fixture
def sent():
    return InMemorySpanExporter()


@pytest.fixture
def spans(sent):
    provider = TracerProvider(id_generator=SessionIds(), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(sent))
    return Spans(provider)


def usage(error: str | None = None) -> dict[str, Any]:
    return recording.usage(Reply(), ROOT.model, 0.5, 0.25, error)


def test_a_model_call_that_failed_is_an_error_of_it_and_of_its_agent(spans, sent):
    with spans.running(ROOT):
        spans.asked(ROOT, usage("timeout"))
        spans.failed(ROOT, "timeout")
    chat, run = sent.get_finished_spans()
    assert (chat.name, run.name) == ("chat vendor/m", "invoke_agent root")
    assert (chat.attributes["error.type"], run.attributes["error.type"]) == ("timeout", "timeout")
    assert not chat.status.is_ok
    assert chat.parent.span_id == run.context.span_id
    assert chat.attributes["gen_ai.response.time_to_first_chunk"] == 0.25
    assert chat.end_time - chat.start_time == 500_000_000
    assert run.attributes["agentmesh.turn"] == 3


def test_a_tools_failure_is_an_error_and_goes_on_to_whom_it_is_for(spans, sent):
    tool = spans.tools(ROOT, {"failing": Failing()})["failing"]
    context = ToolContext(ROOT.id, SESSION, Path(), Cancel())
    assert (tool.name, tool.effect, tool.description) == ("failing", Effect.READ, "It fails.")
    with spans.running(ROOT):
        assert tool.run({"content": "words"}, context) == {"content": "words"}
        assert tool.run({"error": "words"}, context) == {"error": "words"}
        with pytest.raises(ToolError):
            tool.run(ToolError("words"), context)
    fine, refused, raised, _ = sent.get_finished_spans()
    assert "error.type" not in fine.attributes
    assert refused.attributes["error.type"] == "tool_error"
    assert raised.attributes["error.type"] == "ToolError"
    assert "words" not in "".join(span.to_json() for span in sent.get_finished_spans())


def test_what_ends_a_run_is_marked_and_goes_on(spans, sent):
    with pytest.raises(RuntimeError, match="it"), spans.running(ROOT):
        raise RuntimeError("it")
    (run,) = sent.get_finished_spans()
    assert run.attributes["error.type"] == "RuntimeError"


def test_a_child_stands_below_its_parents_last_span_in_the_sessions_trace(spans, sent):
    child = ROOT._replace(id=AgentId(uuid.uuid4()), parent_id=ROOT.id, name="child", depth=1)
    stranger = child._replace(id=AgentId(uuid.uuid4()), parent_id=AgentId(uuid.uuid4()), name="stranger")
    for agent in (ROOT, child, stranger):
        with spans.running(agent):
            pass
    above, below, elsewhere = sent.get_finished_spans()
    assert below.parent.span_id == above.context.span_id
    assert elsewhere.parent is None
    assert {span.context.trace_id for span in (above, below, elsewhere)} == {SESSION.int}
    assert elsewhere.attributes["agentmesh.parent_agent.id"] == str(stranger.parent_id)


def test_nothing_that_goes_wrong_reaches_the_engine(spans, sent):
    with spans.running(ROOT):
        spans.asked(ROOT, {})
        spans.failed(ROOT._replace(id=AgentId(uuid.uuid4())), "x")
    assert [span.name for span in sent.get_finished_spans()] == ["invoke_agent root"]
    spans.close()
    spans.close()
    with spans.running(ROOT):
        spans.asked(ROOT, usage())


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
    ],
)
def test_the_standard_variables_ask_for_it(environ, wanted):
    assert telemetry.is_wanted(environ) is wanted


def test_a_variable_that_the_library_refuses_is_told_and_ends_nothing(caplog, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    made = telemetry.observer({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert type(made) is Observer
    assert "no traces are sent" in caplog.text


def test_unasked_for_nothing_of_it_is_imported():
    code = (
        "import sys\nfrom agentmesh.telemetry import observer\nobserver({})\n"
        "import agentmesh.engine.worker\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
