"""The commits of a turn. Each is one statement, fenced by the lease; together they make each step exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import Fenced, TurnInterrupted, UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Allowance, OpenCall, Row, Standing
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar, typed_row
from agentmesh.store.jsonb import json_text, jsonb
from agentmesh.store.mailbox import require_size

Results = Mapping[int, Mapping[str, Any]]
"""What the tool calls of a step returned, by ordinal."""

Seen = Mapping[int, Sequence[tuple[str, str]]]
"""Files whose content the calls have shown, by ordinal: paths (absolute, free of links) and SHA-256 digests."""

Snapshots = Mapping[int, Mapping[str, Any]]
"""What the files were after the calls, by ordinal; ``snapshots.entry`` makes one."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A model call about to be made, as its budget needs to know it."""

    bytes: int = 0
    """Bytes of the request without the rows that come with the begin of the step."""
    answer_tokens: int = 32_768
    """The longest answer that is wanted."""
    input_usd: float | None = None
    """The list price of an input token that is not cached; None if the model is not in the list."""
    output_usd: float | None = None
    address: str = ""
    """The model's server: its base URL. Bills are known by it."""
    model: str | None = None
    """The model that will be asked; None: the agent's own, which a person may have changed for its next turn."""


@dataclass(frozen=True, slots=True)
class Granted:
    """What the budget allows for a model call."""

    refused: dict[str, str] | None
    """Why the call is refused (error, hint), or None."""
    waits: str | None
    """What it must first wait for from running calls: their ``room``, or the first ``bill`` of its model; or None."""
    answer_tokens: int | None
    """How long the answer may be; None if nothing is capped."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a step begins with."""

    rows: list[Row]
    """Rows that have come since, with the mail that was just read."""
    granted: Granted
    in_task: bool
    """Whether the agent works on a task of its parent."""
    turn: int
    model: str
    """As they are now: a change holds from the next turn on."""
    settings_id: str


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """How a step ended."""

    seq: int
    """The row of the answer."""
    status: AgentStatus
    allowance: Allowance | None
    """What the calls may now do without asking; None if there are no calls to run."""


@dataclass(frozen=True, slots=True)
class TaskGiver:
    """An agent that hands out a task, with the bounds that its sub-agent cannot exceed."""

    depth: int
    max_depth: int
    model: str
    permissions: Any
    tools: list[dict[str, Any]]
    workspace: str
    """Where they work if nobody says otherwise: ``own`` or ``shared``."""


def task_giver(conn: Connection, agent: AgentId) -> TaskGiver:
    """Return the bounds for the sub-agents of this agent's tasks."""
    with conn.cursor(row_factory=typed_row(TaskGiver)) as cursor:
        found = cursor.execute(statement("steps.task_giver"), {"agent": agent}).fetchone()
    if found is None:
        raise UnknownAgent(f"there is no agent {agent}", hint="agentmesh ps --all lists the agents.")
    return found


def standing(conn: Connection, lease: Lease) -> Standing:
    """Return the present state of the lease's agent; raise Fenced."""
    with conn.cursor(row_factory=typed_row(Standing)) as cursor:
        found = cursor.execute(statement("steps.standing"), {"agent": lease.agent_id, **caller(lease)}).fetchone()
    if found is None:
        raise Fenced(f"worker {lease.worker_id} no longer owns agent {lease.agent_id}", hint="Stop running it.")
    return found


def begin_step(
    conn: Connection,
    lease: Lease,
    after: int,
    results: Results | None = None,
    seen: Seen | None = None,
    planned: Planned = Planned(),
    snapshots: Snapshots | None = None,
) -> Begun:
    """Read the mail that is due, reserve a model call, and return the agent's own rows after a seq.

    Raise Fenced or TurnInterrupted.

    ``results`` of the lease's step, what it has ``seen`` and the ``snapshots`` after its calls are written first, and
    stay even if it raises TurnInterrupted. They are not flushed to disk if none of their calls was started: after a
    crash of the server, those calls are open again.
    """
    found = json_text(_entries(results, seen, snapshots)) if results else None
    values = {"agent": lease.agent_id, "after": after, "results": found, **asked(planned), **caller(lease)}
    begun = scalar(conn, statement("steps.begin_step"), values, dict)
    if begun.get("interrupted"):
        raise TurnInterrupted(f"agent {lease.agent_id} was interrupted", hint="End its turn.")
    rows = [Row(lease.agent_id, seq, Kind(kind), content) for seq, kind, content in begun["rows"]]
    return Begun(
        rows,
        granted(begun),
        begun["in_task"],
        begun["turn"],
        begun["model"],
        begun["settings"],
    )


