"""Whether rules withhold a file: the answer for many paths is the one that each alone would get from ``judge``."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.permissions import Decision, Layer, Permissions, Rule, judge
from agentmesh.domain.shell import ShellReading
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.withheld import withheld

ROOT = "/w/d"
_NAMES = st.sampled_from(["a", "b", "A", "x.pem", "X.PEM", "[id]", "i", "w", "d", ".env", "\u00e9", "e\u0301"])
_PATHS = st.one_of(
    st.just("."),
    st.lists(_NAMES, min_size=1, max_size=5).map("/".join),
    st.lists(_NAMES, min_size=0, max_size=4).map(lambda names: "/" + "/".join(names)),
)
_PATTERNS = st.one_of(
    st.sampled_from(
        [
            "*",
            "*.pem",
            "a/**",
            "**/b",
            "/w/d/a",
            "/w/**",
            "/w",
            "w",
            "a/",
            "[id]",
            "[id]/**",
            "{a,b}",
            "{a",
            "/",
            "\u00e9",
        ]
    ),
    st.text(alphabet="ab*[]{},/w.d?", min_size=1, max_size=8),
)
_TOOLS = st.sampled_from(["read", "grep", "glob", "*", "r*", "bash", "write"])
_RULES = st.builds(Rule, st.sampled_from(list(Decision)), _TOOLS, _PATTERNS)
_LAYERS = st.lists(_RULES, max_size=4).map(tuple)


def _shell(command: str) -> ShellReading:
    return ShellReading(command, ())


@given(
    st.lists(_LAYERS, min_size=1, max_size=3).map(lambda layers: Permissions(tuple(layers))),
    st.sampled_from([PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL]),
    st.lists(st.builds(Rule, st.just(Decision.ALLOW), _TOOLS, _PATTERNS), max_size=2).map(tuple),
    st.sampled_from(["read", "grep", "glob"]),
    st.lists(_PATHS, min_size=1, max_size=6),
)
def test_what_is_withheld_is_what_judge_does_not_let_be_read(
    rules: Permissions, mode: PermissionMode, session: Layer, tool: str, paths: list[str]
):
    asked = mode is not PermissionMode.ALL
    found = withheld(rules, tool, asked=asked, session=session, root=ROOT)
    for path in paths:
        verdict = judge(mode, tool, {"path": path}, rules, _shell, lambda path: path, ROOT, session)
        by_rule = verdict.decision is Decision.DENY or verdict.reason.startswith("a rule asks")
        assert (found is not None and found(path)) == by_rule, (path, verdict)


def test_without_rules_that_restrict_nothing_is_asked():
    allowing = Permissions.of([Rule(Decision.ALLOW, "read"), Rule(Decision.DENY, "bash"), Rule(Decision.ASK, "write")])
    assert withheld(allowing, "grep", asked=True) is None
    asking = Permissions.of([Rule(Decision.ASK, "read", ".env")])
    assert withheld(asking, "grep", asked=False) is None
    found = withheld(asking, "grep", asked=True)
    assert found is not None
    assert found("x/.env")


def test_a_path_of_thousands_of_folders_has_an_answer():
    found = withheld(Permissions.of([Rule(Decision.DENY, "read", "*.pem")]), "bash", asked=True, root=ROOT)
    assert found is not None
    assert found("a/" * 5000 + "x.pem")
    assert not found("a/" * 5000 + "x")


@pytest.mark.timing
def test_a_hundred_thousand_paths_are_answered_in_seconds():
    texts = ("*.pem", ".env", "secrets/**", "/home/**/.ssh", "{id_rsa,id_ed25519}")
    found = withheld(Permissions.of(Rule(Decision.DENY, "read", text) for text in texts), "bash", asked=True, root=ROOT)
    assert found is not None
    paths = [f"src/package{n // 1000}/part{n // 50}/module{n}.py" for n in range(100_000)]
    started = time.process_time()
    assert not any(map(found, paths))
    assert time.process_time() - started < 5
