"""``run -c`` and ``run --resume`` without a prompt: what is unfinished goes on, and nothing else."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import person, sessions, steps
from tests.fixtures.engine import until


@dataclass
class Model:
    """A scripted model whose next answers a test chooses."""

    replies: list[ScriptedReply] = field(default_factory=list)
    asked: int = 0

    def __call__(self, _view: object) -> ScriptedReply:
        self.asked += 1
        return self.replies.pop(0) if self.replies else ScriptedReply("All done.")


@pytest.fixture
def model(am) -> Iterator[Model]:
    """The model of this directory's sessions."""
    made = Model()
    with Simulator(made) as server:
        am.environ |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k", "AGENTMESH_MODEL": "openai/scripted"}
        yield made


REFUSED = ScriptedReply("", fault=Fault(FaultKind.STATUS, status=418, body=""))


@pytest.mark.parametrize("how", ["-c", "--resume"])
def test_a_turn_that_failed_is_run_again_without_a_new_message(am, mesh, model, how):
    model.replies = [REFUSED]
    failed = am("run", "--json", "Think.")
    assert failed.code == 1
    assert failed.events[-1]["hint"] == "Check base_url: for most servers it ends in /v1.", "the server said nothing"
    which = [how] if how == "-c" else [how, failed.events[0]["session_id"][:8]]
    again = am("run", *which, stdin=None)
    assert (again.code, again.out) == (0, "All done.\n"), again.err
    assert mesh.column("select body from agentmesh.mail") == ["Think."]
    assert model.asked == 2


def test_a_run_whose_session_is_deleted_says_so(am, mesh, model):
    model.replies = [ScriptedReply("late", first_byte_delay=60)]
    with am.start("run", "Think.") as process:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        until(lambda: model.asked == 1, "the model to be asked")
        [session] = mesh.column("select id from agentmesh.sessions where title = 'Think.'")
        with mesh.conn.transaction():  # at once, so that the run sees no dead agent first
            mesh.run(sessions.end_session, session)
            mesh.run(sessions.delete_session, session)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"agentmesh: the session {session} was deleted" in err.decode().splitlines()


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, "idle"), (signal.SIGKILL, "running")])
def test_a_turn_that_was_interrupted_or_lost_its_worker_goes_on(am, mesh, model, how, status):
    model.replies = [ScriptedReply("late", first_byte_delay=60)]
    with am.start("run", "Think.") as process:
        assert process.stdin is not None
        process.stdin.close()
        until(lambda: model.asked == 1, "the model to be asked")
        process.send_signal(how)
        process.wait()
    assert mesh.column("select a.status from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id") == [
        status
    ]
    again = am("run", "-c", stdin=None)
    assert (again.code, again.out) == (0, "All done.\n"), again.err
    assert mesh.column("select body from agentmesh.mail") == ["Think."]


def refuse(mesh, event, table, errcode, message):
    """Let the database refuse every such change of a table."""
    words = f"raise exception '{message}' using errcode = '{errcode}'"
    mesh.conn.execute(f"create function public.no_{table}() returns trigger language plpgsql as $$begin {words}; end$$")
    mesh.conn.execute(f"create trigger refuse before {event} on agentmesh.{table} execute function public.no_{table}()")


def test_a_run_that_has_no_worker_leaves_nothing_for_another(am, mesh, model):
    """A script that repeats the command would otherwise pay twice."""
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    failed = am("run", "Think.", stdin=None)
    assert (failed.code, failed.out) == (1, "")
    assert "has no connection free" in failed.err
    assert "Nothing was run, and no other worker will run it." in failed.err
    session = mesh.one("select id from agentmesh.sessions where title = 'Think.'")
    assert mesh.one("select status from agentmesh.agents where session_id = %s", session) == "idle"
    mesh.conn.execute("drop trigger refuse on agentmesh.workers")
    assert am("run", "-c", "Think again.", stdin=None).out == "All done.\n"
    assert mesh.column("select content ->> 'text' from agentmesh.transcript where kind = 'user'") == ["Think again."]
    assert model.asked == 1


def test_a_retry_that_has_no_worker_leaves_nothing_for_another(am, mesh, model):
    model.replies = [REFUSED]
    assert am("run", "Think.", stdin=None).code == 1
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    assert am("run", "-c", stdin=None).code == 1
    session = mesh.one("select id from agentmesh.sessions where title = 'Think.'")
    assert mesh.one("select status from agentmesh.agents where session_id = %s", session) == "idle"
    mesh.conn.execute("drop trigger refuse on agentmesh.workers")
    assert am("run", "-c", stdin=None).out == "All done.\n"


