"""Very many agents at once: the rows that fork, a model's answer and the tool wait would have made, by set-based SQL.

Forking 100,000 agents one by one takes minutes and is measured elsewhere; here they only have to be there.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from agentmesh.domain.ids import AgentId
from bench.puppet import instruction

_FORKS: Final = """
insert into agentmesh.agents
  (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, turn,
   workspace_id)
select p.session_id, p.id, %(prefix)s || '-' || row_number() over (order by n, p.created_at, p.id), p.depth + 1,
  p.subagent_type, 'idle', p.model, p.settings_id, p.permissions, agentmesh.fork_point(p.id), 0, p.workspace_id
from agentmesh.agents p, generate_series(1, %(each)s) n where p.id = any (%(parents)s) order by n, p.created_at, p.id
returning id
"""
_LOCKED: Final = """
update agentmesh.sessions set tree_version = tree_version + %(made)s
where id in (select session_id from agentmesh.agents where id = any (%(parents)s))
"""
_MAIL: Final = """
with sent as (
  insert into agentmesh.mail (session_id, sender, recipient, body, read_at, read_seq)
  select a.session_id, null, a.id, %(prompt)s, clock_timestamp(), 1 from agentmesh.agents a where a.id = any (%(ids)s)
  returning id, recipient)
insert into agentmesh.transcript (agent_id, seq, kind, content)
select a.id, 1, 'user', jsonb_build_object('mail_id', s.id, 'text', %(prompt)s::text, 'introduces', jsonb_build_object(
  'agent_id', a.id, 'name', a.name, 'parent_id', p.id, 'parent_name', p.name))
from sent s join agentmesh.agents a on a.id = s.recipient join agentmesh.agents p on p.id = a.parent_id
"""
_ANSWER: Final = """
insert into agentmesh.transcript (agent_id, seq, kind, content)
select id, 2, 'assistant', %(answer)s from unnest(%(ids)s) id
"""
_CALL: Final = """
insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments)
select id, 2, 0, 'call-1', 'wait', %(arguments)s from unnest(%(ids)s) id
"""
_BOOKED: Final = """
insert into agentmesh.model_calls (agent_id, turn, model, input_tokens, output_tokens, finish_reason)
select a.id, 1, a.model, 1, 1, 'tool_calls' from agentmesh.agents a where a.id = any (%(ids)s)
"""
_BOOKINGS: Final = """
insert into agentmesh.bookings (session_id, tokens, cost_usd)
select a.session_id, 2, 0 from agentmesh.agents a where a.id = any (%(ids)s)
"""
_WAIT: Final = """
insert into agentmesh.wait (waiter, seq, ordinal, targets, deadline)
select id, 2, 0, null, clock_timestamp() + interval '1 day' from unnest(%(ids)s) id
"""
_RUNS: Final = """
update agentmesh.agents a set status = 'running', turn = 1, started_turn = 1, model_calls = 1, input_tokens = 1,
  output_tokens = 1, unpriced_calls = 1
where a.id = any (%(ids)s)
"""
_WAIT_ARGUMENTS: Final = '{"timeout": 86400}'
_PROMPT: Final = instruction(("wait", {"timeout": 86400}), repeat=True)
_ANSWERED: Final = {
    "text": "",
    "calls": [{"id": "call-1", "name": "wait", "arguments": _WAIT_ARGUMENTS}],
}


def fork_idle(conn: psycopg.Connection, parents: list[AgentId], each: int, prefix: str) -> list[AgentId]:
    """Give each parent so many idle children without a prompt; return them."""
    made = conn.execute(_FORKS, {"parents": parents, "each": each, "prefix": prefix}).fetchall()
    conn.execute(_LOCKED, {"parents": parents, "made": len(made)})
    return [AgentId(row[0]) for row in made]


def put_into_wait(conn: psycopg.Connection, agents: list[AgentId]) -> None:
    """Let idle children that were never given anything be inside a wait for anyone, for a day, owned by nobody."""
    values = {
        "ids": agents,
        "prompt": _PROMPT,
        "answer": Jsonb(_ANSWERED),
        "arguments": _WAIT_ARGUMENTS,
    }
    with conn.transaction():
        for statement in (_MAIL, _ANSWER, _CALL, _BOOKED, _BOOKINGS, _WAIT, _RUNS):
            conn.execute(statement, values)


def fork_running(conn: psycopg.Connection, parents: list[AgentId], each: int, prefix: str) -> list[AgentId]:
    """Give each parent so many children that others can wait for: external, running, run by no worker."""
    made = fork_idle(conn, parents, each, prefix)
    conn.execute(
        "update agentmesh.agents set external = true, status = 'running', turn = 1, started_turn = 1"
        " where id = any (%s)",
        [made],
    )
    return made
