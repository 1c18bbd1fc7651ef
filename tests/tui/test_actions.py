"""What commands do, against a real database; the worker that would run the agents is the test's."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agentmesh.app.host_and_user import HostAndUser
from agentmesh.domain.errors import UrgentMailFirst
from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store import agents, person, sessions, steps
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import END_SHELL, INTERRUPT_TREE, TAKE_BACK, Call, Done, Failed, Problem
from agentmesh.tui.commands.context import CommandContext
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.commands.parse import parse
from agentmesh.tui.commands.run import CommandRunner
from agentmesh.tui.session.schema_watch import SchemaWatch
from tests.fixtures.mesh import HOST, USER, Mesh
from tests.fixtures.pictures import png
from tests.tui.posted import Posted, mesh_of


class Person:
    """Types inputs and returns what came of them."""

    def __init__(self, mesh: Mesh, database: Database, folder) -> None:
        self.mesh = mesh
        self.posted = Posted()
        self.in_view = mesh.root
        session = database.run(sessions.get, mesh.session)
        self.actions = CommandRunner(
            mesh_of(database, folder), session, self.posted, SchemaWatch(database), last_model=lambda: "demo/demo"
        )
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
    assert "with 1 below it." in done.text
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


def test_urgent_is_from_the_user_and_puts_off_calls(mesh: Mesh, me: Person):
    (waiting,) = mesh.call(mesh.root, "bash")
    assert me.types("/urgent stop [b]that[/b]") == Done()
    assert mesh.column("select body from agentmesh.v_mail where urgent and sender is null") == ["stop [b]that[/b]"]
    with pytest.raises(UrgentMailFirst):
        mesh.run(steps.start_calls, waiting, [0])
    assert mesh.column("select seq from agentmesh.transcript where kind = 'command'") == []


def test_urgent_is_sent_though_a_capture_is_open_and_is_refused_by_the_dead(mesh: Mesh, me: Person):
    child = mesh.fork(mesh.root, "child")
    me.in_view = child
    assert isinstance(me.types("/capture"), Done)
    assert me.types("/urgent now") == Done()
    assert mesh.unread(child) == ["now"]
    mesh.kill(child)
    refused = me.types("/urgent again")
    assert isinstance(refused, Failed)
    assert "is dead" in refused.text


def test_after_the_session_was_deleted_each_call_says_so_and_a_new_one_has_its_model(mesh: Mesh, me: Person):
    me.actions.submit(Call("capture"), mesh.root)
    assert me.posted.next(ActionDone).outcome == Done()
    mesh.run(sessions.delete_session, mesh.session)
    refused = me.does(Call("say", ("hello",), "hello"))
    assert refused == Failed(
        "This session was deleted: /new begins another one, /sessions lists the others.", "", "hello"
    )
    made = me.types("/new")
    assert mesh.run(agents.get, made.session.root_id).model == "demo/demo"


def test_send_goes_to_several_at_once(mesh: Mesh, me: Person):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    assert me.types("/send a,b,a hello") == Done("Sent to a, b.")
    assert me.types("/send Children again") == Done("Sent to a, b.")
    assert mesh.unread(a) == mesh.unread(b) == ["hello", "again"]
    me.in_view = a
    assert me.types("/send session all") == Done("Sent to root, b.")
    assert isinstance(me.types("/send b,nobody x"), Failed)
    own = Failed("/send writes to others in the name of a", "To write to a, type the text alone.")
    assert me.types("/send a,b x")[:2] == me.types("/send a x")[:2] == own[:2]
    assert mesh.unread(b) == ["hello", "again", "all"]


def test_reply_is_from_the_agent_in_view_to_the_newest_mail_or_the_one_named(mesh: Mesh, me: Person):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    first, second = mesh.send(a, mesh.root, "which port?"), mesh.send(b, mesh.root, "which host?")
    assert f"an answer to message {second}" in me.types("/reply localhost").text
    assert f"an answer to message {first}" in me.types(f"/reply #{first}  8080").text
    assert mesh.column("select sender from agentmesh.mail where reply_to is not null") == [mesh.root, mesh.root]
    assert (mesh.unread(a), mesh.unread(b)) == (["8080"], ["localhost"])
    assert "The message is missing" in me.types(f"/reply #{first}").text
    assert "there is no message 99 " in me.types("/reply #99 x").text


def test_nobody_has_written_to_one_who_is_to_reply(me: Person):
    assert "No agent has written" in me.types("/reply hello").text
    alone = parse("/reply")
    assert isinstance(alone, Problem)
    assert alone.text == "What is the answer? It goes to the agent that wrote last; after #12 it answers message 12."
    assert alone.hint == "Usage: /reply message"


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
    assert done.text == "Interrupted a, below."
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


def test_retry_runs_several_or_all_failed_turns_again(mesh: Mesh, me: Person):
    a, b, c, idle = (mesh.fork(mesh.root, name) for name in ("a", "b", "c", "idle"))
    for one in (a, b, c):
        mesh.run(steps.fail_turn, mesh.begin(one), {"error": "no answer"})
    mesh.answer(mesh.root)
    mixed = me.types("/retry a idle").text
    assert mixed.startswith("Running again: a. But the last turn of idle (")
    assert mixed.endswith(") did not fail.")
    assert me.types("/retry ALL").text == "Running again: b, c."
    assert [mesh.status(one) for one in (a, b, c, idle)] == [*[AgentStatus.RUNNING] * 3, AgentStatus.IDLE]
    assert me.types("/retry all").text == "No agent's last turn failed."
    assert isinstance(me.types("/retry idle"), Failed)
    unknown = me.types("/retry a nobody")
    assert isinstance(unknown, Failed)
    assert "nobody" in unknown.text


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


def test_a_model_that_its_server_does_not_list_is_taken_and_told_of(mesh: Mesh, me: Person, monkeypatch):
    models = "agentmesh.app.models.ConfiguredModels"
    monkeypatch.setattr(f"{models}.name", lambda _self, wanted: wanted)
    monkeypatch.setattr(f"{models}.lacks", lambda _self, model: model == "demo/other")
    assert me.types("/model demo/other").text == "The server of demo does not list other."
    assert mesh.run(agents.get, mesh.root).model == "demo/other"
    assert me.types("/model demo/demo").text == ""


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
    mesh.conn.execute("update agentmesh.sessions set workdir = '/gone/for/good', host = %s", (HostAndUser.here().host,))
    one = Person(mesh, db, tmp_path)
    refused = one.types("!ls")
    one.actions.stop()
    assert isinstance(refused, Failed)
    assert (refused.text, refused.hint) == ("there is no directory /gone/for/good here", "Bring it back.")


@pytest.mark.parametrize(
    ("typed", "own"),
    [
        ("/todo done 99", "/todo lists them; so does the tool todo, by action list"),
        ("/later cancel 99", "/later lists them"),
    ],
)
def test_what_went_wrong_is_told_with_commands_of_the_screen(me: Person, typed, own):
    refused = me.types(typed)
    assert isinstance(refused, Failed)
    assert refused.hint == f"{own}."


def test_who_makes_too_many_agents_is_told_the_screens_command_for_the_limit(mesh: Mesh, me: Person):
    mesh.conn.execute("update agentmesh.sessions set max_depth = 0")
    refused = me.types("/fork helper work")
    assert isinstance(refused, Failed)
    assert refused.hint.endswith("A person changes the limit by: /limits depth N")


def test_a_directory_that_is_on_another_host_is_not_said_to_be_gone(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.sessions set workdir = '/gone/for/good', host = 'elsewhere'")
    one = Person(mesh, db, tmp_path)
    refused = one.types("!ls")
    one.actions.stop()
    assert refused.hint == "The session is of the host elsewhere."


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


def test_a_fork_may_differ_from_its_parent(mesh: Mesh, me: Person):
    made = me.types("/fork --model demo --context none fixer")
    assert isinstance(made, Done)
    assert "it begins without the conversation" in made.text or "its model differs" in made.text
    assert mesh.one("select model from agentmesh.agents where id = %s", made.goto) == "demo/demo"
    me.in_view = mesh.root
    assert isinstance(me.types("/fork --context -1 wrong"), Failed)
    assert isinstance(me.types("/fork --tools nosuch wrong"), Failed)
    assert isinstance(me.types("/fork --model nobody/x wrong"), Failed)
    assert isinstance(me.types("/fork --context none @1 wrong"), Failed)
    assert mesh.one("select count(*) from agentmesh.agents where name = 'wrong'") == 0


def test_a_forks_report_may_have_a_form_and_a_check(mesh: Mesh, me: Person, tmp_path):
    (tmp_path / "count.json").write_text('{"properties": {"n": {"type": "integer"}}, "required": ["n"]}')
    made = me.types(f'/fork --schema {tmp_path}/count.json --check "pytest -q" counter Count.')
    assert isinstance(made, Done)
    assert "its tools differ" in made.text
    assert (
        mesh.one("select (schema ->> 'required', check_command)::text from agentmesh.forms")
        == '("[""n""]","pytest -q")'
    )
    me.in_view = mesh.root
    assert "cannot be read" in me.types(f"/fork --schema {tmp_path}/none.json wrong Count.").text
    assert "needs a prompt" in me.types("/fork --check true wrong").text
    assert isinstance(me.types('/fork --check "" wrong Count.'), Failed)
    assert mesh.one("select count(*) from agentmesh.agents where name = 'wrong'") == 0


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


def test_later_sends_lists_and_cancels(me: Person):
    done = me.types("/later 10m look again")
    timer = me.mesh.one("select id from agentmesh.timers where recipient = %s", me.in_view)
    assert done.text == f"Timer {timer} rings in 10m, if a worker runs then. /later lists them."
    assert [row[2] for row in me.types("/later").table.rows] == ["look again"]
    assert me.types(f"/later cancel {timer}").text == f"Timer {timer} is cancelled."
    assert me.types("/later").text == "No message is due later."


def test_later_sends_at_a_time(me: Person):
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    done = me.types(f"/later at {at.isoformat()} look again")
    ((due, body),) = me.mesh.conn.execute("select due_at, body from agentmesh.timers").fetchall()
    assert (due, body) == (at, "look again")
    assert f"rings at {at.isoformat()}, if" in done.text


@pytest.mark.parametrize(
    ("times", "cron", "said"),
    [
        ("0 9 * * 1-5 Europe/Berlin", "0 9 * * 1-5 Europe/Berlin", "at 09:00 on Monday through Friday, Europe/Berlin"),
        ("0 9 * * 1-5 UTC", "0 9 * * 1-5 UTC", "at 09:00 on Monday through Friday, UTC"),
        ("0 9 * * 1-5", "0 9 * * 1-5 Asia/Tokyo", "at 09:00 on Monday through Friday, Asia/Tokyo"),
    ],
)
def test_later_repeats_by_a_cron_expression(monkeypatch, me: Person, times: str, cron: str, said: str):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    done = me.types(f"/later cron {times} look at n/a and src/a.py")
    ((timer, stored, body),) = me.mesh.conn.execute("select id, cron, body from agentmesh.timers").fetchall()
    assert (stored, body) == (cron, "look at n/a and src/a.py")
    assert done.text == f"Timer {timer} rings {said}, if a worker runs then. /later lists them."
    assert [row[3] for row in me.types("/later").table.rows] == [said]


def test_a_later_message_has_the_images_that_it_names(monkeypatch, tmp_path, me: Person):
    monkeypatch.setattr(HostAndUser, "here", lambda: HostAndUser(HOST, USER))
    (tmp_path / "shot.png").write_bytes(png())
    done = me.types(f"/later 10m what is @{tmp_path}/shot.png ?")
    assert me.mesh.one("select images -> 0 ->> 'name' from agentmesh.timers") == "shot.png"
    assert "rings in 10m" in done.text


@pytest.mark.parametrize(
    "words",
    [
        "10m",
        "every 1h",
        "every 1s x",
        "soon look",
        "cancel x",
        "cancel",
        "at noon look",
        "at 2026-12-24T18:00 look",
        "at 2526-12-24T18:00Z",
        "-5m look",
        "cron",
        "cron 0 9 * *",
        "cron 0 9 * * 1-5",
        "cron 0 9 * * 1-5 UTC",
        "cron 61 9 * * 1-5 look",
        "cron 0 9 30 2 * look",
        "cron every day at nine look",
    ],
)
def test_a_later_without_sense_says_what_to_write(me: Person, words: str):
    refused = me.types(f"/later {words}")
    assert isinstance(refused, Failed)
    assert me.mesh.one("select count(*) from agentmesh.timers") == 0


def test_a_sub_agent_of_a_type_works_below_the_agent_in_view_and_reports_to_it(mesh: Mesh, me: Person):
    done = me.types("/task Explore Look at the tests, please!")
    assert done == Done("Started explore-look-at-the-tests; its report comes as a message.")
    ((child, kind, parent),) = mesh.conn.execute(
        "select id, subagent_type, parent_id from agentmesh.agents where name = 'explore-look-at-the-tests'"
    ).fetchall()
    assert (kind, parent) == ("explore", mesh.root)
    assert mesh.one("select sender from agentmesh.mail where recipient = %s", child) == mesh.root
    mesh.claim()
    mesh.answer(child, "there are many")
    assert mesh.unread(mesh.root) == ["there are many"]
    again = me.types("/task explore 見て")
    assert again == Done("Started explore-1; its report comes as a message.")


def test_an_unknown_type_and_a_dead_agent_are_refused_in_words_and_nothing_is_made(mesh: Mesh, me: Person):
    unknown = me.types("/task nosuch look")
    assert isinstance(unknown, Failed)
    assert "there is no type of sub-agent 'nosuch'" in unknown.text.lower()
    assert "Types: explore, general-purpose, plan." in unknown.hint
    child = mesh.fork(mesh.root, "child")
    mesh.kill(child)
    me.in_view = child
    assert isinstance(me.types("/task explore look"), Failed)
    assert mesh.one("select count(*) from agentmesh.agents where subagent_type is not null") == 0


def test_an_image_of_a_sub_agents_prompt_goes_with_it(
    mesh: Mesh, me: Person, db: Database, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CommandContext, "ensure_served", lambda _self: None)  # it would start a real worker here
    (tmp_path / "shot.png").write_bytes(png(640, 480))
    mesh.conn.execute("update agentmesh.sessions set host = %s", [HostAndUser.here().host])
    here = Person(mesh, db, tmp_path)
    try:
        assert isinstance(here.types("/task explore what is @shot.png"), Done)
    finally:
        here.actions.stop()
    child = mesh.one("select id from agentmesh.agents where subagent_type = 'explore'")
    mail = "select sender, jsonb_array_length(images) from agentmesh.mail where recipient = %s"
    assert mesh.conn.execute(mail, [child]).fetchall() == [(mesh.root, 1)]
    assert mesh.status(child) is AgentStatus.RUNNING


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/task explore what is @shot.png", "; its report comes as a message. {}"),
        ("/fork one what is @shot.png", "Forked one. {}"),
        ("/fork --model demo two what is @shot.png", "Forked two"),
    ],
)
def test_a_fork_says_that_its_model_cannot_see_the_images_of_its_prompt(
    mesh: Mesh, db: Database, tmp_path, monkeypatch: pytest.MonkeyPatch, typed: str, said: str
):
    monkeypatch.setattr(CommandContext, "ensure_served", lambda _self: None)  # it would start a real worker here
    (tmp_path / "shot.png").write_bytes(png(640, 480))
    mesh.conn.execute("update agentmesh.sessions set host = %s, workdir = %s", [HostAndUser.here().host, str(tmp_path)])
    mesh.conn.execute("update agentmesh.agents set model = 'openai/gpt-3.5-turbo'")
    here = Person(mesh, db, tmp_path)
    try:
        done = here.types(typed)
    finally:
        here.actions.stop()
    assert said.format("openai/gpt-3.5-turbo cannot see images: it reads only their names.") in done.text
    assert ("cannot see" in done.text) == ("{}" in said)


def test_the_board_of_todos_is_changed_and_listed(mesh: Mesh, me: Person):
    assert me.types("/todo").text.startswith("Nothing is on the board.")
    number = me.types("/todo add build it").text.split()[1]
    assert me.types("/todo").table.rows[0][:3] == (number, "build it", "ready")
    assert me.types(f"/todo done {number} in build/") == Done(f"Todo {number} is done.")
    assert me.types("/todo").table.rows[0][2] == "done"
    assert isinstance(me.types(f"/todo release {number}"), Failed)
    for wrong in ("/todo add", "/todo done x", "/todo done 9999", "/todo steal 3"):
        assert isinstance(me.types(wrong), Failed)
    rows = "select content ->> 'command' from agentmesh.transcript where content ? 'command'"
    assert len(mesh.column(rows)) == 2


def test_processes_are_listed_and_stopped(me: Person):
    assert me.types("/processes").text == "No command was started in the background."
    me.mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)"
        " select session_id, 3, id, 1, 0, %s, 'npm run dev' from agentmesh.agents where id = %s",
        [me.mesh.worker, me.in_view],
    )
    table = me.types("/processes").table
    assert [(row[0], row[1], row[4]) for row in table.rows] == [("3", "running", "npm run dev")]
    me.mesh.conn.execute(
        "update agentmesh.processes set watch = 'x', matches = 2, state = 'exited', exit_code = 127, ended_at = now()"
    )
    assert me.types("/processes").table.rows[0][1] == "exited 127, 2 matches"
    widest = 3 + len("exited 127, 2 matches") + 16 + len("11-26 13:00") + 2 * len(table.columns)
    assert widest < 72, "the command begins within 80 columns"
    me.mesh.conn.execute("update agentmesh.processes set state = 'running', exit_code = null, ended_at = null")
    assert me.types("/processes stop 3").text == "Process 3 is being stopped."


@pytest.mark.parametrize("words", ["stop", "stop x", "stop 0", "3", "stop 99999999999999999999", "stop 3 4", "stop ³"])
def test_a_stop_without_sense_says_what_to_write(me: Person, words: str):
    assert isinstance(me.types(f"/processes {words}"), Failed)


def test_limits_are_shown_and_changed(mesh: Mesh, me: Person):
    shown = {row[0]: row for row in me.types("/limits").table.rows}
    assert shown["turns"][1:] == ("0", "none", "model calls in one turn")
    assert me.types("/limits turns 50") == Done("Limit of the session: model calls in one turn, 50.")
    assert me.types("/limits --max-time 2h") == Done("Limit of the session: time of the session, 2 h from now on.")
    assert me.types("/limits max_depth 5") == Done("Limit of the session: depth of the tree, 5.")
    assert me.types("/limits max_turn_seconds 10m") == Done("Limit of the session: time of one turn, 10 min.")
    assert me.types("/limits time none") == Done("Limit of the session: time of the session, none.")
    assert mesh.conn.execute("select max_turns, deadline from agentmesh.sessions").fetchall() == [(50, None)]
    for wrong in ("/limits steps 3", "/limits turns", "/limits turns many", "/limits turns 0", "/limits time soon"):
        assert isinstance(me.types(wrong), Failed)
    assert mesh.one("select max_turns from agentmesh.sessions") == 50
