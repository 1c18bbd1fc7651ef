"""A session in a Git repository."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.llm.simulator.reply import ScriptedCall
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.engine import Reply, Rig, call, do, say, session_in
from tests.fixtures.repositories import repository
from tests.fixtures.worker_process import HOST, USER


@pytest.fixture
def grove(database_url: str, conn: psycopg.Connection, tmp_path: Path) -> Iterator[Rig]:
    """A session in a repository with changes."""
    with session_in(repository(tmp_path / "repo"), database_url, conn) as made:
        yield made


@pytest.fixture
def below(database_url: str, conn: psycopg.Connection, tmp_path: Path) -> Iterator[Rig]:
    """A session in a folder of a repository."""
    with session_in(repository(tmp_path / "repo") / "src", database_url, conn) as made:
        made.data_dir = tmp_path / "data"  # beside the directory it would be in the repository
        yield made


def here(rig: Rig) -> Workspaces:
    """Return the workspaces of a person's process."""
    return Workspaces(rig.db, rig.data_dir, host=HOST, os_user=USER)


def tree_of(rig: Rig, agent: str) -> Path:
    """Return the directory in which an agent works."""
    query = "select path from agentmesh.workspaces w join agentmesh.agents a on a.workspace_id = w.id where a.id = %s"
    return Path(rig.one(query, rig.agent(agent)))


def own(name: str, prompt: str = "work") -> ScriptedCall:
    """Return a call that forks a child with its own tree."""
    return call("fork", name=name, prompt=prompt, workspace="own")


def edit(path: str, content: str) -> ScriptedCall:
    """Return a call that writes a file, whether or not the agent has seen it."""
    quoted = shlex.quote(content)
    return call("bash", command=f"mkdir -p $(dirname {path}) && printf %s {quoted} > {path}")


def idle(rig: Rig, *names: str) -> Callable[[], bool]:
    """Return whether these agents rest."""
    return lambda: all(rig.status(name) == "idle" for name in names)


def with_child(rig: Rig, *calls: ScriptedCall, then: Sequence[Reply] = (), name: str = "child", **worker: Any) -> None:
    """Let the root fork a child with its own tree, which makes these calls; ``then`` are the root's further answers."""
    rig.script("root", do(own(name)), say("forked"), say("heard"), *then)
    rig.script(name, *(do(one) for one in calls), say("changed"))
    rig.worker(**worker)
    rig.run()
    rig.until_asked("root", 3)  # the child's report wakes it
    rig.rest()
