"""What commands do, against a real database; the worker that would run the agents is the test's."""

from __future__ import annotations

import os
from typing import Any

import pytest

from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store import agents, person, sessions, steps
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import END_SHELL, INTERRUPT_TREE, TAKE_BACK, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.commands.parse import parse
from agentmesh.tui.commands.run import CommandRunner
from tests.fixtures.mesh import Mesh
from tests.tui.posted import Posted, mesh_of


class Person:
    """Types inputs and returns what came of them."""

    def __init__(self, mesh: Mesh, database: Database, folder) -> None:
        self.mesh = mesh
        self.posted = Posted()
        self.in_view = mesh.root
        session = database.run(sessions.get, mesh.session)
        self.actions = CommandRunner(mesh_of(database, folder), session, self.posted)
        self.actions.start()

    def does(self, call: Call) -> Any:
        self.actions.submit(call, self.in_view)
        done = self.posted.next(ActionDone)
        assert done.call == call
        return done.outcome

    def types(self, text: str) -> Any:
        capturing = self.mesh.one("select agentmesh.open_capture(%s) is not null", self.in_view)
        call = parse(text, capturing=capturing)
        assert isinstance(call, Call), call
        return self.does(call)


@pytest.fixture
def me(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    mesh.conn.execute("update agentmesh.sessions set workdir = %s", [str(tmp_path)])
    one = Person(mesh, db, tmp_path)
    yield one
    one.actions.stop()


def test_typing_is_mail_from_the_user_that_wakes_the_agent_in_view(mesh: Mesh, me: Person):
    assert me.types("hello") == Done()
    assert mesh.unread(mesh.root) == ["hello"]
    assert mesh.column("select sender from agentmesh.mail") == [None]
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_the_first_thing_said_titles_the_session_and_a_name_given_stays(mesh: Mesh, me: Person):
    mesh.conn.execute("update agentmesh.sessions set title = ''")
    me.types("Look at\n[red]this[/] directory")
    assert mesh.one("select title from agentmesh.sessions") == "Look at [red]this[/] directory"
    me.types("/title mine")
    me.types("and that one")
    assert mesh.one("select title from agentmesh.sessions") == "mine"


def test_inputs_are_carried_out_in_their_order(mesh: Mesh, me: Person):
    for n in range(20):
        me.actions.submit(Call("say", (str(n),)), mesh.root)
    for _ in range(20):
        me.posted.next(ActionDone)
    assert mesh.unread(mesh.root) == [str(n) for n in range(20)]


def test_a_refused_input_comes_back_with_what_was_typed(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    mesh.kill(child)
    me.in_view = child
    refused = me.types("hello")
    assert isinstance(refused, Failed)
    assert "child" in refused.text
    assert refused.hint
    assert refused.typed == "hello"


def test_what_was_written_can_be_taken_back_until_it_is_read(mesh: Mesh, me: Person):
    mesh.begin(mesh.root)
    mail = mesh.send(None, mesh.root, "steer")
    assert me.does(Call(TAKE_BACK, (str(mail),))) == Done(draft="steer")
    assert isinstance(me.does(Call(TAKE_BACK, (str(mail),))), Failed)


# Capture and fork


def test_capture_then_fork_makes_the_child_and_moves_the_view(mesh: Mesh, me: Person):
    me.types("/capture")
    me.types("for the child")
    me.types("!not run")
    done = me.types("/fork")
    assert mesh.name(done.goto) == "fork"
    assert mesh.unread(done.goto) == ["for the child\n\n!not run"]
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.context(mesh.root) == []


def test_fork_without_capture_makes_an_idle_child_and_moves_the_view(mesh: Mesh, me: Person):
    done = me.types("/fork")
    assert mesh.status(done.goto) is AgentStatus.IDLE


def test_capture_goes_on_where_it_was_and_cancel_ends_it(mesh: Mesh, me: Person):
    me.types("/capture")
    assert "already" in me.types("/capture").text
    me.types("text")
    assert me.types("/cancel") == Done()
    refused = me.does(Call("captured", ("late",), "late"))
    assert isinstance(refused, Failed)
    assert refused.typed == "late", "ended in another terminal: the text is neither lost nor sent"
    assert isinstance(me.types("/cancel"), Failed)


def test_what_is_typed_before_the_screen_shows_the_capture_reaches_no_model_either(mesh: Mesh, me: Person):
    me.actions.submit(Call("capture"), mesh.root)
    me.actions.submit(Call("say", ("secret",), "secret"), mesh.root)
    assert [me.posted.next(ActionDone).outcome for _ in range(2)] == [Done(), Done()]
    assert mesh.run(person.captured, mesh.root) == ["secret"]
    assert mesh.unread(mesh.root) == []


# Verbs


def test_kill_without_argument_ends_the_agent_in_view_and_moves_to_its_parent(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    below = mesh.fork(child, "below")
    me.in_view = child
    done = me.types("/kill")
    assert done.goto == mesh.root
    assert "with 1 descendant" in done.text
    assert mesh.status(below) is AgentStatus.DEAD


def test_the_view_leaves_an_agent_that_dies_with_another(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    me.in_view = mesh.fork(child, "below")
    assert me.types("/kill child").goto == mesh.root
    mesh.fork(mesh.root, "other")
    me.in_view = mesh.root
    assert me.types("/kill other").goto is None
    assert "dead already" in me.types("/kill other").text


def test_the_root_cannot_be_killed(me: Person):
    refused = me.types("/kill")
    assert isinstance(refused, Failed)
    assert "root" in refused.text


def test_send_is_from_the_agent_in_view(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    me.in_view = child
    assert isinstance(me.types("/send parent it is done"), Done)
    assert mesh.unread(mesh.root) == ["it is done"]
    assert mesh.column("select sender from agentmesh.mail") == [child]
    refused = me.types("/send chidl hello")
    assert isinstance(refused, Failed)
    assert "child" in refused.hint


def test_the_root_has_no_parent_to_send_to(me: Person):
    assert "no parent" in me.types("/send parent hello").text


def test_wait_puts_the_agent_into_a_wait(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child", "work")
    assert me.types("/wait 30 child") == Done()
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    assert mesh.column("select target from agentmesh.waits") == [child]
    refused = me.types("/wait 30 child")
    assert isinstance(refused, Failed), "it is busy"
    me.in_view = child
    assert isinstance(me.types("/wait 1"), Failed)


def test_a_wait_for_nobody_known_is_refused_as_a_whole(mesh: Mesh, me: Person):
    refused = me.types("/wait 30 nobody")
    assert isinstance(refused, Failed)
    assert "nobody" in refused.text
    assert mesh.status(mesh.root) is AgentStatus.IDLE


def test_a_wait_that_is_over_at_once_leaves_its_row(mesh: Mesh, me: Person):
    mesh.fork(mesh.root, "child")
    assert me.types("/wait 30 child") == Done()
    assert mesh.rows(mesh.root)[0][1]["result"]["outcome"] == "complete"


def test_interrupt_stops_one_all_or_a_subtree(mesh: Mesh, me: Person):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    below = mesh.fork(a, "below", "work")
    mesh.send(None, mesh.root, "work")
    assert me.types("/interrupt").text == "Interrupted root."
    assert me.types("/interrupt").text == "root was not running."
    me.in_view = a
    done = me.does(Call(INTERRUPT_TREE))
    assert done.text == "Interrupted below, a."
    assert [mesh.status(one) for one in (a, below, b)] == [AgentStatus.IDLE, AgentStatus.IDLE, AgentStatus.RUNNING]
    assert me.types("/interrupt all").text == "Interrupted b."
    assert me.types("/interrupt all").text == "No agent was running."


def test_reap_takes_the_dead_out(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    assert me.types("/reap").text == "Nobody is dead."
    assert isinstance(me.types("/reap child"), Failed)
    mesh.kill(child)
    assert me.types("/reap child").text == "1 agent left the rotation."


def test_retry_runs_a_failed_turn_again(mesh: Mesh, me: Person):
    assert isinstance(me.types("/retry"), Failed)
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "no answer"})
    assert me.types("/retry") == Done()
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


# Settings


def test_mode_is_shown_and_changed(mesh: Mesh, me: Person):
    assert me.types("/mode").text.startswith("Mode ask: ")
    assert me.types("/mode plan").text.startswith("Mode plan: ")
    assert mesh.run(sessions.get, mesh.session).permission_mode is PermissionMode.PLAN


def test_the_model_changes_from_the_next_turn_on(mesh: Mesh, me: Person):
    assert "demo/demo" in me.types("/model").text
    assert "already" in me.types("/model demo").text
    refused = me.types("/model gpt-unknown")
    assert isinstance(refused, Failed)
    assert "openai of model gpt-unknown has no key" in refused.text
    assert mesh.run(agents.get, mesh.root).model == "demo/demo"


def test_the_system_prompt_is_shown_and_changed(mesh: Mesh, me: Person):
    assert me.types("/system").text == "You are an agent."
    assert me.types("/system Be brief.\nVery.") == Done()
    assert me.types("/system").text == "Be brief.\nVery."
    assert "cache is lost" in mesh.rows(mesh.root)[0][1]["text"]


def test_tools_are_taken_away_and_given_back(mesh: Mesh, me: Person):
    assert me.types("/tools").text == "It has no tools."
    assert me.types("/tools +read +bash") == Done()
    assert [line.partition(":")[0] for line in me.types("/tools").text.splitlines()] == ["bash", "read"]
    me.types("/tools -bash")
    assert me.types("/tools").text.startswith("read: ")
    refused = me.types("/tools +raed")
    assert isinstance(refused, Failed)
    assert "read" in refused.hint


def test_title_and_new(mesh: Mesh, me: Person, tmp_path):
    me.types("/title a good title")
    assert mesh.run(sessions.get, mesh.session).title == "a good title"
    done = me.types("/new")
    assert (done.session.workdir, done.session.id != mesh.session) == (str(tmp_path), True)
    assert mesh.run(agents.get, done.session.root_id).model == "demo/demo"


# The shell and SQL


def fifo(folder):
    """Return a pipe; reading it waits until the command has written there."""
    os.mkfifo(folder / "running")
    return folder / "running"


def test_a_shell_commands_output_is_kept_where_no_model_sees_it(mesh: Mesh, me: Person, tmp_path):
    assert me.types("!pwd; echo oops >&2; exit 3") == Done()
    assert mesh.rows(mesh.root) == [
        (
            "command",
            {
                "command": "!pwd; echo oops >&2; exit 3",
                "output": f"{tmp_path}\noops\n[exit code 3]",
                "exit_code": 3,
            },
        )
    ]
    assert mesh.context(mesh.root) == []


def test_a_shell_commands_colours_and_progress_leave_no_litter(mesh: Mesh, me: Person):
    me.types(r"!printf '\033[01;34mfolder\033[0m\n10%%\r100%%\n\033]0;title\007'")
    assert mesh.rows(mesh.root)[-1][1]["output"] == "folder\n100%"


def test_a_shell_command_holds_up_nothing_and_interrupt_ends_it(mesh: Mesh, me: Person, tmp_path):
    running = fifo(tmp_path)
    sleep = Call("shell", (f"echo x > {running}; sleep 600",))
    me.actions.submit(sleep, mesh.root)
    assert me.types("hello") == Done()
    running.read_text()
    interrupt = Call("interrupt")
    me.actions.submit(interrupt, mesh.root)
    ended = {done.call.name: done.outcome for done in (me.posted.next(ActionDone), me.posted.next(ActionDone))}
    assert ended.keys() == {"interrupt", "shell"}, "in whichever order"
    assert ended["interrupt"].text == "The command is ended."
    assert mesh.rows(mesh.root)[-1][1]["output"] == "[ended by signal 15]"


def test_ending_a_shell_command_touches_no_agent(mesh: Mesh, me: Person, tmp_path):
    running = fifo(tmp_path)
    mesh.begin(mesh.root)
    me.actions.submit(Call("shell", (f"echo x > {running}; sleep 600",)), mesh.root)
    running.read_text()
    me.actions.submit(Call(END_SHELL), mesh.root)
    assert {me.posted.next(ActionDone).call.name for _ in range(2)} == {"shell", END_SHELL}
    assert me.does(Call(END_SHELL)) == Done(), "it has ended by itself meanwhile"
    assert mesh.one("select interrupt_turn from agentmesh.agents where id = %s", mesh.root) is None


def test_what_a_command_leaves_in_the_background_keeps_nobody_waiting(mesh: Mesh, me: Person, tmp_path):
    assert me.types("!sleep 30 & echo $! > pid; echo started") == Done()
    assert mesh.rows(mesh.root)[-1][1]["output"] == "started"
    me.types(f"!kill $(cat {tmp_path}/pid)")


def test_long_output_keeps_its_head_and_tail(mesh: Mesh, me: Person):
    me.types("!seq 1 200000")
    output = mesh.rows(mesh.root)[-1][1]["output"]
    assert output.startswith("1\n2\n")
    assert output.endswith("200000")
    assert "bytes cut" in output
    assert len(output) < 70_000


def test_stop_ends_a_command_that_still_runs(mesh: Mesh, me: Person, tmp_path):
    running = fifo(tmp_path)
    me.actions.submit(Call("shell", (f"echo x > {running}; exec sleep 600",)), mesh.root)
    running.read_text()
    me.actions.stop()
    assert isinstance(me.posted.next(ActionDone).outcome, Done)


def test_without_the_sessions_directory_no_command_is_run(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.sessions set workdir = '/gone/for/good'")
    one = Person(mesh, db, tmp_path)
    refused = one.types("!ls")
    one.actions.stop()
    assert isinstance(refused, Failed)
    assert "/gone/for/good" in refused.text


def test_sql_returns_a_table_or_says_what_is_wrong(mesh: Mesh, me: Person):
    mesh.run(person.begin_capture, mesh.root)
    me.in_view = mesh.root
    done = me.does(Call("sql", ("select name, status from v_agents",)))
    assert done.table.columns == ["name", "status"]
    assert done.table.rows == [("root", "idle")]
    refused = me.does(Call("sql", ("delete from v_agents",), "/sql delete from v_agents"))
    assert isinstance(refused, Failed)
    assert refused.typed == "/sql delete from v_agents"


# Budgets


def test_a_budget_is_set_shown_and_taken_away(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "coder")
    assert me.types("/budget 5").text == "The session may use 20.0M tokens (0 tokens used) and $5.00 ($0.00 used)."
    assert me.types("/budget coder 200k tokens").text == "coder and all below it may use 200k tokens (0 tokens used)."
    assert mesh.one("select max_tokens from agentmesh.agents where id = %s", child) == 200_000
    shown = me.types("/budget").table
    assert [(row[0], row[1], row[4]) for row in shown.rows] == [
        ("the session", "tokens", "20.0M tokens"),
        ("the session", "usd", "$5.00"),
        ("coder", "tokens", "200k tokens"),
        ("coder", "usd", "none"),
    ]
    assert me.types("/budget coder none").text == "coder has no budget of its own; the session's holds for it too."
    assert me.types("/budget none").text == "The session has no budget."
    assert me.types("/budget coder").text == "coder has no budget of its own; the session's holds for it too."


def test_a_budget_that_is_no_amount_comes_back(me: Person):
    refused = me.types("/budget root plenty")
    assert isinstance(refused, Failed)
    assert "is no amount" in refused.text
    assert refused.typed == "/budget root plenty"


def test_cost_is_a_table_by_agent_with_its_sum(mesh: Mesh, me: Person):
    usage = {"input_tokens": 900, "output_tokens": 50, "cost_usd": None, "model": "m"}
    mesh.run(steps.book_call, mesh.root, usage)
    done = me.types("/cost")
    assert [(row[0], row[1], row[2], row[-1]) for row in done.table.rows] == [
        ("root", "1", "950", "?"),
        ("total", "1", "950", "?"),
    ]
    assert "1 model call has no known price" in done.text


# Names


def test_an_agent_gets_another_name_and_its_conversation_says_so(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child", "work")
    assert me.types("/rename child Reviewer").text == f"child ({str(child)[:8]}) is reviewer now."
    assert mesh.rows(child)[-1][1]["text"] == "renamed from child to reviewer"
    assert me.types("/send reviewer hello").text.startswith("Sent to reviewer")
    refused = me.types("/rename reviewer root")
    assert (refused.text, refused.typed) == ("the name 'root' is reserved", "/rename reviewer root")
    assert "reviewer" in me.types("/send child hello").hint


def test_fork_takes_a_name_and_a_prompt(mesh: Mesh, me: Person):
    idle = me.types("/fork fixer")
    assert (mesh.name(idle.goto), mesh.status(idle.goto)) == ("fixer", "idle")
    assert idle.text == "Forked fixer; it waits for what you write."
    runs = me.types('/fork fixer "Fix it."')
    assert (runs.text, mesh.name(runs.goto), mesh.status(runs.goto)) == ("Forked fixer-2.", "fixer-2", "running")
    assert mesh.unread(runs.goto) == ["Fix it."]
    mesh.send(None, mesh.root, "one")
    mesh.answer(mesh.root)
    later = me.types("/fork @1 early Go on.")
    assert (mesh.name(later.goto), mesh.unread(later.goto)) == ("early", ["Go on."])


def test_a_capture_becomes_a_child_of_the_name_given_but_takes_no_other_prompt(mesh: Mesh, me: Person):
    me.types("/capture")
    me.types("captured")
    assert isinstance(me.types("/fork fixer and more"), Failed)
    made = me.types("/fork fixer")
    assert (mesh.name(made.goto), mesh.unread(made.goto)) == ("fixer", ["captured"])