def asked(planned: Planned) -> dict[str, Any]:
    """Return the parameters that ask a budget for a call."""
    return {
        "bytes": planned.bytes,
        "answer": planned.answer_tokens,
        "input_usd": planned.input_usd,
        "output_usd": planned.output_usd,
        "address": planned.address,
        "model": planned.model,
    }


def granted(found: Mapping[str, Any]) -> Granted:
    """Return the answer of ``agentmesh.reserve`` as an object."""
    return Granted(found.get("refused"), found.get("waits"), found.get("answer"))


def finish_step(
    conn: Connection,
    lease: Lease,
    content: Mapping[str, Any],
    calls: Sequence[Mapping[str, Any]],
    usage: Mapping[str, Any],
    after: int | None = None,
) -> FinishedStep:
    """Store the model's answer with its tool calls, usage and cost; without calls this ends the turn.

    With ``after``, the newest own row that the model was sent, it may be repeated: an answer that has been stored since
    then is not stored again. Raise AgentBusy if calls have no result, because their commit was not flushed yet when the
    server crashed.
    """
    values = {
        "agent": lease.agent_id,
        "content": json_text(content),
        "calls": json_text(calls),
        "usage": json_text(usage),
        "after": after,
        **caller(lease),
    }
    name = "steps.finish_step" if after is None else "steps.finish_step_once"
    finished = scalar(conn, statement(name), values, dict)
    allowance = finished["allowance"]
    return FinishedStep(finished["seq"], AgentStatus(finished["status"]), allowance and Allowance.from_json(allowance))


def start_calls(conn: Connection, lease: Lease, ordinals: Sequence[int]) -> Allowance:
    """Mark calls of the lease's step as started, before they run; return what may now be done without asking."""
    values = {"agent": lease.agent_id, "ordinals": list(ordinals), **caller(lease)}
    return Allowance.from_json(scalar(conn, statement("steps.start_calls"), values, dict))


def finish_calls(
    conn: Connection, lease: Lease, results: Results, seen: Seen | None = None, snapshots: Snapshots | None = None
) -> None:
    """Write the results of calls of the lease's step, what it has seen, and snapshots taken after its calls.

    A call that has a result keeps it.
    """
    values = {"agent": lease.agent_id, "results": _json(_entries(results, seen, snapshots)), **caller(lease)}
    conn.execute(statement("steps.finish_calls"), values)


def ask(
    conn: Connection,
    lease: Lease,
    judged: Allowance,
    asked: Sequence[Mapping[str, Any]],
    settled: Sequence[int],
    dropped: Sequence[int],
) -> Allowance:
    """Ask a person about calls of the lease's step; return what may now be done without asking.

    ``settled`` are the ordinals of calls that may now run without an answer. ``dropped`` are the ordinals of calls that
    nobody is there to decide about. Nothing is done if the allowance is no longer ``judged``.
    """
    values = {
        "agent": lease.agent_id,
        "judged": _json(judged.to_json()),
        "asked": _json(list(asked)),
        "settled": list(settled),
        "dropped": list(dropped),
        **caller(lease),
    }
    return Allowance.from_json(scalar(conn, statement("steps.ask"), values, dict))


def task(conn: Connection, lease: Lease, spec: Mapping[str, Any]) -> AgentId:
    """Hand the lease's call to a sub-agent, a new one or a known one (``agent_id``); return its id.

    A new one's ``workspace`` and ``base`` mean the same as in ``agents.fork``; a known one keeps its own. Raise a
    LimitReached, BadName, UnknownAgent, DeadAgent, AgentBusy, NotATask or NoTree if it is refused.
    """
    require_size(str(spec.get("prompt", "")))
    return AgentId(
        scalar(conn, statement("steps.task"), {"agent": lease.agent_id, "spec": _json(spec), **caller(lease)}, UUID)
    )


