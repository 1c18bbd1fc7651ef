"""``agentmesh log``: an agent's conversation."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.errors import DatabaseUnreachable, UnknownAgent
from agentmesh.domain.ids import SessionId, short
from agentmesh.domain.rows import Ref, Row
from agentmesh.domain.states import AgentStatus, Kind

if TYPE_CHECKING:
    from rich.text import Text

    from agentmesh.app import Mesh
    from agentmesh.store.tasks import GivenTask

_STDOUT = 1
_TICK = 2.0
"""Seconds between two looks at the agent if no notification arrives."""

Show = Callable[[Row, str], None]
"""Shows one row of the agent with that name."""
TellTask = Callable[["GivenTask"], None]
"""Shows which sub-agent works on a task call."""


@click.command()
@click.argument("agent", type=NAMED)
@click.option("-f", "--follow", is_flag=True, help="Keep showing new rows, until Ctrl+C or the agent's death.")
@click.option("--inherited", is_flag=True, help="Include what the agent inherited when it was forked.")
@click.option("--full", is_flag=True, help="Whole tool results, and the model's reasoning.")
@click.option("--rows", is_flag=True, help="Show the number of each row, for `agentmesh fork --at`.")
@json_option
@place_options()
def log(
    agent: str, *, follow: bool, inherited: bool, full: bool, rows: bool, as_json: bool, place: PlaceOptions
) -> None:
    """Show the conversation of AGENT: a name, an id, or the first 4 or more digits of one.

    With --json, each row is printed as stored; the result of a wait also has `mail`, the messages that the wait took.
    """
    show, tell_task = (_show_json, None) if as_json else _shower(full, numbered=rows)
    with place.mesh("log", who=[agent]) as mesh:
        ref, session = find_agent(mesh, place, agent)
        if not as_json:
            say(f"{ref.name} ({short(ref.id)}) in session {short(session.id)}")
        if inherited:
            _show_inherited(mesh, ref, session.id, show)
        reading = _LogReader(mesh, ref, show, tell_task)
        if follow:
            _follow(mesh, ref, session.id, reading)
        else:
            reading.show_new()


class _LogReader:
    """The part of one agent's conversation that was shown."""

    def __init__(self, mesh: Mesh, ref: Ref, show: Show, tell_task: TellTask | None) -> None:
        from agentmesh.app.cursors import Cursors

        self._database = mesh.database
        self._ref, self._show, self._tell_task = ref, show, tell_task
        self._cursors = Cursors(mesh.database)
        self._step = 0
        """The newest step, if it asked for tasks: their sub-agents become known later than its row."""
        self._shown: set[int] = set()

    def show_new(self) -> None:
        """Show the rows since the last call, and the sub-agents of the tasks that they ask for."""
        self._tell_tasks()
        for row in self._cursors.new(self._ref.id):
            self._show(row, self._ref.name)
            if row.kind == Kind.ASSISTANT:
                gives = any(call.get("name") == "task" for call in row.content.get("calls") or [])
                self._step, self._shown = row.seq if gives else 0, set()
                self._tell_tasks()

    def _tell_tasks(self) -> None:
        from agentmesh.store import tasks

        if self._tell_task is None or not self._step:
            return
        for task in self._database.run(tasks.given, self._ref.id, self._step, idempotent=True):
            if task.ordinal not in self._shown:
                self._shown.add(task.ordinal)
                self._tell_task(task)


def _follow(mesh: Mesh, ref: Ref, session: SessionId, reading: _LogReader) -> None:
    from agentmesh.api.changes import Changes
    from agentmesh.store import agents, sessions

    with Changes(mesh, [session]) as wakes:
        while True:
            try:
                # Read the state first: a dead agent gets no rows after that.
                dead = mesh.database.run(agents.get, ref.id, idempotent=True).status == AgentStatus.DEAD
                reading.show_new()
            except DatabaseUnreachable as error:
                wakes.endure(error)
                continue
            except UnknownAgent:
                mesh.database.run(sessions.require_still, session, idempotent=True)
                raise
            if dead:
                return
            while (heard := wakes.wait(_TICK)) and ref.id not in heard:
                _require_reader()  # it was about other agents
            _require_reader()


def _require_reader() -> None:
    """Raise BrokenPipeError if nobody reads the output any more: the next row, which would show it, may never come."""
    looking = select.poll()
    looking.register(_STDOUT, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in looking.poll(0)):
        raise BrokenPipeError


def _show_inherited(mesh: Mesh, ref: Ref, session: SessionId, show: Show) -> None:
    from agentmesh.store import agents, transcript

    names = {agent.id: agent.name for agent in mesh.database.run(agents.view, session, idempotent=True)}
    for row in mesh.database.run(transcript.inherited, ref.id, idempotent=True):
        show(row, names.get(row.agent_id, short(row.agent_id)))


def _show_json(row: Row, name: str) -> None:
    taken = {"mail": [mail.json() for mail in row.mail]} if row.mail else {}
    stored = {"seq": row.seq, "kind": row.kind, "content": row.content, "created_at": row.created_at}
    emit({"agent_id": row.agent_id, "name": name, **stored, **taken})


def _shower(full: bool, *, numbered: bool) -> tuple[Show, TellTask]:
    from agentmesh.cli.render.conversation import row_text, task_text
    from agentmesh.cli.render.screen import console

    out = console()

    def tell(text: Text | None) -> None:
        if text is not None:
            out.print(text, soft_wrap=not out.is_terminal)
            out.file.flush()

    def show(row: Row, name: str) -> None:
        text = row_text(row, name, full=full)
        if numbered and text is not None:
            out.print(f"{name}:{row.seq}", style="dim")
        tell(text)

    return show, lambda task: tell(task_text(task))
