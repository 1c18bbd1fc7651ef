"""Which files an agent must not read, for words that it is sent about files."""

from __future__ import annotations

from collections.abc import Callable

from agentmesh.domain.ids import AgentId
from agentmesh.domain.permissions import Permissions
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.withheld import withheld
from agentmesh.store import forms, workspaces
from agentmesh.store.tx import Database


def unreadable(database: Database, agent: AgentId) -> Callable[[str], bool] | None:
    """Return a function that says whether rules keep an agent from reading a file; None if no rule can.

    What a rule asks about counts too: nobody is asked before mail is sent.
    """
    rules, allowance = database.run(forms.rights, agent, idempotent=True)
    session = database.run(workspaces.of_agent, agent, idempotent=True).session_id
    shared = database.run(workspaces.of_session, session, idempotent=True)
    return withheld(
        Permissions.from_json(rules),
        "read",
        asked=allowance.mode is not PermissionMode.ALL,
        session=Permissions.from_json([allowance.allowed]).layers[0],
        root=str(shared.path),
    )
