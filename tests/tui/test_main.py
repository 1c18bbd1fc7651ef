from __future__ import annotations

import logging
import os
import threading
import tty
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from agentmesh.config.schema import Tui
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import NoModel, UnknownSession, UsageError
from agentmesh.domain.ids import short
from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store import agents, mailbox, sessions
from agentmesh.store.board import Left
from agentmesh.store.tx import Database
from agentmesh.tui.commands.closing import close, line
from agentmesh.tui.main import _forget_typed, _logging_to, choose, main
from agentmesh.tui.session.first_start import welcome
from tests.tui.posted import mesh_of


@pytest.fixture
def mesh(db: Database, tmp_path):
    return mesh_of(db, tmp_path)


def test_without_a_configured_model_a_script_plays_it(mesh, tmp_path):
    session, is_scripted = choose(mesh, tmp_path)
    assert is_scripted
    assert mesh.database.run(agents.get, session.root_id).model == "demo/demo"


def test_a_model_that_is_asked_for_is_never_replaced_by_the_script(mesh, tmp_path):
    with pytest.raises(NoModel):
        choose(mesh, tmp_path, model="gpt-x")
    session, is_scripted = choose(mesh, tmp_path, model="demo", mode=PermissionMode.PLAN)
    assert not is_scripted
    assert session.permission_mode is PermissionMode.PLAN


def test_going_on_shows_the_newest_of_the_directory_or_the_one_named(mesh, tmp_path):
    with pytest.raises(UnknownSession):
        choose(mesh, tmp_path, go_on=True)
    first, _ = choose(mesh, tmp_path)
    second, _ = choose(mesh, tmp_path)
    assert choose(mesh, tmp_path, go_on=True)[0].id == second.id
    assert choose(mesh, tmp_path, resume=short(first.id), mode=PermissionMode.EDITS)[0].id == first.id
    assert mesh.database.run(sessions.get, first.id).permission_mode is PermissionMode.EDITS
    assert choose(mesh, tmp_path / "elsewhere", pick=True)[0].id == second.id, "the one that the list is shown over"
    with pytest.raises(UsageError, match="--model"):
        choose(mesh, tmp_path, go_on=True, model="demo")


def test_17_8_an_empty_id_opens_no_session(mesh, tmp_path):
    choose(mesh, tmp_path)
    with pytest.raises(UsageError, match="is empty"):
        choose(mesh, tmp_path, resume="")


def test_it_needs_a_terminal(tmp_path):
    with pytest.raises(UsageError, match="terminal"):
        main(Settings(tmp_path, {}, frozenset()), tmp_path)


def test_the_first_start_explains_itself_in_three_lines():
    lines = welcome("F1").splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) < 79
    assert "script" in lines[0]
    assert "agentmesh setup" in lines[1]
    assert "F1" in lines[2]


def test_a_session_in_which_nothing_happened_leaves_no_trace(mesh, tmp_path):
    session, _ = choose(mesh, tmp_path)
    assert close(mesh, session) == ""
    with pytest.raises(UnknownSession):
        mesh.database.run(sessions.get, session.id)
    said = f"there is no session {session.id}: agentmesh sessions lists them."
    assert close(mesh, session) == said, "closed twice it says so, and nothing of agents that go on"


def test_closing_says_who_goes_on_what_that_may_cost_and_how_to_stop_it(mesh, tmp_path):
    session, _ = choose(mesh, tmp_path)
    mesh.database.run(mailbox.send, None, session.root_id, "work")
    assert close(mesh, session) == (
        "1 agent goes on in the background, and may spend $10.00 and 20.0M tokens more. "
        "Back: agentmesh -c   Stop: agentmesh interrupt --all"
    )
    assert mesh.database.run(agents.get, session.root_id).status is AgentStatus.RUNNING


def test_a_session_whose_directory_is_gone_is_named(mesh, tmp_path):
    workdir = tmp_path / "work"
    workdir.mkdir()
    session, _ = choose(mesh, workdir)
    mesh.database.run(mailbox.send, None, session.root_id, "work")
    workdir.rmdir()
    assert f"Back: agentmesh --resume {short(session.id)}   Stop: agentmesh interrupt --all --session" in close(
        mesh, session
    )


def test_an_older_session_is_named():
    session = sessions_row()
    left = Left(2, None, Decimal(-1), False)
    assert line(left, session, newest=False) == (
        "2 agents go on in the background, and may spend $0.00 more. "
        "Back: agentmesh --resume 00000000   Stop: agentmesh interrupt --all --session 00000000"
    )
    assert line(Left(0, 1, None, False), session, newest=True) == "Go on with: agentmesh -c"


def sessions_row():
    from tests.tui.faces import board

    return board().session


def test_a_setting_interrupts_them_instead(db: Database, tmp_path):
    mesh = mesh_of(db, tmp_path)
    session, _ = choose(mesh, tmp_path)
    mesh.database.run(mailbox.send, None, session.root_id, "work")
    settings = Settings(tmp_path, {}, frozenset(), database_url=db.url, tui=Tui(on_exit="interrupt"))
    mesh.settings = settings
    assert close(mesh, session) == "Interrupted root."
    assert db.run(agents.get, session.root_id).status is AgentStatus.IDLE


def test_a_log_that_cannot_be_written_costs_nothing_when_the_screen_is_left(capsys):
    with _logging_to(Path("/dev/full")):
        logging.getLogger("agentmesh.tui").warning("lost")
    assert capsys.readouterr().err == ""


def test_a_screen_that_failed_ends_though_somebody_types_on_or_the_terminal_is_gone(monkeypatch):
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    over = threading.Event()

    def hold_a_key() -> None:
        while not over.is_set():
            with suppress(BlockingIOError):
                os.write(master, b"x")

    with open(slave) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        monkeypatch.setattr("agentmesh.tui.main._LONGEST_PASTE", 0.3)
        typing = threading.Thread(target=hold_a_key)
        typing.start()
        try:
            _forget_typed()
        finally:
            over.set()
            typing.join()
        os.close(master)
        _forget_typed()
