"""Answers and /permissions on a real database, and what the feed tells of requests."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.permissions import Decision, Permissions, Rule, intersect
from agentmesh.domain.states import PermissionMode
from agentmesh.store import requests, sessions
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import ANSWER, Call, Done, Failed
from agentmesh.tui.requests.dialog import RequestDialog
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session.feed import Feed
from agentmesh.tui.session.messages import BoardChanged, RequestSettled
from agentmesh.tui.session.schema_watch import SchemaWatch
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import play, real, shown
from tests.tui.posted import Posted, mesh_of
from tests.tui.test_actions import Person

RULES = [{"effect": "allow", "tool": "bash", "pattern": "git push *"}]


@pytest.fixture
def me(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    one = Person(mesh, db, tmp_path)
    yield one
    one.actions.stop()


def asked(mesh: Mesh, name: str = "scout", kind: str = "approval") -> UUID:
    """Let a child ask."""
    request = mesh.ask(mesh.fork(mesh.root, name, "work"), kind)
    mesh.conn.execute(
        "update agentmesh.requests set rules = %s, arguments = %s where id = %s",
        [Jsonb(RULES), Jsonb({"command": "git push"}), request],
    )
    return request


def answers(me: Person, request: UUID, **words: str) -> Done | Failed:
    outcome: Done | Failed = me.does(Call(ANSWER, (str(request), json.dumps(words))))
    return outcome


def state(mesh: Mesh, request: UUID) -> tuple[str, object]:
    now = mesh.run(requests.resolve, str(request))
    return now.state, now.answer


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"decision": "once"}, "Allowed bash for scout, once."),
        ({"decision": "no", "reason": "x"}, "Refused bash for scout."),
        ({"decision": "always"}, "Allowed from now on, in this session: bash(git push *)."),
    ],
)
def test_an_answer_is_stored_with_who_gave_it(mesh: Mesh, me: Person, words, told):
    request = asked(mesh)
    done = answers(me, request, **words)
    assert isinstance(done, Done)
    assert done.text.startswith(told)
    assert state(mesh, request) == ("answered", words)
    assert str(mesh.run(requests.resolve, str(request)).answered_by).endswith("(terminal UI)")


def test_a_question_is_answered_in_words(mesh: Mesh, me: Person):
    request = asked(mesh, kind="question")
    assert answers(me, request, text="blue") == Done("Answered scout.")
    assert state(mesh, request) == ("answered", {"text": "blue"})


def test_who_comes_too_late_is_told_by_whom_it_was_answered(mesh: Mesh, me: Person):
    request = asked(mesh)
    mesh.run(requests.answer, request, {"decision": "no"}, "ada")
    late = answers(me, request, decision="once")
    assert isinstance(late, Failed)
    assert "ada has answered" in late.text
    assert state(mesh, request) == ("answered", {"decision": "no"})


def test_an_answer_whose_commit_was_in_doubt_is_no_failure(mesh: Mesh, me: Person):
    request = asked(mesh)
    assert isinstance(answers(me, request, decision="once"), Done)
    assert isinstance(answers(me, request, decision="once"), Done)
    assert isinstance(answers(me, request, decision="no"), Failed)


def test_permissions_shows_mode_layers_and_rules_and_takes_them_back(mesh: Mesh, me: Person):
    rules = intersect(Permissions.of([Rule(Decision.DENY, "read", "*.pem")]), [Rule(Decision.ALLOW, "bash", "ls *")])
    mesh.conn.execute("update agentmesh.agents set permissions = %s", [Jsonb(rules.to_json())])
    for name in ("scout", "other"):
        assert isinstance(answers(me, asked(mesh, name), decision="always"), Done)
    text = me.types("/permissions").text
    assert text.splitlines()[0].startswith("Mode ask")
    assert "Rules of root:\n  of the configuration:\n    deny   read(*.pem)\n" in text
    assert "which only restrict (1):\n    allow  bash(ls *)\n" in text
    assert "\n  1  bash(git push *)\n" in text
    wrong = me.types("/permissions forget 7")
    assert isinstance(wrong, Failed)
    assert wrong.text == "Nothing has the number 7."
    assert me.types("/permissions forget 1") == Done("Forgot 1 rule.")
    assert me.types("/permissions forget all") == Done("Nothing was always allowed.")
    assert isinstance(me.types("/permissions remember"), Failed)
    assert mesh.run(requests.rules, mesh.session) == []


def test_who_writes_is_there_to_answer(mesh: Mesh, me: Person):
    mesh.run(requests.set_attended, mesh.session, False)
    me.types("hello")
    assert mesh.one("select attended from agentmesh.sessions where id = %s", mesh.session) is True


def test_the_feed_tells_what_is_asked_and_by_whom_it_was_answered(mesh: Mesh, db: Database, tmp_path):
    mesh.run(requests.set_attended, mesh.session, False)
    posted = Posted()
    feed = Feed(mesh_of(db, tmp_path), db.run(sessions.get, mesh.session), posted, SchemaWatch(db))
    feed.start()
    try:
        posted.next(BoardChanged)
        first = asked(mesh)
        board = posted.next(BoardChanged, lambda message: bool(message.board.requests)).board
        assert [(one.id, one.name, one.path) for one in board.requests] == [(first, "scout", "root/scout")]
        assert mesh.one("select attended from agentmesh.sessions where id = %s", mesh.session) is True
        mesh.run(requests.answer, first, {"decision": "no"}, "ada")
        settled = posted.next(RequestSettled).request
        assert (settled.id, settled.answered_by, settled.answer) == (first, "ada", {"decision": "no"})
        second = asked(mesh, "other")
        posted.next(BoardChanged, lambda message: bool(message.board.requests))
        mesh.kill(mesh.one("select agent_id from agentmesh.requests where id = %s", second))
        assert posted.next(RequestSettled).request.state == "cancelled"
    finally:
        feed.stop()


def test_a_whole_screen_asks_answers_and_hears_of_the_mode(mesh: Mesh, db: Database, tmp_path, monkeypatch):
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 0.0)
    monkeypatch.setattr("agentmesh.tui.input.quiet_input.QUIET", 0.0)
    first, second = asked(mesh), asked(mesh, "other")

    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path)) as show:
            await show.sees("scout asks: may it use bash?", "git push", "1 of 2", "Esc later")
            await show.press("n")
            await show.sees("Why not? The agent reads it.")
            await show.press(*"no", "enter")
            await show.sees("other asks: may it use bash?", "Refused bash for scout.")
            await show.until(lambda: state(mesh, first)[0] == "answered")
            await show.until(lambda: isinstance(show.app.screen, RequestDialog) and show.app.screen.takes_keys)
            mesh.run(sessions.set_mode, mesh.session, PermissionMode.ALL)
            mesh.run(requests.answer, second, {"decision": "once"}, "a rule or the mode")
            await show.until(lambda: isinstance(show.app.screen, MainScreen))
            await show.sees("other (bash) was answered by a rule or the mode: once")

    play(scene())
    assert state(mesh, first) == ("answered", {"decision": "no", "reason": "no"})
