from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.permissions import Decision, Permissions, Rule, Verdict, intersect, judge, refusal, says
from agentmesh.domain.states import PermissionMode
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import read_shell

ASK, EDITS, ALL, PLAN = PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL, PermissionMode.PLAN
Judging = Callable[..., Verdict]


def _rules(*texts: str) -> Permissions:
    return Permissions.of(_rule(text) for text in texts)


def _rule(text: str) -> Rule:
    effect, tool, pattern = text.split(" ", 2)
    return Rule(Decision(effect), tool, pattern)


@pytest.fixture
def judged(tmp_path: Path) -> Judging:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key.pem").touch()
    (tmp_path / "link").symlink_to("secrets")
    (tmp_path / "out").symlink_to("/etc")

    def run(tool: str, rules: Permissions | None = None, mode: PermissionMode = ASK, **arguments: object) -> Verdict:
        where = partial(locate, tmp_path)
        return judge(
            mode, tool, arguments, rules or Permissions(), partial(read_shell, workdir=tmp_path), where, str(tmp_path)
        )

    return run


_DEFAULTS = [
    # tool, arguments, ask, edits, all, plan
    ("read", {"path": "a"}, "allow allow allow allow"),
    ("glob", {"pattern": "*"}, "allow allow allow allow"),
    ("grep", {"pattern": "x", "path": "secrets"}, "allow allow allow allow"),
    ("read", {"path": "/etc/passwd"}, "ask ask allow deny"),
    ("read", {"path": "out/passwd"}, "ask ask allow deny"),
    ("glob", {"pattern": "*", "path": ".."}, "ask ask allow deny"),
    ("write", {"path": "a"}, "ask allow allow deny"),
    ("edit", {"path": "secrets/../a"}, "ask allow allow deny"),
    ("write", {"path": "/etc/passwd"}, "ask ask allow deny"),
    ("edit", {"path": "out/passwd"}, "ask ask allow deny"),
    ("bash", {"command": "ls -l"}, "allow allow allow allow"),
    ("bash", {"command": "touch a"}, "ask ask allow deny"),
    ("bash", {"command": "ls > a"}, "ask ask allow deny"),
    ("bash", {"command": "if"}, "ask ask allow deny"),
    ("bash", {"command": ""}, "allow allow allow allow"),
    ("web_fetch", {"url": "https://x"}, "ask ask allow deny"),
    ("mcp_thing", {"a": 1}, "ask ask allow deny"),
    ("fork", {"name": "a", "prompt": "b"}, "allow allow allow allow"),
    ("kill", {"agent_id": "a"}, "allow allow allow allow"),
    ("wait", {"timeout": 1}, "allow allow allow allow"),
    ("merge", {"agent": "child"}, "ask ask allow deny"),
    ("merge", {"agent": "child", "preview": True}, "allow allow allow allow"),
    ("merge", {"agent": "child", "check": "make test", "preview": True}, "ask ask allow deny"),
]


@pytest.mark.parametrize(("tool", "arguments", "decisions"), _DEFAULTS)
def test_modes_without_rules(judged: Judging, tool: str, arguments: dict[str, object], decisions: str):
    found = [judged(tool, mode=mode, **arguments).decision.value for mode in (ASK, EDITS, ALL, PLAN)]
    assert found == decisions.split()


def test_a_merge_into_an_own_tree_is_an_edit_and_its_check_is_a_command(tmp_path: Path):
    def decided(mode: PermissionMode, *rules: str, **more: object) -> Decision:
        arguments, shell = {"agent": "child", **more}, partial(read_shell, workdir=tmp_path)
        return judge(mode, "merge", arguments, _rules(*rules), shell, str, str(tmp_path), own_tree=True).decision

    assert [decided(mode) for mode in (ASK, EDITS, ALL, PLAN)] == ["ask", "allow", "allow", "deny"]
    assert decided(EDITS, check="make test") == "ask"
    assert decided(EDITS, "allow bash make *", check="make test") == "allow"
    assert decided(ASK, "allow merge child") == "allow"
    assert decided(ALL, "deny bash make *", check="make test") == "deny"
    assert decided(ALL, "deny merge child") == "deny"


