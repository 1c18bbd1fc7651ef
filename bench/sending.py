"""P4 to P6, P31: how many messages a second the store sends, against psycopg and pgbench with the same SQL function.

P6: many messages in one commit against one commit for each. P31: what the NOTIFYs of a send cost.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from agentmesh.domain.ids import AgentId
from agentmesh.sql import statement
from agentmesh.store import mailbox, workers
from agentmesh.store.call import caller
from agentmesh.store.status import agent_channel
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Bars, Wanted
from bench.place import HOST, USER, Mesh

_BODY: Final = "x" * 100
_RECIPIENTS: Final = 8
_BATCH: Final = 100
_EMPTIED: Final = 4
"""Batches, and as many single messages, after which the mailboxes are emptied."""
_NOTE: Final = (
    "From the user to 8 running agents that a worker owns. Both sides run the same statement; the mailboxes are "
    "emptied in between."
)
_CALL: Final = "select agentmesh.send(null, '{}', '{}', null, row(null, null, null, null, null)::agentmesh.caller);"


_RINGS: Final = {
    "every mail": """
begin
  perform agentmesh.notify_agent(recipient.id, recipient.session_id, 'mail');
end""",
    "no mail": """
begin
end""",
}
"""Bodies of ``notify_of_mail`` to compare with: what each send did before, and the lower limit of the costs."""


def run(bench: Bench) -> None:
    """Measure P4 to P6, and P31."""
    with bench.place.mesh() as mesh:
        recipients = owned_recipients(mesh, _RECIPIENTS)
        _p4(bench, mesh, recipients)
        _p5(bench, mesh, recipients)
        _p6(bench, mesh, recipients)
        _p31(bench, mesh, recipients)


def owned_recipients(mesh: Mesh, count: int) -> list[AgentId]:
    """Make running agents whose worker runs none: a recipient without one would cost each send a NOTIFY for work."""
    made = [mesh.fork(mesh.root, "work") for _ in range(count)]
    me = mesh.database.run(workers.join, workers.Identity(HOST, USER, os.getpid(), count, ("puppet",)))
    if len(mesh.database.run(workers.claim, me, count)) != count:
        raise RuntimeError("the agents were not claimed")
    return made


def _p4(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId]) -> None:
    figure = Figure(
        "P4",
        "one sender: store.mailbox.send against psycopg executing the same function",
        {"agentmesh": "messages/s", "psycopg": "messages/s", "agentmesh / psycopg": "x"},
        [Target("agentmesh / psycopg", ">=", 0.6)],
        note=_NOTE,
        picture=Bars(
            {"agentmesh": "agentmesh, through its pool", "psycopg": "psycopg, the same statement"},
            Wanted("≥ 0.6 × psycopg", 0.6, "psycopg"),
        ),
    )
    messages = bench.size(1600, 80)
    query = statement("mailbox.send")

    def ours(recipient: AgentId) -> None:
        mesh.database.run(mailbox.send, None, recipient, _BODY)

    def bare(recipient: AgentId) -> None:
        values = {
            "sender": None,
            "recipient": recipient,
            "body": _BODY,
            "key": None,
            "images": None,
            "urgent": False,
            "reply_to": None,
            **caller(None),
        }
        mesh.bare.execute(query, values).fetchone()

    def rate(send: Callable[[AgentId], None]) -> float:
        empty_mailboxes(mesh)
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
        picture=Bars(
            {"agentmesh": "agentmesh, 8 threads of one process", "pgbench": "pgbench, 8 clients, the same statement"},
            Wanted("≥ 0.6 × pgbench", 0.6, "pgbench"),
        ),
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
        empty_mailboxes(mesh)
        ours()  # opens the pool's connections, and prepares
        empty_mailboxes(mesh)
        with_store = ours()
        empty_mailboxes(mesh)
        with_pgbench = pgbench(bench, mesh, [_CALL.format(recipient, _BODY) for recipient in recipients], each)
        return {
            "agentmesh": with_store,
            "pgbench": with_pgbench,
            "agentmesh / pgbench": ratio(with_store, with_pgbench),
        }

    bench.measure(repeat, figure)


def _p6(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId]) -> None:
    figure = Figure(
        "P6",
        f"{_BATCH} messages in one statement against single sends",
        {"one statement": "messages/s", "single": "messages/s", "one statement / single": "x", "NOTIFYs": ""},
        [Target("one statement / single", ">=", 5.0), Target("NOTIFYs", "<=", 1)],
        note="The tool send, the command and send_many send one text to several agents in one commit. In SQL one "
        "statement may also call the function for each row of a list, with texts of their own: that is measured, over "
        f"psycopg, {_BATCH} messages to 8 recipients in one commit, against the same sent one by one, in turn. "
        "NOTIFYs: on a recipient's channel, the most that one statement made.",
        picture=Bars(
            {"one statement": f"agentmesh, {_BATCH} in one commit", "single": "agentmesh, a commit for each"},
            Wanted("≥ 5 × single", 5.0, "single"),
        ),
    )
    messages = bench.size(800, _BATCH)
    to = [recipients[n % _RECIPIENTS] for n in range(_BATCH)]
    single = "select agentmesh.send(null, %s, %s)"
    many = "select count(agentmesh.send(null, recipient, body)) from unnest(%s::uuid[], %s::text[]) m (recipient, body)"

    def send_one_by_one() -> None:
        for recipient in to:
            mesh.bare.execute(single, [recipient, _BODY])

    def send_at_once() -> None:
        mesh.bare.execute(many, [to, [_BODY] * _BATCH])

    def seconds(send: Callable[[], None]) -> float:
        began = time.perf_counter()
        send()
        return time.perf_counter() - began

    def repeat() -> Values:
        took = []
        for n in range(messages // _BATCH):
            if n % _EMPTIED == 0:
                empty_mailboxes(mesh)
                send_at_once()  # plans are made
            took.append((seconds(send_at_once), seconds(send_one_by_one)))
        at_once, one_by_one = (sum(side) for side in zip(*took, strict=True))
        return {
            "one statement": messages / at_once,
            "single": messages / one_by_one,
            "one statement / single": ratio(one_by_one, at_once),
            "NOTIFYs": _most_notifies(mesh, recipients, send_at_once),
        }

    bench.measure(repeat, figure)


def _p31(bench: Bench, mesh: Mesh, recipients: Sequence[AgentId]) -> None:
    ours, every, none = "as it is", *_RINGS
    figure = Figure(
        "P31",
        "8 senders to 8 agents, pgbench: mail that rings only where something changes, every mail, no mail",
        {
            **dict.fromkeys((ours, every, none), "messages/s"),
            f"{ours} / {every}": "x",
            f"{ours} / {none}": "x",
        },
        [Target(f"{ours} / {none}", ">=", 0.9)],
        note=f"{_NOTE} Commits with a NOTIFY queue up on one lock of the server, which they hold while their log is "
        "flushed. Every mail: a NOTIFY to the agent and one to its session, as before. No mail: the same functions "
        "without NOTIFY. How much more that is than with every mail depends on the disk.",
        picture=Bars(
            {ours: "agentmesh", every: "a NOTIFY with every mail", none: "no NOTIFY at all"},
            Wanted("≥ 0.9 × no NOTIFY", 0.9, none),
        ),
    )
    each = bench.size(600, 40, 1000)
    calls = [_CALL.format(recipient, _BODY) for recipient in recipients]
    mesh_bodies = {ours: _body(mesh), **_RINGS}

    def rate(body: str) -> float:
        _ring(mesh, body)
        empty_mailboxes(mesh)
        return pgbench(bench, mesh, calls, each)

    def repeat() -> Values:
        try:
            found = {name: rate(body) for name, body in mesh_bodies.items()}
        finally:
            _ring(mesh, mesh_bodies[ours])
        return {
            **found,
            f"{ours} / {every}": ratio(found[ours], found[every]),
            f"{ours} / {none}": ratio(found[ours], found[none]),
        }

    bench.measure(repeat, figure)


def _body(mesh: Mesh) -> str:
    return str(mesh.one("select prosrc from pg_proc where proname = 'notify_of_mail'"))


def _ring(mesh: Mesh, body: str) -> None:
    """Let mail notify as this body of the function says."""
    mesh.bare.execute(
        sql.SQL(
            "create or replace function agentmesh.notify_of_mail(recipient agentmesh.agents, mail_id bigint,"
            " sender uuid, automatic boolean) returns void language plpgsql as {}"
        ).format(sql.Literal(body))
    )


def _most_notifies(mesh: Mesh, recipients: Sequence[AgentId], send: Callable[[], None]) -> int:
    """Return the largest number of NOTIFYs that came to one of the agents' channels."""
    with psycopg.connect(mesh.url, autocommit=True) as listening:
        for recipient in recipients:
            listening.execute(sql.SQL("listen {}").format(sql.Identifier(agent_channel(recipient))))
        send()
        # The sender's commit has returned, so all its notifications come with the answer to this statement.
        listening.execute("select 1")
        heard = Counter(notify.channel for notify in listening.notifies(timeout=0))
    return max(heard.values(), default=0)


