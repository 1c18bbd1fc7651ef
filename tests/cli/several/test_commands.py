"""Every command that takes an agent or a session finds the database that has it, by id, by beginning and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import click
import psycopg
import pytest

from agentmesh.cli.commands import cli
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents
from tests.cli.conftest import CommandLine
from tests.cli.several.conftest import begin, mail_of, served

pytestmark = pytest.mark.timeout(300)  # each runs a command in several ways

OF_AN_AGENT = {
    "background": "{agent}",
    "blame": "nothing.txt --agent {agent}",
    "budget": "{agent}",
    "context": "{agent}",
    "diff": "{agent}",
    "fork": "other --parent {agent}",
    "fork --at": "{agent}:0 --name other",
    "interrupt": "{agent}",
    "kill": "{agent}",
    "log": "{agent}",
    "mail": "{agent}",
    "merge": "{agent}",
    "reap": "{agent}",
    "redo": "{agent}",
    "rename": "{agent} other",
    "retry": "{agent}",
    "rewind": "{agent}:0 --yes",
    "search": "words --agent {agent}",
    "send": "{agent} hello",
    "timeline": "--agent {agent}",
    "undo": "{agent} --yes",
    "wait": "{agent}",
    "wait --as": "{agent} {agent}",
}
"""Commands and their arguments; the agent is there in one database only."""
OF_A_SESSION = {
    "answer": "",
    "board": "",
    "cost": "",
    "export": "--format jsonl",
    "limits": "",
    "processes": "",
    "ps": "",
    "timers": "",
    "todo": "",
    "tree": "",
}
BY_ARGUMENT = {
    "sessions pin": "{session}",
    "sessions unpin": "{session}",
    "sessions end": "{session} --yes",
    "sessions delete": "{session} --yes",
}
"""They have no option --session."""
ELSEWHERE = {
    "mcp": "tests/mcp/test_several_databases.py",
    "run": "test_a_run_goes_on_where_its_session_is",
    "sessions move": "tests/cli/several/test_move.py",
    "serve": "test_a_screen_in_a_browser_shows_the_session_of_its_database",
    "worker": "test_a_worker_of_one_session_is_in_its_database",
}
NO_SUCH = ("there is no agent", "there is no session", "is ambiguous", "fits ")


class Place:
    """A directory whose newest session is in b, and an older one with the agent ``child`` in a."""

    def __init__(self, am: CommandLine, urls: dict[str, str]) -> None:
        self.am, self.urls = am, urls
        self.session, self.root = begin(urls["a"], am.folder, "the older one")
        with psycopg.connect(urls["a"], autocommit=True) as conn:
            self.child = str(agents.fork(conn, AgentId(UUID(self.root)), "child", None))
        self.newest, _ = begin(urls["b"], am.folder, "the newest")
        for url in urls.values():
            served(url)

    def finds(self, *args: str) -> None:
        """Run a command, which finds what it names."""
        done = self.am(*args)
        assert not any(words in done.err for words in NO_SUCH), f"{args}: {done.err}"
        assert "Traceback" not in done.err, done.err
        assert done.code in (0, 1) or "where child works" in done.err, f"{args}: {done.err}"
        assert self.newest not in done.out


@pytest.fixture
def place(am: CommandLine, urls: dict[str, str]) -> Place:
    return Place(am, urls)


@pytest.mark.parametrize("command", OF_AN_AGENT)
def test_an_agent_is_found_in_whichever_database_it_is(place: Place, command: str):
    for who, more in (
        ("child", ("--session", place.session[:8])),
        (place.child[:9], ()),  # with its hyphen: eight digits alone could be an amount
    ):
        place.finds(*command.split(), *OF_AN_AGENT[command].format(agent=who).split(), *more)


@pytest.mark.parametrize("command", OF_A_SESSION)
def test_a_session_is_found_in_whichever_database_it_is(place: Place, command: str):
    for given in (place.session[:8], place.session):
        done = place.am(command, *OF_A_SESSION[command].split(), "--session", given)
        assert done.code == 0, done.err
        assert place.newest not in done.out


@pytest.mark.parametrize("command", BY_ARGUMENT)
def test_a_session_that_is_an_argument_is_found_in_whichever_database_it_is(place: Place, command: str):
    if command == "sessions delete":
        assert place.am("sessions", "end", place.session, "--yes").code == 0
    done = place.am(*command.split(), *BY_ARGUMENT[command].format(session=place.session[:8]).split())
    assert done.code == 0, done.err
    with psycopg.connect(place.urls["b"]) as conn:
        assert conn.execute("select from agentmesh.sessions where ended_at is null and not pinned").rowcount == 1


def test_every_command_about_a_session_is_tried():
    def paths(group: Any, before: str = "") -> Iterator[str]:
        for name in group.list_commands(click.Context(group)):
            below = group.get_command(click.Context(group), name)
            if hasattr(below, "list_commands"):
                yield from paths(below, f"{before}{name} ")
            elif any("--session" in one.opts or one.name == "session_id" for one in below.params):
                yield before + name

    tried = {*OF_AN_AGENT, *OF_A_SESSION, *BY_ARGUMENT, *ELSEWHERE} - {"fork --at", "wait --as"}
    assert tried == set(paths(cli))


def test_what_several_agents_of_one_message_are_is_asked_of_one_database(place: Place):
    _, other = begin(place.urls["b"], place.am.folder)
    done = place.am("send", f"{place.child},{other}", "hello")
    assert done.code == 1
    assert f"there is no agent {other!r}" in done.err
    assert mail_of(place.urls["a"], place.child) == mail_of(place.urls["b"], other) == []
    done = place.am("wait", place.child, other)
    assert done.code == 1
    assert f"there is no agent {other!r}" in done.err


def test_a_run_goes_on_where_its_session_is(place: Place):
    done = place.am("run", "--resume", place.session[:8], "say hello")
    assert done.code == 0, done.err
    assert mail_of(place.urls["a"], place.root) == ["say hello"]