@pytest.mark.parametrize("mode", [ASK, EDITS, ALL, PLAN])
@pytest.mark.parametrize(
    ("rule", "tool", "arguments"),
    [
        ("deny write src/**", "edit", {"path": "src/a"}),
        ("deny edit src", "write", {"path": "src/deep/a"}),
        ("deny read *.pem", "read", {"path": "link/key.pem"}),
        ("deny read secrets", "grep", {"path": "secrets/key.pem", "pattern": "x"}),
        ("deny read secrets/**", "bash", {"command": "cat link/key.pem"}),
        ("deny read *.pem", "bash", {"command": "cat secrets/*"}),
        ("deny read *.pem", "bash", {"command": "cp secrets/key.pem a"}),
        ("deny write *.lock", "bash", {"command": "echo > poetry.lock"}),
        ("deny read /etc", "read", {"path": "out/passwd"}),
        ("deny bash rm", "bash", {"command": "ls && rm -r a"}),
        ("deny bash rm *", "bash", {"command": "rm"}),
        ("deny bash rm *", "bash", {"command": "/bin/rm a"}),
        ("deny bash rm *", "bash", {"command": "X=1 rm a"}),
        ("deny bash rm *", "bash", {"command": "\\rm a; 'r'm b"}),
        ("deny bash rm *", "bash", {"command": "find . -exec rm {} +"}),
        ("deny bash rm *", "bash", {"command": "ls | xargs -0 /bin/rm"}),
        ("deny bash rm *", "bash", {"command": "env -i PATH=/bin rm a"}),
        ("deny bash rm *", "bash", {"command": "timeout 9 rm a"}),
        ("deny bash rm *", "bash", {"command": "bash -c 'ls; rm a'"}),
        ("deny bash rm *", "bash", {"command": "xargs sh -c 'rm a'"}),
        ("deny bash rm *", "bash", {"command": "eval rm a"}),
        ("deny bash rm *", "bash", {"command": "trap 'rm a' EXIT"}),
        ("deny bash rm *", "bash", {"command": "f() { rm a; }; f"}),
        ("deny bash rm *", "bash", {"command": "for f in *; do rm $f; done"}),
        ("deny bash rm *", "bash", {"command": "echo $(rm a) `rm b`"}),
        ("deny bash rm *", "bash", {"command": "cat <<EOF\n$(rm a)\nEOF"}),
        ("deny * *", "read", {"path": "a"}),
        ("deny mcp_* *", "mcp_thing", {"a": 1}),
        ("deny fork *", "fork", {"name": "a"}),
        ("deny task explore", "task", {"subagent_type": "explore", "prompt": "p"}),
        ("deny task explore", "task", {"subagent_type": " Explore "}),
        ("deny task general-purpose", "task", {"prompt": "p"}),
        ("deny task *", "task", {"agent_id": "abcd", "prompt": "p"}),
        ("deny web_fetch https://evil.example/*", "web_fetch", {"url": "https://evil.example/a"}),
        ("deny web_fetch https://evil.example/*", "web_fetch", {"url": " HTTPS://EVIL.example.:443"}),
        ("deny web_fetch https://evil.example/*", "web_fetch", {"url": "https://\uff45vil.example/a"}),
        ("deny web_fetch https://evil.example/*", "web_fetch", {"url": "https://me@evil.example/a"}),
        ("deny web_fetch https://b.example/admin/*", "web_fetch", {"url": "https://b.example/%61dmin/x"}),
        ("deny read {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "read", {"path": "c"}),  # unreadable: fails closed
    ],
)
def test_a_deny_holds_in_every_mode(
    judged: Judging, mode: PermissionMode, rule: str, tool: str, arguments: dict[str, object]
):
    everything = ("allow * *", "allow bash *", "allow read /**", "ask * nothing")
    assert judged(tool, _rules(*everything, rule), mode, **arguments).decision is Decision.DENY


@pytest.mark.parametrize("command", ["eval $X", "$X a", "if", "a | sh", "bash -c $X"])
def test_what_deny_rules_cannot_be_compared_with_asks_even_in_mode_all(judged: Judging, command: str):
    assert judged("bash", mode=ALL, command=command).decision is Decision.ALLOW
    assert judged("bash", _rules("deny bash rm *", "allow bash *"), ALL, command=command).decision is Decision.ASK


def test_ask_comes_before_allow_and_a_mode_turns_it_into_allow(judged: Judging):
    rules = _rules("allow write **", "ask write *.lock", "ask read notes")
    assert judged("write", rules, path="a").decision is Decision.ALLOW
    assert judged("write", rules, path="x/a.lock").decision is Decision.ASK
    assert judged("write", rules, EDITS, path="x/a.lock").decision is Decision.ALLOW
    assert judged("read", rules, path="notes/a").decision is Decision.ASK
    assert judged("read", rules, EDITS, path="notes/a").decision is Decision.ASK
    assert judged("read", rules, ALL, path="notes/a").decision is Decision.ALLOW
    assert judged("read", rules, PLAN, path="notes/a").decision is Decision.DENY
    assert judged("bash", rules, command="cat notes").decision is Decision.ASK


def test_allow_rules_for_paths_stay_where_they_point(judged: Judging):
    rules = _rules("allow write src/**", "allow read *", "allow read /etc/hosts")
    assert judged("write", rules, path="src/a/b").decision is Decision.ALLOW
    assert judged("write", rules, path="src/../a").decision is Decision.ASK
    assert judged("read", rules, path="/etc/passwd").decision is Decision.ASK
    allowed = judged("read", rules, path="out/hosts")
    assert (allowed.decision, allowed.outside) == (Decision.ALLOW, True)
    assert judged("read", rules, path="a").outside is False


def test_every_part_of_a_command_must_be_allowed(judged: Judging):
    rules = _rules("allow bash git commit *", "allow bash make")
    for command in ("git commit -m x", "git commit", "make", "make && git commit -m x", "timeout 60 make"):
        assert judged("bash", rules, command=command).decision is Decision.ALLOW, command
    for command in ("make x", "git commit -m x && b", "git commit -m $(b)", "make > a", "git committed", "git push"):
        assert judged("bash", rules, command=command).decision is Decision.ASK, command


def test_plan_mode_lets_no_rule_write(judged: Judging):
    rules = _rules("allow * *", "allow bash *")
    assert judged("write", rules, PLAN, path="a").decision is Decision.DENY
    assert judged("bash", rules, PLAN, command="touch a").decision is Decision.DENY
    assert judged("mcp_look", rules, PLAN).decision is Decision.ALLOW


def test_rules_for_tasks_speak_of_the_type(judged: Judging):
    rules = _rules("deny task explore", "ask task plan")
    assert judged("task", rules, subagent_type="explorer").decision is Decision.ALLOW
    assert judged("task", rules, prompt="explore").decision is Decision.ALLOW
    assert judged("task", rules, subagent_type="plan").decision is Decision.ASK
    # Who goes on was judged when it began.
    assert judged("task", _rules("deny task general-purpose"), agent_id="abcd").decision is Decision.ALLOW
    assert says(rules, "task", "explore") is Decision.DENY
    assert says(rules, "task", "plan") is Decision.ASK
    assert says(rules, "task", "other") is None


def test_a_refusal_names_the_most_careful_mode_that_would_allow(judged: Judging):
    for tool, arguments, mode in [
        ("write", {"path": "a"}, "edits"),
        ("bash", {"command": "touch a"}, "all"),
        ("read", {"path": "/etc/passwd"}, "all"),
    ]:
        verdict = judged(tool, **arguments)
        message, hint = refusal(verdict, tool)
        assert f"--permission-mode {mode}" in hint
        assert verdict.reason in message
    planned = judged("write", _rules("allow write **"), PLAN, path="a")
    assert "--permission-mode ask" in refusal(planned, "write").hint
    denied = judged("read", _rules("deny read *"), path="a")
    assert "--permission-mode" not in refusal(denied, "read").hint


def test_a_child_without_rules_of_its_own_has_its_parents():
    parent = _rules("allow write src/**")
    assert intersect(parent, []) == parent


def test_a_childs_rules_only_narrow(judged: Judging):
    parent = _rules("allow write src/**", "deny bash curl *")
    child = intersect(parent, [_rule("allow write src/a/**"), _rule("allow bash *"), _rule("deny read *.pem")])
    assert judged("write", child, path="src/a/x").decision is Decision.ALLOW
    assert judged("write", child, path="src/b").decision is Decision.ASK
    assert judged("bash", child, command="touch a").decision is Decision.ASK
    assert judged("bash", child, ALL, command="curl x").decision is Decision.DENY
    assert judged("read", child, path="secrets/key.pem").decision is Decision.DENY
    grandchild = intersect(child, [_rule("allow write **")])
    assert judged("write", grandchild, path="src/b").decision is Decision.ASK


_TOOLS = st.sampled_from(["read", "write", "edit", "grep", "bash", "mcp_x", "*"])
_PATTERNS = st.sampled_from(
    ["*", "**", "a", "a/*", "a/**", "*.py", "/etc/**", "ls", "ls *", "rm *", "git *", "a && b", "{a,b}", "[", "rm"]
)
_RULE_LISTS = st.lists(st.builds(Rule, st.sampled_from(Decision), _TOOLS, _PATTERNS), max_size=4)
_CALLS = st.one_of(
    st.tuples(
        st.sampled_from(["read", "write", "edit", "grep"]),
        st.fixed_dictionaries({"path": st.sampled_from(["a", "a/b", "a/b.py", "/etc/passwd", "..", "."])}),
    ),
    st.tuples(
        st.just("bash"),
        st.fixed_dictionaries(
            {
                "command": st.sampled_from(
                    ["ls", "ls a", "rm a", "ls; rm a", "git log", "a && b", "env rm", "if", "ls > a"]
                )
            }
        ),
    ),
    st.tuples(st.just("mcp_x"), st.just({"path": "a"})),
)
_STRICT = {Decision.DENY: 0, Decision.ASK: 1, Decision.ALLOW: 2}


@given(st.sampled_from(PermissionMode), _RULE_LISTS, st.lists(_RULE_LISTS, max_size=3), _CALLS)
def test_no_chain_of_children_may_more_than_its_parent(
    mode: PermissionMode, own: list[Rule], below: list[list[Rule]], call: tuple[str, dict[str, str]]
):
    # A directory that is always there and never changed: what matters here is the rules.
    work = Path("/usr")
    shell, where = partial(read_shell, workdir=work), partial(locate, work)
    tool, arguments = call
    known = Permissions.of(own)
    verdict = judge(mode, tool, arguments, known, shell, where, str(work))
    for rules in below:
        known = intersect(known, rules)
        assert Permissions.from_json(json.loads(json.dumps(known.to_json()))) == known
        child = judge(mode, tool, arguments, known, shell, where, str(work))
        assert _STRICT[child.decision] <= _STRICT[verdict.decision]
        verdict = child


@pytest.mark.parametrize("value", [None, 1, [[{"effect": "allow"}]], [[{"effect": "x", "tool": "a", "pattern": "b"}]]])
def test_json_that_is_no_permissions_is_refused(value: object):
    with pytest.raises(ValueError, match=r"permissions|Decision"):
        Permissions.from_json(value)


def test_an_empty_row_means_no_rules():
    assert Permissions.from_json([]) == Permissions()


def test_a_deny_holds_for_other_cases_of_letters_brackets_and_absolute_patterns(tmp_path: Path):
    (tmp_path / "link").symlink_to("/etc")

    def decision(rule: str, path: str) -> Decision:
        where, shell = partial(locate, tmp_path), partial(read_shell, workdir=tmp_path)
        return judge(ALL, "read", {"path": path}, _rules(rule), shell, where, str(tmp_path)).decision

    for rule, path in [
        ("deny read *.pem", "a/KEY.PEM"),
        ("deny read app/[id]/**", "app/[id]/page"),
        ("deny read app/[id]/**", "app/i/page"),
        (f"deny read {tmp_path}/a/**", "a/b"),
        (f"deny read {tmp_path}", "a"),
        ("deny read link/**", "link/passwd"),
        ("deny read caf\u00e9", "cafe\u0301"),
    ]:
        assert decision(rule, path) is Decision.DENY, rule
    for rule, path in [("deny read a/**", "ab"), (f"deny read {tmp_path.name}", "a"), ("deny read tmp", "a")]:
        assert decision(rule, path) is Decision.ALLOW, rule


def test_an_allow_rule_with_an_absolute_pattern_covers_the_working_directory(tmp_path: Path):
    rules = _rules(f"allow write {tmp_path}/src/**")
    where, shell = partial(locate, tmp_path), partial(read_shell, workdir=tmp_path)

    def decision(path: str) -> Decision:
        return judge(ASK, "write", {"path": path}, rules, shell, where, str(tmp_path)).decision

    assert decision("src/a") is Decision.ALLOW
    assert decision("src/../a") is decision("SRC/a") is Decision.ASK