def test_a_run_without_a_worker_leaves_a_root_that_worked_before(am, mesh, here):
    mesh.send(None, here, "begun before")
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    assert "no other worker will run it" in am("run", "-c", "Think.", stdin=None).err
    assert mesh.one("select status from agentmesh.agents where id = %s", here) == "running"
    assert mesh.column("select body from agentmesh.mail where withdrawn_at is null") == ["begun before"]


def test_a_run_without_a_prompt_leaves_what_others_have_begun(am, mesh, here):
    child = mesh.fork(here, "child")
    mesh.send(None, child, "begun before")
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    below = am("run", "-c", stdin=None)
    mesh.send(None, here, "begun before")
    root = am("run", "-c", stdin=None)
    for done in (below, root):
        assert (done.code, done.out) == (1, "")
        assert "has no connection free" in done.err
        assert "Nothing was run" not in done.err
    marks = "select status, interrupt_turn from agentmesh.agents where session_id = %s"
    assert mesh.conn.execute(marks, [mesh.session_of(here)]).fetchall() == [("running", None)] * 2


def test_a_run_without_a_worker_leaves_the_turn_of_somebody_elses_message(am, mesh, here):
    theirs = "insert into agentmesh.mail (session_id, recipient, body) values (new.session_id, new.recipient, 'theirs')"
    mesh.conn.execute(
        f"create function public.another() returns trigger language plpgsql as $$begin {theirs}; return new; end$$;"
        "create trigger another after insert on agentmesh.mail for each row when (new.body = 'Think.')"
        " execute function public.another()"
    )
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    assert "no other worker will run it" in am("run", "-c", "Think.", stdin=None).err
    assert mesh.one("select status from agentmesh.agents where id = %s", here) == "running"
    assert mesh.unread(here) == ["theirs"]


def test_a_run_that_cannot_take_its_prompt_back_says_what_becomes_of_it(am, mesh, model):
    refuse(mesh, "insert", "workers", "53300", "sorry, too many clients already")
    refuse(mesh, "update of interrupt_turn", "agents", "42501", "no")
    failed = am("run", "Think.", stdin=None)
    session = str(mesh.one("select id from agentmesh.sessions where title = 'Think.'"))[:8]
    assert f"agentmesh: session {session} has the prompt, and another worker may run it" in failed.err
    assert f"This stops it: agentmesh interrupt --all --session {session}" in failed.err


def test_agents_below_that_failed_are_named_and_go_on_together(am, mesh, model):
    """The root does not end before them: what failed in an earlier run is named again by the next."""
    model.replies = [REFUSED]
    assert am("run", "Think.", stdin=None).code == 1
    root = mesh.one("select root_id from agentmesh.sessions where title = 'Think.'")
    servers = mesh.one("select endpoints from agentmesh.sessions where root_id = %s", root)
    mesh.worker = mesh.join(providers=("openai",), endpoints=servers, pid=2**31 - 1, serves_any=True)
    for name in ("a", "b"):
        mesh.run(steps.fail_turn, mesh.begin(mesh.fork(root, name)), {"error": "no answer"})
    session = str(mesh.session_of(root))[:8]
    again = am("run", "-c", stdin=None)
    assert (again.code, again.out) == (0, "All done.\n"), again.err
    assert (
        f"The last turn of 2 agents failed: a, b. Run again: agentmesh retry --all --session {session}\n" in again.err
    )
    nothing = am("run", "-c", stdin=None)
    assert nothing.code == 2
    assert f"What failed below it runs again by agentmesh retry --all --session {session}. Say what" in nothing.err
    for ref in mesh.run(person.failed, mesh.session_of(root)):
        mesh.run(person.retry, ref.id)
    gone_on = am("run", "-c", stdin=None)
    assert (gone_on.code, "failed" in gone_on.err) == (0, False), gone_on.err


def test_nothing_is_left_after_a_turn_that_ended_well(am, mesh, model):
    assert am("run", "Think.").code == 0
    again = am("run", "-c", stdin=None)
    assert (again.code, again.out) == (2, "")
    assert "Nothing is left to do in session" in again.err
    assert "the last turn of root" in again.err
    assert re.search(r'agentmesh run --resume [0-9a-f]{8} "prompt"', again.err)
    assert model.asked == 1
    assert len(mesh.column("select id from agentmesh.mail")) == 1


def test_an_empty_pipe_is_an_empty_prompt(am, model):
    model.replies = [REFUSED]
    assert am("run", "Think.").code == 1
    empty = am("run", "-c", stdin="")
    assert (empty.code, "The prompt is empty." in empty.err) == (2, True), "a program that failed wrote nothing"
    assert am("run", stdin=None).code == 2, "a new session has nothing to go on with"
    pictured = am("run", "-c", "--image", "missing.png", stdin=None)
    assert (pictured.code, "The prompt is empty." in pictured.err) == (2, True)
    assert model.asked == 1
