"""P4, P5: how many messages a second the store sends, against psycopg and pgbench that run the same SQL function."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.sql import statement
from agentmesh.store import mailbox, workers
from agentmesh.store.callers import caller
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import HOST, USER, Mesh

_BODY: Final = "x" * 100
_RECIPIENTS: Final = 8
_NOTE: Final = (
    "From the user to 8 running agents that a worker owns. Both sides run the same statement; the mailboxes are "
    "emptied in between."
)
_CALL: Final = "select agentmesh.send(null, '{}', '{}', null, row(null, null, null, null, null)::agentmesh.caller);"


def run(bench: Bench) -> None:
    """Measure P4 and P5."""
    with bench.place.mesh() as mesh:
        recipients = [mesh.fork(mesh.root, "work") for _ in range(_RECIPIENTS)]
        # A worker that owns them and runs none: a recipient without one would cost each send a NOTIFY for work.
        me = mesh.database.run(workers.join, workers.Identity(HOST, USER, os.getpid(), _RECIPIENTS, ("puppet",)))
        assert len(mesh.database.run(workers.claim, me, _RECIPIENTS)) == _RECIPIENTS
        _p4(bench, mesh, recipients)
        _p5(bench, mesh, recipients)


def _p4(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId]) -> None:
    figure = Figure(
        "P4",
        "one sender: store.mailbox.send against psycopg executing the same function",
        {"agentmesh": "messages/s", "psycopg": "messages/s", "agentmesh / psycopg": "x"},
        [Target("agentmesh / psycopg", ">=", 0.6)],
        note=_NOTE,
    )
    messages = bench.size(1600, 80)
    query = statement("mailbox.send")

    def ours(recipient: AgentId) -> None:
        mesh.database.run(mailbox.send, None, recipient, _BODY)

    def bare(recipient: AgentId) -> None:
        values = {"sender": None, "recipient": recipient, "body": _BODY, "key": None, **caller(None)}
        mesh.bare.execute(query, values).fetchone()

    def rate(send: Callable[[AgentId], None]) -> float:
        _empty(mesh)
        for recipient in recipients:
            send(recipient)
        began = time.perf_counter()
        for n in range(messages):
            send(recipients[n % _RECIPIENTS])
        return messages / (time.perf_counter() - began)

    def repeat() -> Values:
        with_store, with_psycopg = rate(ours), rate(bare)
        return {
            "agentmesh": with_store,
            "psycopg": with_psycopg,
            "agentmesh / psycopg": ratio(with_store, with_psycopg),
        }

    bench.measure(repeat, figure)


def _p5(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId]) -> None:
    figure = Figure(
        "P5",
        "8 senders to 8 agents: threads with store.mailbox.send against pgbench running the same function",
        {"agentmesh": "messages/s", "pgbench": "messages/s", "agentmesh / pgbench": "x"},
        [Target("agentmesh / pgbench", ">=", 0.6)],
        note=f"{_NOTE} Ours are 8 threads of one Python process over its pool; pgbench has 8 prepared clients on 2 "
        "threads.",
    )
    each = bench.size(600, 40)

    def ours() -> float:
        barrier = threading.Barrier(_RECIPIENTS + 1)

        def send(recipient: AgentId) -> None:
            barrier.wait()
            for _ in range(each):
                mesh.database.run(mailbox.send, None, recipient, _BODY)
            barrier.wait()

        threads = [threading.Thread(target=send, args=[recipient]) for recipient in recipients]
        for thread in threads:
            thread.start()
        barrier.wait()
        began = time.perf_counter()
        barrier.wait()
        return _RECIPIENTS * each / (time.perf_counter() - began)

    def repeat() -> Values:
        _empty(mesh)
        ours()  # opens the pool's connections, and prepares
        _empty(mesh)
        with_store = ours()
        _empty(mesh)
        with_pgbench = _pgbench(bench, mesh, recipients, each)
        return {
            "agentmesh": with_store,
            "pgbench": with_pgbench,
            "agentmesh / pgbench": ratio(with_store, with_pgbench),
        }

    bench.measure(repeat, figure)


def _pgbench(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId], each: int) -> float:
    """Return the messages per second of pgbench, one client per recipient."""
    choices = [
        f"\\{'if' if n == 0 else 'elif'} :client_id = {n}\n{_CALL.format(recipient, _BODY)}"
        for n, recipient in enumerate(recipients)
    ]
    script = bench.place.folder / "send.pgbench"
    script.write_text("\n".join([*choices, "\\endif\n"]))
    options = ["-n", "-M", "prepared", "-c", str(_RECIPIENTS), "-j", "2", "-t", str(each), "-f", str(script)]
    command = [str(bench.place.binary("pgbench")), *options, mesh.url]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([\d.]+) \(without initial", shown)
    if found is None or f"{_RECIPIENTS * each}/{_RECIPIENTS * each}" not in shown:
        raise RuntimeError(f"pgbench said: {shown}")
    return float(found[1])


def _empty(mesh: Mesh) -> None:
    """Empty all mailboxes: a full one refuses, and counting the unread takes its time."""
    mesh.bare.execute("truncate agentmesh.mail")
    mesh.bare.execute("vacuum analyze agentmesh.agents")
    mesh.bare.execute("checkpoint")
