"""``agentmesh worker --metrics``: figures for Prometheus, over HTTP as a scraper reads them."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from agentmesh.cli.metrics import read_address
from agentmesh.domain.errors import UsageError
from agentmesh.store.sizes import POOL_SIZE
from tests.cli.conftest import CommandLine
from tests.fixtures.engine import until

pytestmark = pytest.mark.timeout(180)

ROOT = Path(__file__).parents[2]
SECRET = "s3cret-words"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Scraped:
    """One answer."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def sum(self, name: str, **labels: str) -> float:
        return sum(one.value for one in self.samples if one.name == name and labels.items() <= one.labels.items())

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}


def scrape(address: str) -> Scraped:
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return Scraped(answer.read().decode())


@contextmanager
def worker(am: CommandLine, *options: str, **environ: str) -> Iterator[str]:
    """Run a worker with metrics at a free port; yield their address."""
    with am.start("worker", "--any", "--metrics", "127.0.0.1:0", *options, **environ) as process:
        assert process.stderr is not None
        first = process.stderr.readline().decode()
        found = re.fullmatch(r"metrics: (http://127\.0\.0\.1:[0-9]+/metrics)\n", first)
        assert found, first
        yield found[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_worker_counts_what_its_agents_do_and_names_none(am: CommandLine, conn: Any) -> None:
    assert am("run", "--model", "demo", "hello").code == 0
    [(session, root)] = conn.execute("select id, root_id from agentmesh.sessions").fetchall()
    [(before,)] = conn.execute("select count(*) from agentmesh.tool_calls").fetchall()
    with worker(am) as address:
        until(lambda: scrape(address).sum("agentmesh_worker_slots") > 0, "a worker")
        assert am("send", "root", f"list files {SECRET}").code == 0
        idle = "select 1 from agentmesh.agents where status = 'idle' and turn = 2"
        until(lambda: conn.execute(idle).fetchone() is not None, "the end of the turn", seconds=30)
        [(calls, tools, tokens, output)] = conn.execute(
            "select count(*)::int, (select count(*)::int from agentmesh.tool_calls),"
            " sum(c.input_tokens)::int, sum(c.output_tokens)::int from agentmesh.model_calls c where c.turn = 2"
        ).fetchall()
        # The worker counts a step after its commit.
        until(lambda: scrape(address).sum("agentmesh_steps_total") == calls, "the count of the last step")
        seen = scrape(address)
    assert tools > before
    assert seen.sum("agentmesh_steps_total") == calls
    assert seen.sum("agentmesh_model_calls_total", provider="demo", outcome="ok") == calls
    assert seen.sum("agentmesh_model_calls_total") == calls
    assert seen.sum("agentmesh_model_call_duration_seconds_count", provider="demo") == calls
    assert seen.sum("agentmesh_tokens_total", kind="output") == output
    assert seen.sum("agentmesh_tokens_total") - seen.sum("agentmesh_tokens_total", kind="output") == tokens
    assert seen.sum("agentmesh_tool_calls_total", outcome="ok") == tools - before
    assert seen.sum("agentmesh_tool_calls_total", tool="other") == 0
    assert seen.sum("agentmesh_listen_round_trip_seconds_count") >= 1
    assert seen.sum("agentmesh_database_up") == 1
    assert seen.sum("agentmesh_mesh_queued_agents") == 0
    assert seen.sum("agentmesh_pool_connections_limit") == POOL_SIZE
    assert seen.sum("agentmesh_worker_heartbeat_timestamp_seconds") > 1e9
    for word in (str(session), str(root), SECRET, str(am.folder), "root"):
        assert word not in seen.text
    assert {name for one in seen.samples for name in one.labels} <= {
        *("provider", "outcome", "kind", "reason", "tool", "le", "version"),
    }


def test_what_waits_in_the_mesh_has_an_age(am: CommandLine, conn: Any, mesh: Any) -> None:
    waiter, target = (mesh.fork(mesh.root, name, "work") for name in ("waiter", "target"))
    mesh.begin(waiter)
    mesh.wait(waiter, target)
    mesh.send(None, waiter)
    mesh.fork(mesh.root, "queued", "work")
    conn.execute("update agentmesh.agents set model = 'elsewhere/x', queued_at = now() - interval '100 s'")
    conn.execute(
        "update agentmesh.mail set sent_at = clock_timestamp() - interval '200 s' where recipient = %s", [waiter]
    )
    with worker(am) as address:
        until(lambda: scrape(address).sum("agentmesh_mesh_waits") == 1, "figures of the mesh")
        seen = scrape(address)
    assert seen.sum("agentmesh_mesh_queued_agents") >= 1
    assert seen.sum("agentmesh_mesh_queued_seconds") >= 100
    assert seen.sum("agentmesh_mesh_unread_mail") >= 1
    assert seen.sum("agentmesh_mesh_unread_seconds") >= 200
    assert 0 <= seen.sum("agentmesh_mesh_notify_queue_ratio") < 0.5


def test_it_is_off_unless_it_is_asked_for(am: CommandLine, conn: Any) -> None:
    script = (
        "import sys\n"
        "from agentmesh.cli.entry import main\n"
        "sys.argv = ['agentmesh', 'worker', '--linger', '0']\n"
        "main()\n"
        "print([name for name in sys.modules if name.startswith('prometheus_client')])\n"
    )
    am.folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=am.folder, env=am.environ, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize(
    "address", ["", "x", "127.0.0.1", "127.0.0.1:", ":9464", "127.0.0.1:65536", "-1", "::1:9464", "http://x:1", "a b:1"]
)
def test_what_is_no_address_is_said_before_anything_starts(lonely: CommandLine, tmp_path: Path, address: str) -> None:
    done = lonely("worker", f"--metrics={address}")
    assert done.code == 2
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 2
    assert not (tmp_path / "data").exists()
    with pytest.raises(UsageError):
        read_address(address)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9464", "127.0.0.1", 9464),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:9464", "::1", 9464),
        ("0.0.0.0:9464", "0.0.0.0", 9464),
        ("metrics.corp:80", "metrics.corp", 80),
    ],
)
def test_an_address_is_on_loopback_unless_another_is_named(text: str, host: str, port: int) -> None:
    assert read_address(text) == (host, port)


def test_an_address_that_cannot_be_used_is_said(lonely: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = lonely("worker", "--metrics", f"127.0.0.1:{port}")
    assert done.code == 2
    assert done.err.startswith(f"agentmesh: Metrics cannot be served at 127.0.0.1, port {port}: Address already in use")
    elsewhere = lonely("worker", "--metrics", "host.invalid:1")
    assert elsewhere.code == 2
    assert "Traceback" not in elsewhere.err
    assert elsewhere.err.startswith("agentmesh: Metrics cannot be served at host.invalid, port 1: ")


def test_without_the_package_it_is_said_how_to_get_it(lonely: CommandLine, tmp_path: Path) -> None:
    shadow = tmp_path / "shadow" / "prometheus_client"
    shadow.mkdir(parents=True)
    (shadow / "__init__.py").write_text("raise ModuleNotFoundError('gone', name='prometheus_client')")
    done = lonely("worker", "--metrics", "0", PYTHONPATH=f"{shadow.parent}:{ROOT}")
    assert done.code == 2
    assert done.err.startswith("agentmesh: Metrics need the Python package prometheus-client, which is not installed.")
    assert "metrics" in done.err.splitlines()[1]
