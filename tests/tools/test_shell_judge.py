from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.permissions import Decision, Permissions, Rule, judge
from agentmesh.domain.shell import ShellReading
from agentmesh.domain.states import PermissionMode
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import read_shell


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory with a way out in it."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    for name in ("a", "b.py", "src/c.py"):
        (work / name).write_text("x\n")
    (work / "leak").symlink_to("/etc/passwd")
    (work / "out").symlink_to("/etc")
    return work


def _only_reads(reading: ShellReading) -> bool:
    return not reading.problem and all(part.read_only for part in reading.parts)


_READ_ONLY = [
    "ls", "ls -la src", "cat a b.py", "head -n 5 a", "wc -l *.py src/*.py", "cat ./*.py", "pwd; whoami",
    "true || false", "git status", "git --no-pager log --oneline -5 | head -3", "git diff --stat HEAD~1",
    "git log main..dev -- src", "git show HEAD:a", "git branch", "git branch -vv --list 'x*'",
    "git branch --merged main", "git tag -l 'v*'", "git remote -v", "git stash list",
    "git log --grep=/x/ -S '/y'", "git blame src/c.py", "grep -rn '/api/v1' src", "grep -e /x/ -e y a",
    "rg -n --glob '*.py' /x/ src", "find . -name '*.py' -type f", "find src -not -path './x/*'",
    "sed -n 1,20p a", "sed -n '/x/,/y/p;3q' a", "sed 's/a/b/g' a", "sed -n -e 2p a",
    "sort -u a | uniq -c | sort -rn", "sort -k2 -t, a", "cut -d / -f 1 a", "tr a-z A-Z < a", "diff a b.py",
    "echo hi $USER $(date +%s) \"$HOME/x\"", "printf '%s\\n' \"$USER\"", "cat a 2>/dev/null",
    "ls 2>&1 >/dev/null", "cat <<EOF\nhi $USER\nEOF", "cat <<< text", "[ -f a ] && echo yes",
    "test -d src || echo no", "if ls; then pwd; fi", "cd src && ls", "cd . && git status", "(cd src; cat c.py)",
    "{ ls; pwd; }", "! ls", "ls &", "timeout 5 ls -l", "time ls", "env", "nice cat a", "command -v git",
    "which git", "ps aux | grep x", "date -u +%F", "tree -L 2", "file -b a", "stat a", "du -sh .", "df",
    "cat $F", "cat \"$F\"", "cat ${F:-a}", "cat $(ls)", "read X", "grep -R x .", "ls | xargs cat", "xargs ls",
    "cd src && git status", "cat a/{..,b}/x", "X=1", "find . -exec ls {} +", "[[ -f a ]]", "diff -r src src",
    "awk 1 a", "for f in *; do ls; done",
    "jq '.a' a", "basename /x/y", "ls \\\n -l", "ls # a comment\npwd", "seq 5",
]  # fmt: skip


@pytest.mark.parametrize("command", _READ_ONLY)
def test_commands_that_only_read_are_known(work: Path, command: str):
    reading = read_shell(command, work)
    assert _only_reads(reading), reading


