"""What rules that deny find in a command line: however a command is called, and not where only its name is."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from agentmesh.domain.permissions import Decision, Permissions, Rule, judge
from agentmesh.domain.states import PermissionMode
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import read_shell


def decided(work: Path, command: str, *rules: Rule, mode: PermissionMode = PermissionMode.ALL) -> Decision:
    shell, where = partial(read_shell, workdir=work), partial(locate, work)
    return judge(mode, "bash", {"command": command}, Permissions.of(rules), shell, where, str(work)).decision


def deny(pattern: str) -> Rule:
    return Rule(Decision.DENY, "bash", pattern)


@pytest.mark.parametrize(
    "options",
    [
        "-C .", "-C a -C b", "-C push", "--no-pager", "-P", "-p", "--paginate", "-c a=b", "-c a=b -c c=d -C .",
        "--bare",
        "--git-dir=.git", "--git-dir .git", "--work-tree .", "--work-tree=.", "--namespace x", "--namespace=x",
        "--exec-path=/x", "--config-env=a=B", "--config-env a=B", "--super-prefix=x/",
        "--no-replace-objects",
        "--literal-pathspecs", "--no-optional-locks", "--an-option-of-tomorrow", '-C "$D"', "$OPTIONS", '"$OPTION"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "/usr/bin/", "env ", "firejail --quiet ", "A=1 ", "timeout 5 "])
def test_a_deny_of_a_subcommand_of_git_holds_whatever_options_stand_before_it(
    tmp_path: Path, before: str, options: str
):
    assert decided(tmp_path, f"{before}git {options} push o x", deny("git push *")) is Decision.DENY
    assert decided(tmp_path, f"{before}git {options} fetch o", deny("git push *")) is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "setarch -R rm f", "setarch x86_64 -R rm f", "linux64 rm f", "prlimit --cpu=1 rm f", "choom -n 1 -- rm f",
        "chronic rm f", "xvfb-run -a rm f", "firejail --net=none rm f", "bwrap --bind / / rm f", "numactl -N 0 rm f",
        "dbus-run-session -- rm f", "systemd-inhibit rm f", "systemd-run --user rm f", "unbuffer rm f", "ts rm f",
        "start-stop-daemon -S -x /bin/rm -- f", "rlwrap rm f", "cpulimit -l 5 -- rm f", "pkexec rm f", "gosu me rm f",
        "hyperfine 'rm f'", "uv run rm f", "uv run --with x rm f", "uvx rm f", "npx rm f", "npx -c 'rm f'",
        "npm exec rm f", "pnpm dlx rm f", "poetry run rm f", "pipenv run rm f", "bundle exec rm f", "hatch run rm f",
        "docker run -v .:/w image rm f", "docker compose exec web rm f", "kubectl exec pod -- rm f",
        "kubectl -n web exec pod -- rm f", "git bisect run rm f", "git -C . submodule foreach rm f", "fd -x rm",
        "tmux new rm f", "entr rm f", "arch -x86_64 rm f", "nobody-knows-this rm f", "./with-settings /bin/rm f",
        "nobody-knows-this bash -c 'rm f'", "nobody-knows-this firejail rm f", "find . -exec nobody-knows-this rm {} ;",
    ],
)  # fmt: skip
def test_a_deny_holds_for_a_command_that_another_runs_or_may_run(tmp_path: Path, command: str):
    assert decided(tmp_path, command, deny("rm *")) is Decision.DENY
    asking = Rule(Decision.ASK, "bash", "rm *"), Rule(Decision.ALLOW, "bash", "*")
    assert decided(tmp_path, command, *asking, mode=PermissionMode.ASK) is Decision.ASK


@pytest.mark.parametrize(
    "command",
    [
        "echo rm", "echo rm f", "printf rm", "grep rm file", "grep -rn rm .", "rg rm", "man rm", "which rm", "type rm",
        "command -v rm.txt", "whereis rm", "info rm", "tldr rm", "cat rm", "ls rm", "cd rm", "test -e rm", "[ -e rm ]",
        "git rm f", "git -C . rm f", "git log rm", "git commit -m rm", "git commit -m 'rm the file'", "git branch rm",
        "git add rm", "mkdir rm", "touch rm", "cp rm a", "mv a rm", "tar cf a.tar rm", "zip a.zip rm", "curl host/rm",
        "pip install rm", "npm install rm", "npm run rm", "npm uninstall rm", "apt install rm", "docker rm x",
        "docker compose.yml rm", "kubectl delete pod rm", "cargo add rm", "uv add rm", "uv pip install rm", "make rm",
        "just rm", "pytest rm", "ruff check rm", "python rm", "python a.py rm", "node a.js rm", "sed s/a/b/ rm",
        "awk 1 rm", "kill rm", "fd rm", "jq . rm", "wc -l rm", "diff rm a", "nobody-knows-this farm",
        "nobody-knows-this --rm f", "nobody-knows-this 'rm f'", "find . -name rm",
    ],
)  # fmt: skip
def test_the_name_of_a_denied_command_is_no_command_where_files_and_texts_are(tmp_path: Path, command: str):
    assert decided(tmp_path, command, deny("rm *")) is Decision.ALLOW


def test_allow_rules_speak_of_the_command_itself_only(tmp_path: Path):
    allowing = Rule(Decision.ALLOW, "bash", "rm *"), Rule(Decision.ALLOW, "bash", "git push *")
    for command in ("nobody-knows-this rm f", "uv run rm f", "firejail rm f", "git -C . push", "git -c a=b push"):
        assert decided(tmp_path, command, *allowing, mode=PermissionMode.ASK) is Decision.ASK


def test_no_pattern_allows_a_wrapper(tmp_path: Path):
    for wrapper in ("setarch", "prlimit", "firejail", "chronic", "xvfb-run", "choom"):
        allowing = Rule(Decision.ALLOW, "bash", f"{wrapper} *")
        assert decided(tmp_path, f"{wrapper} rm f", allowing, mode=PermissionMode.ASK) is Decision.ASK


@pytest.mark.parametrize("name", ["nobody-knows-this", "env"])
def test_a_line_of_many_words_is_judged_in_time(tmp_path: Path, name: str):
    begun = time.perf_counter()
    assert decided(tmp_path, f"{name} {'a ' * 5_000} rm f", deny("rm *")) is Decision.DENY
    assert time.perf_counter() - begun < 10
