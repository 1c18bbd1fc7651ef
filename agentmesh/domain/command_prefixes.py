"""Prefixes of commands that a rule may allow: which to propose for a command, and which would allow too much.

A command that runs other programs is never proposed by a prefix: ``python *`` or ``npx *`` allows any program.
"""

from __future__ import annotations

import fnmatch
import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOOLS = _names("""
    biome black clang-format clang-tidy ctest eslint flake8 gofmt golangci-lint hadolint isort jest markdownlint
    mocha mypy phpstan phpunit prettier pylint pyright pytest py.test rspec rubocop ruff rustfmt shellcheck shfmt
    stylelint tsc vitest vulture yamllint
""")
"""Programs with one purpose: their arguments name files and options, not other programs."""
_SUBCOMMANDS = _names("""
    apt apt-get brew bundle cargo docker dotnet gh git go gradle helm hg kubectl make mix mvn npm pip pip3 pnpm
    poetry podman rustup svn systemctl terraform uv yarn
""")
"""Programs whose first word is a subcommand: ``git commit``. What ``rm`` takes are files."""
_RUNS_OTHERS = _names("""
    alias api bisect compose config console container debug difftool dlx eval exec explore extension filter-branch
    for-each-repo foreach generate mergetool node plugin rebase run shell submodule tool x
""")
"""Subcommands that run what their arguments say, or that decide what later commands run."""
_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""Programs whose ``run`` takes the name of a script of the project."""
_MODULES = _TOOLS | {"build", "compileall", "unittest"}
"""Modules of Python that have one purpose."""
_ENVIRONMENTS = {
    "bundle": "exec",
    "hatch": "run",
    "npx": "",
    "pdm": "run",
    "pipenv": "run",
    "poetry": "run",
    "rye": "run",
    "uv": "run",
    "uvx": "",
}
"""Programs that run the command after them in an environment, and the subcommand that does it."""
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)*)?")
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|nodejs|deno|bun|ruby|perl|php|lua|luajit|tclsh|wish|Rscript|julia|java|awk|gawk|mawk|nawk|osascript"
    r"|irb|ghci|scala|groovy|elixir|erl|make|gmake|vi|vim|nvim|emacs|ed|ex|psql|mysql|sqlite3|tmux|screen|at|batch|crontab"
    r"|systemd-run|run-parts|expect|socat|nc|ncat|entr|m4|sed|gsed)[\d.]*"
)
"""Programs that run what their arguments or files say, where no name in :data:`WRAPPERS` says it already."""
WRAPPERS = _names("""
    env xargs parallel sudo doas su nohup nice ionice timeout time stdbuf setsid command exec builtin eval source
    . trap alias busybox toybox bash sh zsh dash ksh fish chroot unshare nsenter strace ltrace gdb script watch
    flock coproc ssh runuser setpriv taskset chrt proot fakeroot
    setarch linux32 linux64 i386 x86_64 uname26 prlimit choom uclampset numactl schedtool cpulimit eatmydata faketime
    chronic unbuffer rlwrap catchsegv xvfb-run dbus-run-session dbus-launch systemd-inhibit start-stop-daemon
    firejail bwrap fakechroot pkexec gosu su-exec setuidgid tini dumb-init cgexec run-one caffeinate hyperfine
    torsocks torify proxychains proxychains4 valgrind
""")
"""Commands that run what their arguments, or their input, say: no pattern with a wildcard covers them."""
_STARTER = re.compile("tmux|screen|at|batch|systemd-run|expect|socat|entr")
"""Programs in :data:`_INTERPRETER` whose words are themselves a command, and not a script with its operands."""
_OPERANDS = _names("""
    ant apropos bg bazel bzip2 cat cd chattr chgrp chmod chown cmake code cp createdb curl dd declare defrag disown
    dropdb exit export fg gcc g++ cc c++ clang clang++ gunzip gzip hash help info install invoke jobs just kill
    killall ld ln local lsof man meson mkdir mkfifo mktemp mv nano ninja nox open patch pgrep pidof pkill popd pushd
    rake read readonly return rm rmdir rsync scp set setfacl sftp shift shred shuf source split tail tar task tee tldr
    touch tox truncate type ulimit umask unalias unlink unset unxz unzip wait wget whatis whence whereis xz zip zstd