_NOT_READ_ONLY = [
    # writing
    "touch a", "rm a", "echo x > a", "ls >> a", "ls &> a", "ls >| a", "ls 3> a", ">a", "sort -o a b.py",
    "sort --outp=a", "uniq a b", "uniq -- a -b", "sed -i s/x/y/ a", "sed 's/x/y/w a' a", "sed -n '1w a' a",
    "sed -n '1e rm a' a", "sed 's/[/]x/w a/' a", "sed -f a a", "sed --in-place p a", "tree -o a",
    "find . -delete", "find . -fprintf a x", "date -s 0", "hostname x", "file -C", "xxd a b", "tee a",
    "git branch new", "git branch -D a", "git tag v1", "git stash", "git remote add a b", "git worktree add a",
    "git add a", "git diff --output=a", "git diff --outp=a", "git -C src commit", "git -C sr* log",
    "x=a*; git -C $x log", "for i in a*; do git -C $i log; done", "git --git-dir=src log",
    "printf -v PATH x", "printf -vPATH x",
    # running something else
    "find . -ok ls {} +", "env -u X ls", "env X=1 ls",
    "sudo ls", "eval ls", "source a", ". ./a", "bash a", "bash -c ls", "sh", "trap ls EXIT", "alias ls=rm",
    "exec ls", "coproc ls", "git -c core.pager=rm log", "git -ccore.pager=rm log", "git log --ext-diff",
    "git grep -Orm x", "git grep --open x", "git difftool", "git st", "rg --pre rm x", "rg --pre=rm x",
    "sort --compress-program=rm a", "python a", "./ls", "/bin/ls", "/proc/self/root/bin/ls",
    "/lib64/ld-linux-x86-64.so.2 /bin/ls", "watch ls", "git diff -p --textconv",
    # variables, functions, what cannot be known
    "X=1 ls", "PATH=/tmp; ls", "export PATH=/tmp", "declare -x A=1", "unset PATH", "readonly A",
    "a=(1 2)", "ls() { rm a; }; ls", "function ls { rm a; }", "$X", "l$X", "$(echo ls)", "`echo ls`",
    "ls$IFS-l", "$'ls'", "{ls,-l}", "echo $((PATH=5))",
    "echo ${X:=1}", ": ${PATH:=a}", "((PATH=5))", "cat <<EOF\n$((PATH=5))\nEOF", "let PATH=5",
    "for PATH in a; do ls; done", "case a in a) ls;; esac",
    "[ -v 'a[$(rm a)]' ]", "test -v 'a[$(rm a)]'", "set -- a", "hash -p /tmp/x ls", "enable -f a b",
    "shopt -s expand_aliases", "printf $(cat a)", "git log $X",
    # reading outside
    "cat /etc/passwd", "cat ~/.ssh/id_rsa", "cat ~root/x", "cat ../x", "ls /", "ls src/../..", "cat leak",
    "cat out/passwd", "cat l*", "cat o*/passwd", "ls [o]ut/", "cat < /etc/passwd", "cat < leak",
    "grep x -f/etc/passwd", "echo /etc/*", "grep --file=/etc/passwd x", "grep -f leak x", "grep -rf leak x",
    "grep --fi leak x", "grep --color x leak", "rg -f leak x", "rg --files out", "sed -ne p leak",
    "git diff --pretty /etc/passwd a", "jq . leak", "cut -d : -f 1 leak", "find / -name x",
    "find . -L", "find . -newer /etc/x", "rg -L x", "cd /", "cd", "cd -",
    "cd .. && ls", "cd out && ls", "cat {/etc/passwd,a}", "cat src/{../..,b}/x", "echo ~",
    "cat /proc/self/environ", "cat /dev/tcp/x/1", "head -c5 /etc/passwd", "git diff --no-index a b.py",
    "git diff /etc/passwd /etc/group", "ps auxe", "ps e", "wc --files0-from=/etc/x", "test -f /etc/passwd",
    "[ /etc/passwd -nt a ]", "cat <(cat /etc/passwd)", "cat \"../x\"", "cat '../x'", "cat ..\\/x",
    # options that a file's name could be
    "sort *", "find *", "git diff *",
    # what bash may see in another way
    "if", "a (", "ls |", "ls\u00a0-l", "ls\u200b", "l\\\ns", "\u0441at a", "ls\r", "cat <<A <<B\nx\nA\ny\nB",
    "cat <<E\"F\"\nx\nEF\nrm a", "echo $\"x\"", "ls {fd}>a", "a" * 70_000, "(" * 100 + "ls" + ")" * 100,
]  # fmt: skip


@pytest.mark.parametrize("command", _NOT_READ_ONLY)
def test_everything_else_asks(work: Path, command: str):
    assert not _only_reads(read_shell(command, work))


