"""The command line with two databases, ``a`` and ``b``, and what puts sessions into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.app import HostAndUser
from agentmesh.store import agents, sessions
from tests.cli.conftest import CommandLine


@pytest.fixture
def urls(new_database: Any, template: str) -> Iterator[dict[str, str]]:
    with new_database(template) as a, new_database(template) as b:
        yield {"a": a, "b": b}


@pytest.fixture
def am(tmp_path: Path, urls: dict[str, str]) -> CommandLine:
    """``am(...)`` runs a command with both databases configured."""
    made = CommandLine(tmp_path / "work", AGENTMESH_DATA_DIR=str(tmp_path / "data"))
    configure(made, urls)
    return made


def configure(am: CommandLine, urls: dict[str, str], **more: str) -> None:
    am.configure("".join(f"[databases.{name}]\nurl = '{url}'\n{more.get(name, '')}\n" for name, url in urls.items()))


def begin(url: str, workdir: Path, title: str = "") -> tuple[str, str]:
    """Begin a session of the command line's directory; return its id and its root's."""
    here = HostAndUser.here()
    new = sessions.NewSession(str(workdir), here.host, here.os_user, "demo/demo", "You are an agent.", [], title=title)
    with psycopg.connect(url, autocommit=True) as conn:
        root = sessions.start_session(conn, new)
        return str(agents.get(conn, root).session_id), str(root)


def served(url: str) -> None:
    """Let a worker seem to serve the database for ever, so that no command starts one."""
    here = HostAndUser.here()
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(
            "insert into agentmesh.workers (host, os_user, pid, serves_any, providers, concurrency, backend_pid,"
            " seen_at) values (%s, %s, %s, true, '{demo}', 1, 1, now() + interval '1 hour')",
            [here.host, here.os_user, 2**31 - 1],
        )


def mail_of(url: str, root: str) -> list[str]:
    with psycopg.connect(url) as conn:
        return [
            row[0] for row in conn.execute("select body from agentmesh.mail where recipient = %s order by id", [root])
        ]
