"""run --allow: rules that a person gives a run, beside the modes that allow all or nothing."""

from __future__ import annotations

import re
import shlex

import pytest

from agentmesh.cli.allowing import allow_options, allow_rule
from agentmesh.config.rules import rule_text
from agentmesh.domain.errors import UsageError

DEMO = ("--model", "demo")


def test_a_rule_allows_what_it_says_and_nothing_else(am):
    done = am("run", *DEMO, "--allow", "bash(touch made.txt)", "run touch made.txt")
    assert (done.code, "Not permitted" in done.err) == (0, False), done.err
    assert (am.folder / "made.txt").exists()
    other = am("run", *DEMO, "--allow", "bash(touch made.txt)", "run touch other.txt")
    assert "Not permitted: bash" in other.err
    assert not (am.folder / "other.txt").exists()


def test_rules_given_more_than_once_are_kept_by_the_session(am):
    first = am("run", *DEMO, "--allow", "bash(touch b)", "--allow", "bash(touch a)", "run touch a")
    assert (first.code, "Not permitted" in first.err) == (0, False), first.err
    assert "Not permitted" not in am("run", "-c", "run touch b").err
    assert (am.folder / "b").exists()


def test_the_end_names_the_rule_that_would_have_allowed_what_was_refused(am):
    refused = am("run", *DEMO, "run touch 'a b'")
    line = next(line for line in refused.err.splitlines() if line.startswith("Not permitted"))
    assert line.endswith(", or --permission-mode all")
    found = re.search(r"This allows it: (--allow .*), or", line)
    assert found is not None, line
    assert am("run", "-c", *shlex.split(found[1]), "run touch 'a b'").code == 0
    assert (am.folder / "a b").exists()


def test_events_say_which_rules_would_have_allowed_it(am):
    done = am("run", *DEMO, "--json", "run touch made")
    flag = {"allow_with": "--permission-mode all", "allow_rules": ["bash(touch made)"], "tools": ["bash"]}
    assert done.events[-1]["refused"] == [flag]


def _configured(am, line: str) -> None:
    (am.folder / ".agentmesh").mkdir(parents=True)
    (am.folder / ".agentmesh" / "config.toml").write_text(f"[permissions]\n{line}\n")


def test_a_rule_never_allows_what_another_denies(am):
    _configured(am, 'deny = ["bash(touch *)"]')
    denied = am("run", *DEMO, "--allow", "bash(*)", "--allow", "*", "run touch made")
    assert not (am.folder / "made").exists()
    assert "Not permitted in any mode: bash" in denied.err


def test_a_rule_allows_what_another_asks_about(am):
    _configured(am, 'ask = ["bash(touch *)"]')
    assert am("run", *DEMO, "--allow", "bash(touch *)", "run touch made").code == 0
    assert (am.folder / "made").exists()


def test_mode_plan_stays_as_it_is(am):
    am("run", *DEMO, "--permission-mode", "plan", "--allow", "bash", "run touch made")
    assert not (am.folder / "made").exists()


@pytest.mark.parametrize("rule", ["", "bash(", "bash()", "two words", "read(../x)"])
def test_what_is_no_rule_is_a_usage_error(am, rule: str):
    done = am("run", *DEMO, "--allow", rule, "hi")
    assert (done.code, done.out) == (2, "")
    assert "--allow" in done.err


def test_a_rule_that_matches_no_tool_is_warned_about(am):
    done = am("run", *DEMO, "--allow", "Bash(make)", "hi")
    assert done.code == 0
    assert "the rule allow Bash(make) matches no tool; did you mean bash?" in done.err


def test_an_agent_cannot_allow_itself_anything(am):
    done = am("run", *DEMO, "--allow", "bash", "hi", AGENTMESH_AGENT="aaaaaaaa-0000-4000-8000-000000000001")
    assert done.code == 2
    assert "person" in done.err


@pytest.mark.parametrize("text", ["bash(git commit -m 'it''s')", 'bash(echo "$X" `y`)', "read(a b/**)", "write"])
def test_the_option_that_is_named_gives_the_rule_back(text: str):
    (option,) = allow_options([text])
    name, rule = shlex.split(option)
    assert (name, rule_text(allow_rule(rule))) == ("--allow", text)
    with pytest.raises(UsageError):
        allow_rule(f"{text} nonsense")