""")
"""Programs and builtins whose words are files, names or texts: ``man rm``, ``mkdir docker``."""
_SUBCOMMAND = re.compile(r"[a-z][a-z-]*(?::[a-z-]+)*")
_WILD = re.compile(r"[*?\[]")
_GUARDED = ("bash", "read", "write", "edit", "web_fetch", "fork", "task")
"""Tools that no pattern of names may cover."""


def command_prefix(text: str) -> str:
    """Return the first words that commands like this one share: ``git commit``; "" if only its exact words will do."""
    words = text.split(" ")
    return " ".join(words[: _prefix_length(words)])


def _prefix_length(words: list[str]) -> int:
    """Return how many words the prefix has; 0 if there is none."""
    if within := _after_environment(words):
        length = _purpose_length(within)
        return len(words) - len(within) + length if length else 0
    if length := _purpose_length(words):
        return length
    name, rest = words[0], words[1:]
    if name in _SCRIPTS and rest[:1] == ["run"]:
        return 3 if _SUBCOMMAND.fullmatch("".join(rest[1:2])) else 0
    if name in _SUBCOMMANDS and rest and _SUBCOMMAND.fullmatch(rest[0]):
        return 0 if set(rest[0].split(":")) & _RUNS_OTHERS else 2
    return 0


def _purpose_length(words: list[str]) -> int:
    """Return how many words name a program with one purpose: ``pytest``, ``python -m pytest``."""
    if words[0] in _TOOLS:
        return 1
    is_module = bool(_PYTHON.fullmatch(words[0])) and words[1:2] == ["-m"] and "".join(words[2:3]) in _MODULES
    return 3 if is_module else 0


def names_no_command(words: list[str]) -> bool:
    """Whether the words after a program's name are known to be files, subcommands or texts, and no other command."""
    name = words[0]
    if name in _ENVIRONMENTS:
        return bool(_ENVIRONMENTS[name]) and _ENVIRONMENTS[name] not in words
    if name in _SUBCOMMANDS:
        named = [word for word in words[1:] if not word.startswith("-")]
        has_options = name != "git" and words[1:2] != named[:1]
        first = named[: 2 if has_options else 1]  # `kubectl -n web exec`
        is_script = name in _SCRIPTS and named[:1] == ["run"]
        return is_script or not _RUNS_OTHERS.intersection(first)
    is_script = bool(_INTERPRETER.fullmatch(name)) and not _STARTER.fullmatch(name)
    return name in _TOOLS or name in _OPERANDS or is_script


def breadth_objection(tool: str, pattern: str) -> str:
    """Return, in words, why an allow rule covers too much to be made in a dialog; "" if it is narrow enough."""
    if _WILD.search(tool):
        covered = [name for name in _GUARDED if fnmatch.fnmatchcase(name, tool)]
        return f"{tool} also stands for {', '.join(covered)}: name one tool" if covered else ""
    if tool == "bash":
        return _command_objection(pattern)
    if tool in ("read", "write", "edit") and not pattern.strip("*?/"):
        return f"{tool}({pattern}) allows every file: name a folder"
    if tool == "web_fetch" and not re.match(r"\w+://[^*?\[/]+/", pattern):
        return f"web_fetch({pattern}) allows more than one host: name scheme and host, as in https://host/*"
    return ""


def _command_objection(pattern: str) -> str:
    """Return why a pattern of commands covers too much."""
    if not _WILD.search(pattern):
        return ""
    words = pattern.split()
    name = words[0].rsplit("/", 1)[-1]
    if _WILD.search(words[0]):
        return f"bash({pattern}) allows every command: begin with the whole name of one, as in bash(pytest *)"
    if words[0].strip("<>&|") == "":
        return f"bash({pattern}) allows every file: name one"
    if name in WRAPPERS:
        return f"{name} runs any other program: allow the exact command, without *"
    if _runs_anything(words):
        return f"bash({pattern}) allows every program: name what {name} runs"
    return ""


def _runs_anything(words: list[str]) -> bool:
    """Return whether a pattern leaves open what an interpreter, or a program that runs others, is to run."""
    name, fixed = words[0].rsplit("/", 1)[-1], _fixed(words[1:])
    if name in _ENVIRONMENTS and (within := _after_environment(words)) is not None:
        if not within or _WILD.search(within[0]) or within[0].startswith("-"):
            return True
        return within[0] in WRAPPERS or _runs_anything(within)
    if _INTERPRETER.fullmatch(name):
        program = fixed[1:] if fixed[:1] == ["-m"] else fixed
        return not program or program[0].startswith("-")
    if name in _SUBCOMMANDS | _SCRIPTS | _ENVIRONMENTS.keys():
        return not fixed or fixed[0].startswith("-") or bool(set(fixed[-1].split(":")) & _RUNS_OTHERS)
    return False


def _after_environment(words: list[str]) -> list[str] | None:
    """Return the words of the command that runs in an environment; None if these run none there."""
    subcommand = _ENVIRONMENTS.get(words[0])
    if subcommand is None or (subcommand and words[1:2] != [subcommand]):
        return None
    return words[2:] if subcommand else words[1:]


def _fixed(words: list[str]) -> list[str]:
    """Return the words before the first with a wildcard."""
    return words[: next((place for place, word in enumerate(words) if _WILD.search(word)), len(words))]