def pgbench(
    bench: Bench, mesh: Mesh, statements: Sequence[str], each: int, folder: Path | None = None, **variables: int
) -> float:
    """Return the transactions per second of pgbench, one client for each statement; each has these variables.

    ``folder``: of its own, for one that runs beside another.
    """
    choices = [
        f"\\{'if' if n == 0 else 'elif'} :client_id = {n}\n{statement}" for n, statement in enumerate(statements)
    ]
    script = (folder or bench.place.folder) / "script.pgbench"
    script.write_text("\n".join([*choices, "\\endif\n"]))
    count = str(len(statements))
    options = ["-n", "-M", "prepared", "-c", count, "-j", "2", "-t", str(each), "-f", str(script)]
    options += [f"--define={name}={value}" for name, value in variables.items()]
    command = [str(bench.place.binary("pgbench")), *options, mesh.url]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([\d.]+) \(without initial", shown)
    if found is None or f"{len(statements) * each}/{len(statements) * each}" not in shown:
        raise RuntimeError(f"pgbench said: {shown}")
    return float(found[1])


def empty_mailboxes(mesh: Mesh) -> None:
    """Empty all mailboxes: a full one refuses, and counting the unread takes its time."""
    mesh.bare.execute("truncate agentmesh.mail")
    mesh.bare.execute("vacuum analyze agentmesh.agents")
    mesh.bare.execute("checkpoint")
