"""What guides agents, seen by a person: run, doctor, and what a new session stores."""

from __future__ import annotations

import pytest


@pytest.fixture
def place(am):
    """A project with rules, types and instructions, some of them wrong."""
    user, project = am.folder / "home" / "agentmesh", am.folder / ".agentmesh" / "agents"
    user.mkdir(parents=True)
    project.mkdir(parents=True)
    (user / "config.toml").write_text("[permissions]\ndeny = ['read(*.pem)', 'Bash(x)']\nallow = ['bash(git log *)']\n")
    (project.parent / "config.toml").write_text("[permissions]\nask = ['web_fetch']\n")
    (project / "reviewer.md").write_text("---\nname: reviewer\ndescription: Reviews.\nguide: gone\n---\nYou review.\n")
    (project / "bad.md").write_text("---\nname: bad\n---\nNo description.\n")
    (project / "plan.md").write_text("---\nname: plan\ndescription: Evil.\n---\nEvil.\n")
    (am.folder / "CLAUDE.md").write_text("Say please.\n")
    return user, project


def test_a_run_says_once_what_is_wrong_and_goes_on(am, place):
    user, project = place
    done = am("run", "--model", "demo", "hello")
    assert done.code == 0
    told = [line for line in done.err.splitlines() if line.startswith("agentmesh: ")]
    refused = "is not used: the type plan is built in, and a project's file may not replace it"
    assert told == [
        f"agentmesh: {project}/bad.md: description is missing: it tells agents what the type is for.",
        f"agentmesh: {project}/plan.md: {refused}.",
        f"agentmesh: {user}/config.toml: the rule deny Bash(x) matches no tool; did you mean bash?",
    ]


def test_a_new_session_has_the_rules_and_the_instructions(am, place, conn):
    assert am("run", "--model", "demo", "hello").code == 0
    [(permissions, prompt)] = conn.execute(
        "select permissions, system_prompt from agentmesh.agents a join agentmesh.settings s on s.id = settings_id"
    )
    assert permissions == [
        [
            {"effect": "deny", "tool": "read", "pattern": "*.pem"},
            {"effect": "deny", "tool": "Bash", "pattern": "x"},
            {"effect": "allow", "tool": "bash", "pattern": "git log *"},
        ],
        [{"effect": "ask", "tool": "web_fetch", "pattern": "*"}],
    ]
    assert "instructions for agents, in CLAUDE.md" in prompt
    assert "\nSay please.\n" in prompt


def test_an_agent_keeps_to_the_rules_of_the_configuration(am, place):
    (am.folder / "key.pem").write_text("s3cret")
    done = am("run", "--model", "demo", "--json", "run cat key.pem")
    (result,) = [event["result"] for event in done.events if event["type"] == "tool_result"]
    assert "a rule denies `key.pem`" in result["error"]
    assert "s3cret" not in done.out


def test_doctor_lists_rules_types_and_problems(am, place):
    user, project = place
    found = am("doctor", "--json").data["findings"]
    said = [(one["about"], one["state"], one["words"]) for one in found]
    assert ("rules", "ok", f"deny read(*.pem), Bash(x) ({user}/config.toml)") in said
    assert ("rules", "ok", f"allow bash(git log *) ({user}/config.toml)") in said
    assert ("rules", "ok", f"ask web_fetch ({project.parent}/config.toml)") in said
    (types,) = [words for about, _, words in said if about == "agent types"]
    assert types == (
        f"explore (built in); general-purpose (built in); plan (built in); reviewer ({project}/reviewer.md)"
    )
    assert ("instructions", "ok", f"agents of new sessions here read {am.folder}/CLAUDE.md") in said
    told = [(state, words) for about, state, words in said if about == "guides"]
    guide = f"{project}/reviewer.md names the guide gone, but agents have no skill of that name"
    assert told.pop() == ("note", guide)
    assert [(state, words.split(": ")[1]) for state, words in told] == [
        ("broken", "description is missing"),
        ("note", "is not used"),
        ("note", "the rule deny Bash(x) matches no tool; did you mean bash?"),
    ]


def test_doctor_names_a_key_that_does_not_exist(am):
    am.configure('[tui.keys]\n"agents.pick" = "ctrl+nope"\n')
    told = am("doctor").out
    assert "config.toml: tui.keys: agents.pick is bound to ctrl+nope, and there is no such key." in told


def test_doctor_names_types_models_and_a_theme_that_do_not_exist(am):
    am.configure(
        '[tui]\ntheme = "drak"\n[agent_types.explor]\nhidden = true\n[agent_types.plan]\nmodel = "lokal/small"\n'
        '[providers.local]\nbase_url = "http://127.0.0.1:9"\n'
    )
    config = am.folder.parent / "config" / "config.toml"
    project = am.folder / ".agentmesh"
    for folder in ("agents", "commands"):
        (project / folder).mkdir(parents=True)
    (project / "config.toml").write_text("[agent_types.nobody]\nhidden = true\n")
    typed = project / "agents" / "typed.md"
    typed.write_text("---\nname: typed\ndescription: Types.\nmodel: nowhere/m\ntools: [reed]\n---\nYou type.\n")
    (project / "commands" / "ask.md").write_text("---\nagent: nobody\nmodel: nowhere/n\n---\nAnswer.\n")
    (project / "commands" / "right.md").write_text("---\nagent: typed\nmodel: local/m\n---\nAnswer.\n")
    (project / "commands" / "empty.md").touch()
    done = am("doctor", "--json", AGENTMESH_MODEL="demo")
    told = [one for one in done.data["findings"] if one["about"] in ("guides", "screen")]
    models = [one for one in done.data["findings"] if "the model of" in one["words"] and one["state"] == "note"]
    assert [one["about"] for one in models] == ["agent types", "agent types", "commands"]
    told += models
    words = [one["words"] for one in told]
    assert words == [
        f"{config}: tui.theme: there is no theme called drak.",
        f"{typed}: names unknown tools: reed.",
        f"{typed}: agents of the type typed have no tool at all.",
        f"{project}/commands/empty.md: is empty; the command is left out.",
        f"{config}: [agent_types.explor] names the type explor, which is not here",
        f"{project}/config.toml: [agent_types.nobody] names the type nobody, which is not here",
        ".agentmesh/commands/ask.md: /ask names the type nobody, which is not here",
        f"{config}: the model of the type plan: there is no provider 'lokal' for model lokal/small",
        f"{typed}: the model of the type typed: there is no provider 'nowhere' for model nowhere/m",
        ".agentmesh/commands/ask.md: the model of /ask: there is no provider 'nowhere' for model nowhere/n",
    ]
    assert told[0]["state"] == "broken"
    assert "dark" in told[0]["hint"]
    assert told[4]["hint"] == "Did you mean explore?"
    assert all(one["state"] == "note" for one in told[1:])


def test_doctor_looks_at_the_files_also_without_a_database(lonely):
    (lonely.folder / ".agentmesh" / "agents").mkdir(parents=True)
    (lonely.folder / ".agentmesh" / "agents" / "bad.md").write_text("no type")
    done = lonely("doctor", "--database-url", "postgresql://x@127.0.0.1:1/x", "--json")
    assert [one["state"] for one in done.data["findings"] if one["about"] == "guides"] == ["broken"]
