"""What a rule that a person made with "always" allows, and what tries to hide behind it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from agentmesh.domain.permissions import Decision, Layer, Permissions, Rule, judge, uncovered
from agentmesh.domain.states import PermissionMode
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import read_shell


def rules(*texts: str) -> Layer:
    return tuple(Rule(Decision.ALLOW, *text.split(" ", 1)) for text in texts)


@pytest.fixture
def decision(tmp_path: Path):
    def judged(command: str, *always: str) -> Decision:
        shell, where = partial(read_shell, workdir=tmp_path), partial(locate, tmp_path)
        arguments, root = {"command": command}, str(tmp_path)
        return judge(PermissionMode.ASK, "bash", arguments, Permissions(), shell, where, root, rules(*always)).decision

    return judged


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "pytest -q",
        "pytest -k 'a or b' tests",
        'pytest "x y"',
        "'pytest' -q",
        "pytest && pytest -x",
        "pytest -q | tail -5",
        "cd . && pytest",
        "timeout 60 pytest -q",
        "pytest 2>&1 | tail",
        "pytest \\\n -q",
        "pytest $X",
        "pytest [a-z]*",
        "env pytest -q",
    ],
)
def test_a_prefix_covers_the_command_with_any_arguments(decision, command: str):
    assert decision(command, "bash pytest *") is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "pytest; rm -rf x",
        "pytest && rm x",
        "pytest || rm x",
        "pytest | sh",
        "pytest | tee x",
        "pytest & rm x",
        "pytest &rm x",
        "pytest\nrm x",
        "pytest\r\nrm x",
        "pytest\r rm x",
        "pytest # x\nrm x",
        "pytest \\\n; rm x",
        "pytest $(rm x)",
        "pytest `rm x`",
        'pytest "$(rm x)"',
        'pytest "`rm x`"',
        "pytest <(rm x)",
        "pytest >(rm x)",
        "pytest $((x=$(rm y)))",
        "pytest ${X:-$(rm x)}",
        "pytest ${X:=$(rm x)}",
        "pytest <<E\n$(rm x)\nE",
        "pytest <<< $(rm x)",
        "pytest > x",
        "pytest >> x",
        "pytest &> x",
        "pytest >| x",
        "pytest 2> x",
        "pytest >x -q",
        "> x pytest",
        "pytest < /etc/passwd",
        "(pytest; rm x)",
        "{ pytest; rm x; }",
        "(pytest) > x",
        "if pytest; then rm x; fi",
        "while pytest; do rm x; done",
        "for x in $(rm y); do pytest; done",
        "! pytest || rm x",
        "f() { rm x; }; pytest",
        "pytest() { rm x; }; pytest",
        "alias pytest=rm; pytest x",
        "PATH=. pytest",
        "LD_PRELOAD=./x.so pytest",
        "PYTEST_ADDOPTS=-p\\ evil pytest",
        "X=1 pytest",
        "X=$(rm y) pytest",
        "export PATH=.; pytest",
        "PATH=.; pytest",
        "env PATH=. pytest",
        "sudo pytest",
        "nohup pytest",
        "exec pytest",
        "xargs pytest",
        "eval pytest",
        "bash -c pytest",
        "sh -c 'pytest; rm x'",
        "source pytest",
        ". pytest",
        "trap 'rm x' EXIT; pytest",
        "coproc rm x; pytest",
        "./pytest",
        "/tmp/pytest",
        "../pytest -q",
        "~/pytest",
        "pytest.sh",
        "pytest-evil x",
        "pytestx",
        "Pytest -q",
        "p\u0443test -q",
        "pytest\u00a0-q",
        "pytest\u2028rm x",
        "pytest\u200b -q",
        "\u202epytest -q",
        "pytest\x00rm",
        "pytest\x0brm x",
        "'pytest -q'",
        '"pytest ;" x',
        "$'pytest\\x20-q'",
        "pytest' '-q",
        "py''test' 'x",
        "$X pytest",
        "p${X}test",
        "pyt?st -q",
        "{pytest,rm} x",
        "pytest {a,$(rm x)}",
        "time -o x pytest",
        "[[ $(pytest) ]] && rm x",
        "case x in x) rm y;; esac; pytest",
        "select x in a; do rm x; done; pytest",
        "pytest '",
        "pytest )",
        "pytest |",
        "pytest &&",
        "pytest ;; rm x",
        "pytest\\\nrm x",
        "set -e; pytest",
        "shopt -s expand_aliases; pytest",
        "hash -p /bin/rm pytest; pytest",
        "enable -f ./x.so pytest; pytest",
        "PROMPT_COMMAND=rm; pytest",
        "command -p pytest; rm x",
    ],
)
def test_nothing_hides_behind_a_prefix(decision, command: str):
    assert decision(command, "bash pytest *") is not Decision.ALLOW


def test_each_part_of_a_line_may_have_a_rule_of_its_own(decision):
    assert decision("pytest && mypy . > log", "bash pytest *", "bash mypy *", "bash > log") is Decision.ALLOW
    assert decision("pytest && mypy . > log2", "bash pytest *", "bash mypy *", "bash > log") is Decision.ASK


@pytest.mark.parametrize(
    ("command", "always"),
    [
        ("pytest -q tests", ["pytest *"]),
        ("cd sub && python -m pytest > log", ["cd sub", "python -m pytest *", "> log"]),
        ("npm run test && git add .", ["npm run test *", "git add *"]),
        ("sudo pytest", ["sudo pytest"]),
        ("X=1 pytest", ["X=1 pytest"]),
        ("python x.py a[1]", ["python x.py a[[]1]"]),
        ("pytest | sh", ["pytest *", "sh", "pytest | sh"]),
    ],
)
def test_a_call_that_asks_proposes_a_rule_for_each_part(tmp_path: Path, command: str, always: list[str]):
    (tmp_path / "sub").mkdir()
    shell, where = partial(read_shell, workdir=tmp_path), partial(locate, tmp_path)
    given = (PermissionMode.ASK, "bash", {"command": command}, Permissions(), shell, where, str(tmp_path))
    verdict = judge(*given)
    assert [rule.pattern for rule in verdict.always] == always
    again = judge(*given, verdict.always)
    assert again.decision is Decision.ALLOW


@pytest.mark.parametrize(
    ("always", "left"),
    [
        (["bash pytest *", "bash > log"], ""),
        (["bash pytest -q *", "bash > log"], ""),
        (["bash > log"], "pytest -q x"),
        (["bash pytest -x *", "bash > log"], "pytest -q x"),
        (["bash pytest *"], "> log"),
        (["write log", "bash pytest *"], "> log"),
        ([], "pytest -q x"),
    ],
)
def test_edited_rules_must_still_cover_the_call(tmp_path: Path, always: list[str], left: str):
    shell, where = partial(read_shell, workdir=tmp_path), partial(locate, tmp_path)
    proposed = rules("bash pytest *", "bash > log")
    arguments = {"command": "cat a && pytest -q x > log"}
    assert uncovered("bash", arguments, proposed, rules(*always), shell, where, str(tmp_path)) == left


def test_a_path_may_be_allowed_by_a_narrower_or_a_wider_rule(tmp_path: Path):
    shell, where = partial(read_shell, workdir=tmp_path), partial(locate, tmp_path)
    given, proposed, root = {"path": "src/a/x.py"}, rules("write src/a/**"), str(tmp_path)
    assert uncovered("write", given, proposed, rules("write src/**"), shell, where, root) == ""
    assert uncovered("edit", given, proposed, rules("write src/a/x.py"), shell, where, root) == ""
    assert uncovered("write", given, proposed, rules("write lib/**"), shell, where, root) == "src/a/x.py"