def report(
    conn: Connection,
    lease: Lease,
    result: Mapping[str, Any] | None,
    refusal: Mapping[str, Any] | None = None,
    check_exit: int | None = None,
) -> AgentStatus:
    """End what the lease's agent works on with its result; with a ``refusal``, count a miss. Return the agent's status.

    ``check_exit`` is the exit code of the command that checked the result. Raise NotATask if no report has a form.
    """
    given = {"result": _json(result), "refusal": _json(refusal), "check_exit": check_exit}
    return AgentStatus(
        scalar(conn, statement("steps.report"), {"agent": lease.agent_id, **given, **caller(lease)}, str)
    )


def halt(conn: Connection, lease: Lease, result: Mapping[str, Any]) -> AgentStatus:
    """Take the report of the lease's agent, and end the work of the agents above it, as far as they work for no person.

    Return the agent's status. Raise HaltRefused if its type may not do that, or if it works for no agent.
    """
    values = {"agent": lease.agent_id, "result": _json(result), **caller(lease)}
    return AgentStatus(scalar(conn, statement("steps.halt"), values, str))


def ready(conn: Connection, agents: Sequence[AgentId]) -> list[AgentId]:
    """Return the agents that can go on, of these, which wait for a person or a sub-agent."""
    return [AgentId(row[0]) for row in conn.execute(statement("steps.ready"), {"agents": list(agents)}).fetchall()]


def fail_turn(
    conn: Connection, lease: Lease, error: Mapping[str, Any], usage: Mapping[str, Any] | None = None
) -> AgentStatus:
    """End the turn with an error; return the agent's status."""
    values = {"agent": lease.agent_id, "error": _json(error), "usage": _json(usage), **caller(lease)}
    return AgentStatus(scalar(conn, statement("steps.fail_turn"), values, str))


def stop_turn(
    conn: Connection, lease: Lease, partial: Mapping[str, Any] | None = None, usage: Mapping[str, Any] | None = None
) -> AgentStatus:
    """End an interrupted turn, keeping what was streamed; return the agent's status."""
    values = {"agent": lease.agent_id, "partial": _json(partial), "usage": _json(usage), **caller(lease)}
    return AgentStatus(scalar(conn, statement("steps.stop_turn"), values, str))


def skip_turn(conn: Connection, lease: Lease) -> AgentStatus:
    """End a turn that has nothing to answer; return the agent's status."""
    return AgentStatus(scalar(conn, statement("steps.skip_turn"), {"agent": lease.agent_id, **caller(lease)}, str))


def book_call(conn: Connection, agent: AgentId, usage: Mapping[str, Any]) -> None:
    """Record the tokens and the cost of a model call whose answer is not kept; the agent may be dead."""
    conn.execute(statement("steps.book_call"), {"agent": agent, "usage": _json(usage)})


def reserve_retry(
    conn: Connection,
    lease: Lease,
    model: str,
    last: tuple[int, float | None],
    every: tuple[int, float | None],
    unpriced: Sequence[Mapping[str, Any]] = (),
) -> bool:
    """Reserve another attempt of a call of this model; return whether there was room for it under every cap.

    ``last`` and ``every``: tokens, and USD if known, that the last attempt and all attempts have used. ``unpriced``
    is the last one if its cost is not known, as the usage of a call has it.
    """
    used = {"tokens": last[0], "usd": last[1], "all_tokens": every[0], "all_usd": every[1], "unpriced": _json(unpriced)}
    values = {"agent": lease.agent_id, "epoch": lease.epoch, "model": model, **used}
    return scalar(conn, statement("steps.reserve_retry"), values, bool)


def open_calls(conn: Connection, agent: AgentId) -> list[OpenCall]:
    """Return the agent's calls without a result, in the order in which the model asked for them."""
    with conn.cursor(row_factory=typed_row(OpenCall)) as cursor:
        return cursor.execute(statement("steps.open_calls"), {"agent": agent}).fetchall()


def _entries(results: Results, seen: Seen | None, snapshots: Snapshots | None) -> list[dict[str, Any]]:
    known, taken = seen or {}, snapshots or {}
    return [
        {
            "ordinal": ordinal,
            "result": result,
            **({"seen": known[ordinal]} if known.get(ordinal) else {}),
            **({"snapshot": taken[ordinal]} if taken.get(ordinal) else {}),
        }
        for ordinal, result in results.items()
    ]


def _json(value: Any) -> Jsonb | None:
    return None if value is None else jsonb(value)
