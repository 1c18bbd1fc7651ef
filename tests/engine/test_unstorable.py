"""Arguments of verbs that PostgreSQL cannot hold, given by a model: each call is answered, and the turn goes on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.worker_process import PROVIDER

NUL, LARGE = "a\0\ud800", 2**70
MODEL = f"{PROVIDER}/{NUL}"
FORK = {"name": "child", "prompt": "go"}
TASK = {"description": "look", "prompt": "[sub] go"}
SEND = {"to": "helper", "message": "hello"}


@pytest.mark.parametrize(
    ("tool", "calls"),
    {
        "fork": [
            *({**FORK, key: NUL} for key in ("name", "prompt", "context", "type", "effort", "check")),
            {**FORK, "model": MODEL},
            {**FORK, "tools": [NUL]},
            {**FORK, "schema": {NUL: NUL}},
            {**FORK, "type": "explore", "model": MODEL},
        ],
        "task": [
            {**TASK, "prompt": f"[sub] {NUL}"},
            *({**TASK, key: NUL} for key in ("description", "subagent_type", "system_prompt")),
            {**TASK, "model": MODEL},
            *({**TASK, key: NUL} for key in ("check", "agent_id")),
            {**TASK, "tools": [NUL]},
            {**TASK, "prompt": "[sub] {item}", "items": [NUL]},
            {**TASK, "max_steps": LARGE},
        ],
        "send": [
            *({**SEND, key: NUL} for key in ("to", "message", "at", "cron")),
            {**SEND, "to": ["helper", NUL]},
            {**SEND, "message": NUL, "after": 60},
            {**SEND, "after": 1e300},
            {**SEND, "every": 1e300},
            {**SEND, "reply_to": LARGE},
        ],
        "todo": [
            {"action": "add", "content": NUL},
            {"action": "add", "content": "build", "after": [LARGE]},
            {"action": "claim", "id": LARGE},
            {"action": "done", "id": 1, "note": NUL},
        ],
        "wait": [{"from_agents": [NUL], "timeout": 1}],
        "interrupt": [{"agent_id": NUL}],
        "kill": [{"agent_id": NUL}],
        "merge": [{"agent": NUL}, {"agent": "helper", "check": NUL}],
    }.items(),
)
def test_the_turn_goes_on(rig: Rig, tool: str, calls: list[dict[str, Any]]):
    rig.fork("helper")
    rig.script("root", *(do(call(tool, **arguments)) for arguments in calls), say("went on"))
    rig.worker()
    rig.prompt()
    rig.rest()
    assert rig.last()[1] is None
    assert len(rig.results(tool)) == len(calls)
