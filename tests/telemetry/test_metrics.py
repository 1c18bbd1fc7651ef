"""Metrics by themselves: which there are, what is counted, and that no scrape waits for a database that is away."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import AgentStatus
from agentmesh.engine import recording
from agentmesh.llm.port import Reply, Usage
from agentmesh.store.metrics import MeshFigures
from agentmesh.store.tx import PoolLoad
from agentmesh.telemetry.counts import Counts
from agentmesh.telemetry.mesh_figures import LatestFigures
from agentmesh.telemetry.metrics import WorkerMetrics

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
PAGE = ROOT / "docs" / "how-to" / "metrics.md"
SENDER = Agent(
    AgentId(uuid.UUID("aaaaaaaa-0000-4000-8000-000000000001")),
    *(SessionId(uuid.uuid4()), None, "root", 0, AgentStatus.RUNNING, "openai/m", "s", (), None, 3, None, 1),
)
FIGURES = MeshFigures(1, 2, 3.0, 4, 5.0, 0.25)
PATIENCE = 20


class Worker:
    """As much of a worker as its metrics read."""

    agents, active, beat_at = 3, 2, 0.0


class Database:
    """As much of a database as metrics read; it answers when it is told to."""

    repeats = 7

    def __init__(self) -> None:
        self.error: Exception | None = None

    def load(self) -> PoolLoad:
        return PoolLoad(1, 8, 0)

    def run(self, *_: Any, **__: Any) -> MeshFigures:
        if self.error:
            raise self.error
        return FIGURES


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def metrics(database: Database) -> WorkerMetrics:
    made = WorkerMetrics()
    worker: Any = Worker()
    served: Any = database
    made.watch(worker, served, 16)
    return made


def families(metrics: WorkerMetrics) -> list[Metric]:
    return [one for one in metrics._registry.collect() if one.name.startswith("agentmesh_")]


def sample_names(family: Metric) -> set[str]:
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}
    return {family.name + end for end in ends[family.type]}


def test_the_dashboard_asks_only_for_metrics_that_there_are(metrics: WorkerMetrics) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in dashboard["templating"]["list"]]
    found = {name for query in asked for name in re.findall(r"\bagentmesh_\w+", query)}
    there = set().union(*map(sample_names, families(metrics)))
    assert found <= there
    shown = {one.name for one in families(metrics) if sample_names(one) & found}
    assert shown == {one.name for one in families(metrics)}, "and shows each"
    assert all(
        target["expr"] and target["legendFormat"] for panel in dashboard["panels"] for target in panel["targets"]
    )
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_page_lists_each_metric_with_its_labels(metrics: WorkerMetrics) -> None:
    rows = dict(re.findall(r"^\| `(agentmesh_\w+)` \|([^|]*)\|", PAGE.read_text(), re.MULTILINE))
    written = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows.items()}
    made = {}
    for one in families(metrics):
        kind = {"counter": "_total", "info": "_info"}.get(one.type, "")
        collector = metrics._registry._names_to_collectors.get(one.name)
        made[one.name + kind] = set(getattr(collector, "_labelnames", ())) | (
            {"version"} if one.type == "info" else set()
        )
    assert written == made


def test_names_follow_the_conventions(metrics: WorkerMetrics) -> None:
    for one in families(metrics):
        assert re.fullmatch(r"agentmesh(_[a-z]+)+", one.name)
        assert one.documentation.endswith(".")
        assert not one.name.endswith(("_total", "_ms", "_minutes"))
        if one.type == "histogram":
            assert one.name.endswith("_seconds")


def test_what_has_an_unknown_name_makes_no_series_of_its_own() -> None:
    registry = CollectorRegistry()
    counts = Counts(registry)
    counts.known_tools, counts.providers = {"bash"}, {"openai"}
    reply = Reply(text="x", usage=Usage(100, 10, 60), cost_usd=0.5)
    counts.asked(SENDER, recording.usage(reply, SENDER.model, 2.0, 0.5))
    for n in range(3):
        stranger = SENDER._replace(model=f"invented-{n}/m")
        counts.asked(stranger, recording.usage(Reply(), stranger.model, 0.1, None, f"new-{n}"))
        counts.failed(stranger, f"strange-{n}")
        counts.retried(stranger, by_load=True)
        counts._called(f"mcp__some__{n}", None, 0, "")  # type: ignore[arg-type]
    counts._called("bash", None, 0, "tool_error")  # type: ignore[arg-type]
    value = registry.get_sample_value
    assert value("agentmesh_model_calls_total", {"provider": "other", "outcome": "other"}) == 3
    assert value("agentmesh_turn_failures_total", {"kind": "other"}) == 3
    assert value("agentmesh_model_retries_total", {"provider": "other", "reason": "pause"}) == 3
    assert value("agentmesh_tool_calls_total", {"tool": "other", "outcome": "ok"}) == 3
    assert value("agentmesh_tool_calls_total", {"tool": "bash", "outcome": "error"}) == 1
    kinds = {
        kind: value("agentmesh_tokens_total", {"provider": "openai", "kind": kind})
        for kind in ("input", "cached", "output")
    }
    assert kinds == {"input": 40, "cached": 60, "output": 10}
    assert value("agentmesh_cost_usd_total", {"provider": "openai"}) == 0.5
    assert value("agentmesh_model_first_token_seconds_count", {"provider": "openai"}) == 1
    text = generate_latest(registry).decode()
    assert not re.search(r"invented|strange|new-|mcp__", text)


def test_a_call_without_a_known_price_is_counted_and_costs_nothing() -> None:
    registry = CollectorRegistry()
    counts = Counts(registry)
    counts.providers = {"openai"}
    counts.asked(SENDER, recording.usage(Reply(text="x", usage=Usage(1, 1)), SENDER.model, 1, None))
    assert registry.get_sample_value("agentmesh_unpriced_model_calls_total", {"provider": "openai"}) == 1
    assert registry.get_sample_value("agentmesh_cost_usd_total", {"provider": "openai"}) is None


def test_a_database_that_is_away_leaves_the_rest(metrics: WorkerMetrics, database: Database) -> None:
    database.error = DatabaseUnreachable("It is away.")
    with metrics.served("127.0.0.1", 0) as served:
        text = urllib.request.urlopen(f"http://127.0.0.1:{served.port}/metrics", timeout=PATIENCE).read().decode()
    assert "agentmesh_database_up 0.0" in text
    assert "agentmesh_worker_agents 3.0" in text
    assert "agentmesh_database_repeats_total 7.0" in text
    assert "agentmesh_mesh_" not in text
    assert "_created" not in text


def test_however_many_ask_the_database_is_asked_once_and_no_scrape_waits_for_it() -> None:
    asked, answers = threading.Semaphore(0), threading.Semaphore(0)

    def ask() -> MeshFigures:
        asked.release()
        assert answers.acquire(timeout=PATIENCE)
        return FIGURES

    figures = LatestFigures(ask, patience=0.01)
    assert [figures.get() for _ in range(3)] == [None] * 3
    assert asked.acquire(timeout=PATIENCE)
    assert not asked.acquire(blocking=False), "one question at a time"
    patient = LatestFigures(ask, patience=PATIENCE)
    answers.release(2)
    assert patient.get() == FIGURES
    assert patient.get() == FIGURES, "the same answer serves for a second"
