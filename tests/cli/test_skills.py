"""Skills and custom commands on the command line: run, doctor, and what a new session stores."""

from __future__ import annotations

import pytest


@pytest.fixture
def place(am):
    """A user's skill, a project's, a command, and two broken files."""
    user, project = am.folder / "home" / "agentmesh", am.folder
    for folder, name in ((user, "pdf"), (project / ".agents", "release"), (project / ".agents", "broken")):
        (folder / "skills" / name).mkdir(parents=True)
        front = f"name: {name}\n" if name == "broken" else f"name: {name}\ndescription: About {name}.\n"
        (folder / "skills" / name / "SKILL.md").write_text(f"---\n{front}---\nHow to {name}.\n")
    (project / ".claude" / "commands").mkdir(parents=True)
    (project / ".claude" / "commands" / "greet.md").write_text("---\ndescription: Greets.\n---\nread $1\n")
    (project / ".claude" / "commands" / "all.md").write_text("$ARGUMENTS")
    (project / ".claude" / "commands" / "bad.md").write_text("---\n")
    return project


def stored(conn):
    [(prompt, tools)] = conn.execute(
        "select system_prompt, tools from agentmesh.agents a join agentmesh.settings s on s.id = settings_id"
    )
    return prompt, [tool["function"]["name"] for tool in tools]


def test_a_new_session_is_told_of_the_skills_and_can_read_them(am, place, conn):
    done = am("run", "--model", "demo", "hello")
    assert (done.code, "broken" in done.err) == (0, False), done.err
    prompt, tools = stored(conn)
    assert "- pdf: About pdf." in prompt
    assert "- release: About release." in prompt
    assert "broken" not in prompt
    assert "skill" in tools


def test_without_skills_there_is_nothing_of_them(am, conn):
    assert am("run", "--model", "demo", "hello").code == 0
    prompt, tools = stored(conn)
    assert "Skills are" not in prompt
    assert "skill" not in tools


def test_a_denied_skill_is_not_told_of(am, place, conn):
    (am.folder / "home" / "agentmesh" / "config.toml").write_text("[permissions]\ndeny = ['skill(release)']\n")
    done = am("run", "--model", "demo", "hello")
    assert (done.code, done.err.count("matches no tool")) == (0, 0)
    prompt, _ = stored(conn)
    assert "release" not in prompt


def test_doctor_lists_both_and_warns_of_what_is_left_out(am, place):
    done = am("doctor", "--json")
    assert done.code == 0
    said = [(one["about"], one["state"], one["words"]) for one in done.data["findings"]]
    skills = "pdf (~/agentmesh/skills/pdf/SKILL.md); release (.agents/skills/release/SKILL.md)"
    assert ("skills", "ok", skills) in said
    assert ("commands", "ok", "/all (.claude/commands/all.md); /greet (.claude/commands/greet.md)") in said
    no_description = "has no description, which tells agents what it is for; the skill is left out."
    no_end = "has front matter without an end: a second line of --- is missing; the command is left out."
    assert [(state, words) for about, state, words in said if about == "guides"] == [
        ("note", f"{place}/.agents/skills/broken/SKILL.md:1: {no_description}"),
        ("note", f"{place}/.claude/commands/bad.md:1: {no_end}"),
    ]


def test_run_sends_what_a_custom_command_says(am, place, conn):
    (place / "notes.txt").write_text("of mine")
    done = am("run", "--model", "demo", "/greet notes.txt")
    assert done.code == 0
    assert conn.execute("select body from agentmesh.mail").fetchall() == [("read notes.txt",)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/greeet notes.txt", "There is no custom command /greeet: it is sent as text. Did you mean /greet?\n"),
        ("/Wizardry", "There is no custom command /Wizardry: it is sent as text.\n"),
        ("/tmp/x is a path", ""),
        ("/tmp is full", ""),
    ],
)
def test_run_sends_any_other_text_as_it_is(am, place, conn, text, said):
    done = am("run", "--model", "demo", text)
    assert done.code == 0
    assert ("custom command" in done.err) is bool(said)
    assert said in done.err
    assert conn.execute("select body from agentmesh.mail").fetchall() == [(text,)]


def test_a_pipe_is_sent_as_it_is(am, place, conn):
    assert am("run", "--model", "demo", stdin="/greet notes.txt").code == 0
    assert conn.execute("select body from agentmesh.mail").fetchall() == [("/greet notes.txt",)]


def test_a_command_that_says_nothing_is_a_wrong_use(am, place):
    done = am("run", "--model", "demo", "/all")
    assert done.code == 2
    assert "/all is empty without arguments." in done.err


def test_run_fills_a_custom_command_under_the_rules(am, place, conn):
    (place / ".claude" / "commands" / "state.md").write_text("State: !`touch made`")
    (place / ".claude" / "commands" / "look.md").write_text("Look at @notes.txt")
    (place / "notes.txt").write_text("of mine")
    done = am("run", "--model", "demo", "/state")
    assert done.code == 2
    assert "/state would run what needs a yes: bash touch made" in done.err
    assert "--allow" in done.err
    assert not (place / "made").exists()
    assert am("run", "--model", "demo", "--permission-mode", "all", "/state").code == 0
    assert am("run", "--model", "demo", "/look").code == 0
    (place / ".claude" / "commands" / "named.md").write_text("Look at @$1")
    assert "No file of text" not in am("run", "--model", "demo", "/named").err, "there is no name to speak of"
    said = [body for (body,) in conn.execute("select body from agentmesh.mail order by id limit 2")]
    assert said == ["State: `no output`", "Look at @notes.txt\n\nnotes.txt:\n\n```\n     1\tof mine\n```"]


def test_a_file_of_a_custom_command_that_its_own_commands_swap_is_not_shown(am, place):
    (am.folder / "home" / "agentmesh" / "config.toml").write_text("[permissions]\ndeny = ['read(secret.env)']\n")
    (place / ".claude" / "commands" / "look.md").write_text("!`sh swap.sh` @notes.txt")
    (place / "notes.txt").write_text("of mine")
    (place / "secret.env").write_text("s3cret")
    (place / "swap.sh").write_text("ln -sfn secret.env notes.txt\n")
    done = am("run", "--model", "demo", "--permission-mode", "all", "/look")
    assert (done.code, "notes.txt changed while it was opened" in done.err) == (2, True), done.err


def test_what_run_is_given_as_arguments_is_not_run(am, place, conn):
    (place / ".claude" / "commands" / "say.md").write_text("Said: !`printf %s $1`, $2")
    for given in ("$(touch pwn)", "; touch pwn #"):
        assert am("run", "--model", "demo", "--permission-mode", "all", f'/say "{given}" f').code == 0
    assert not (place / "pwn").exists()
    said = [body for (body,) in conn.execute("select body from agentmesh.mail order by id")]
    assert said == ["Said: `$(touch pwn)`, f", "Said: `; touch pwn #`, f"]


def test_run_takes_the_model_of_a_command_and_refuses_a_child_later(am, place, conn):
    (place / ".claude" / "commands" / "sub.md").write_text("---\nsubtask: true\nmodel: demo\n---\nSee.")
    (place / ".claude" / "commands" / "kind.md").write_text("---\nagent: build\n---\nSee.")
    assert am("run", "/sub").code == 0
    done = am("run", "-c", "/sub")
    assert (done.code, "/sub has `subtask` in its file" in done.err) == (2, True)
    done = am("run", "--model", "demo", "/kind")
    assert (done.code, "/kind is for an agent of type build" in done.err) == (2, True)