_SMUGGLED = [
    "a && b", "a; b", "a & b", "a | b", "a |& b", "a || b", "a\nb", "a $(b)", "a `b`", "a \"$(b)\"", "a <(b)",
    "a >(b)", "a ${x:-$(b)}", "a $((x[$(b)]))", "X=1 b", "X=$(b) a", "X=1 a", "env b", "env -i b",
    "export PATH=/tmp; a", "PATH=/tmp a", "declare -x PATH=/tmp; a", "git -c core.pager=b log",
    "git --exec-path=/b log", "find . -exec b {} +", "find . -execdir b {} +", "a | xargs b", "xargs b",
    "xargs a b", "a <<EOF\n$(b)\nEOF", "a <<EOF | b\nx\nEOF", "a <<EOF && b\nx\nEOF", "a <<EOF\nx\nEOF\nb",
    "a <<< $(b)", "b <<EOF\na\nEOF", "/proc/self/root/bin/b", "/proc/self/root/bin/a", "/bin/a", "./a",
    "/lib64/ld-linux-x86-64.so.2 /bin/b", "ld-linux-x86-64.so.2 b", "\u0430", "a\u00a0&& b", "a\u2028b", "a\rb",
    "a \\\n&& b", "a\\\nb", "if a; then b; fi", "while b; do a; done", "! b", "{ b; }", "(b)", "time b",
    "coproc b", "case a in a) b;; esac", "for i in a; do b; done", "a() { b; }; a", "function a { b; }; a",
    "trap b EXIT; a", "alias a=b; a", "hash -p /b a; a", "eval b", "eval \"b\"", "bash -c b", "sh -c 'a; b'",
    "source b", ". b", "exec b", "command b", "builtin b", "nohup b", "timeout 1 b", "nice b", "sudo b",
    "busybox b", "$'b'", "$X", "\"$X\"", "a > b", "a >> ~/.bashrc", "a &> x", "> x", "a # c\nb", "a;b", "a&&b",
    "[[ x[$(b)] -eq 1 ]]", "((x[$(b)]))", "a $'\\x24(b)'; b", "\"a b\"", "'a b'", "a'b'", "a\\ b", "(a; b)",
    "a; (b", "unset a; b", "a 2>&1 | b", "a <b >c",
]  # fmt: skip
_ALLOWING = [
    "a",
    "a *",
    "git *",
    "git log*",
    "find *",
    "xargs *",
    "env *",
    "bash *",
    "sh *",
    "eval *",
    "timeout *",
    "X=1 a",
]


@pytest.mark.parametrize("command", _SMUGGLED)
def test_no_allow_rule_for_one_command_lets_another_run(work: Path, command: str):
    # Alone among them, `X=1 a` is what the last rule says in so many words.
    allowing = [pattern for pattern in _ALLOWING if pattern != command]
    rules = Permissions.of(Rule(Decision.ALLOW, "bash", pattern) for pattern in allowing)
    shell, where = partial(read_shell, workdir=work), partial(locate, work)
    verdict = judge(PermissionMode.ASK, "bash", {"command": command}, rules, shell, where, str(work))
    assert verdict.decision is Decision.ASK


_JOINTS = st.sampled_from([" ; ", " && ", " || ", " | ", "\n", " & ", " |& ", ";", "\n\n"])
_WRAPS = st.sampled_from(
    ["{}", "({})", "{{ {}; }}", "! {}", "echo $({})", 'echo "`{}`"', "if {}\nthen ls\nfi", "cat <({})"]
)


@given(st.lists(st.sampled_from(["ls", "pwd", "echo x", "cat a"]), min_size=1, max_size=4), _JOINTS, _WRAPS, st.data())
def test_a_command_hidden_anywhere_among_harmless_ones_is_found(
    harmless: list[str], joint: str, wrap: str, data: st.DataObject
):
    place = data.draw(st.integers(0, len(harmless)))
    commands = [*harmless[:place], wrap.format("evil --now"), *harmless[place:]]
    reading = read_shell(joint.join(commands), Path("/usr"))
    assert reading.problem or any(part.text == "evil --now" and not part.read_only for part in reading.parts)


@given(st.text(st.sampled_from("ab -;&|<>()[]{}$`'\"\\\n*?~=#!/.,1x@%+["), max_size=40))
def test_any_text_is_read_without_an_exception(command: str):
    assert read_shell(command, Path("/usr")).command == command


def test_rules_see_words_without_quotes_and_the_command_in_a_wrapper(work: Path):
    texts = [part.text for part in read_shell("'g'it commit -m \"a b\" --no'-'edit; timeout 5 make all", work).parts]
    assert texts == ["git commit -m 'a b' --no-edit", "make all"]


def test_a_reason_names_the_part_that_is_not_read_only(work: Path):
    reading = read_shell("ls && cat /etc/passwd", work)
    assert "/etc/passwd is outside" in "".join(part.reason for part in reading.parts)
