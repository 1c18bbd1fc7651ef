"""Which commands are read-only, with which options; any other command is assumed to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agentmesh.tools.shell.git import GIT_TEXTS, GIT_VALUES, git_objection
from agentmesh.tools.shell.scripts import awk_objection, sed_objection
from agentmesh.tools.shell.spec import Spec, at_most, only
from agentmesh.tools.shell.wrappers import FIND_RUNS


def _words(text: str) -> list[str]:
    return text.split()


def _find(words: Sequence[str]) -> str:
    bad = FIND_RUNS | {"-delete", "-fls", "-fprint", "-fprint0", "-fprintf", "-L", "-H", "-follow", "-files0-from"}
    found = next((word for word in words if word in bad), None)
    return f"{found} may write, run or reach further" if found else ""


def _printf(words: Sequence[str]) -> str:
    return "it may set a variable" if not words or words[0].startswith(("-v", "\0")) else ""


def _jq(words: Sequence[str]) -> str:
    return "it may read modules" if any(re.search(r"\b(?:import|include)\b", word) for word in words) else ""


def _ps(words: Sequence[str]) -> str:
    options = [
        word for before, word in zip(("", *words), words, strict=False) if before not in ("-o", "-eo", "-p", "-C")
    ]
    known = r"aux|ax|auxf|auxww|-[efAlFwLju]+|-o|-eo|-p|-C"
    return "" if all(re.fullmatch(known, option) for option in options) else "it may show environments"


def _date(words: Sequence[str]) -> str:
    value = False
    for word in words:
        if value:
            value = False
        elif word in ("-d", "--date", "-r", "--reference"):
            value = True
        elif not re.fullmatch(r"\+.*|-u|--utc|-R|-I\w*|--iso-8601(=\w+)?|--rfc-3339=\w+|--date=.*|-u?d.+", word):
            return "it may set the clock"
    return ""


def _fd(words: Sequence[str]) -> str:
    return "it may run a command" if any(re.match(r"-\w*[xX]|--exec|--ex?e?c?$", word) for word in words) else ""


def _strings(words: Sequence[str]) -> str:
    return "it may read options from a file" if any(word.startswith("@") for word in words) else ""


def _npm(words: Sequence[str]) -> str:
    looking = words[:1] in (["ls"], ["list"]) and all(re.fullmatch(r"[\w@/.-]+(?:=\w+)?", word) for word in words)
    return "" if looking else "it may run or write"


def _pip(words: Sequence[str]) -> str:
    known = r"list|show|freeze|check|[\w.\[\]-]+"
    looking = words[:1] in (["list"], ["show"], ["freeze"], ["check"]) and all(re.fullmatch(known, w) for w in words)
    reaching = any(
        re.match(r"-o|-u|--(?:out|upt|log|index|extra|find|pro|cert|client|python|ca)", word) for word in words
    )
    return "" if looking and not reaching else "it may run, write or reach the network"


def _names_no_path(patterns: int = 0) -> Callable[[Sequence[str]], bool]:
    """Return a check that all operands are patterns."""
    return lambda words: sum(not word.startswith("-") for word in words) <= patterns


def _grep_below(words: Sequence[str]) -> bool:
    recursive = any(re.match(r"-\w*[rR]|--(?:dereference-)?rec", word) for word in words)
    return recursive and _names_no_path(1)(words)


def _find_below(words: Sequence[str]) -> bool:
    return not words or words[0].startswith(("-", "(", "!"))


_FILES0 = ("--files0-from",)
_TEXT = Spec()
_GREP = Spec(
    patterns=1,
    values=frozenset({"-e", "--regexp", "--include", "--exclude", "--exclude-dir", "-A", "-B", "-C", "-m"}),
    texts=frozenset({"--color", "--colour"}),
    recursive=_grep_below,
)
READ_ONLY: dict[str, Spec] = {
    **dict.fromkeys(
        _words(
            "cat head tail nl tac rev fold fmt expand unexpand cmp comm paste od hexdump hd cksum sum md5sum sha1sum "
            "sha224sum sha256sum sha384sum sha512sum b2sum stat df readlink realpath pathchk column join arch tsort "
            "factor numfmt free uptime lscpu getconf"
        ),
        _TEXT,
    ),
    **dict.fromkeys(_words("ls dir vdir"), Spec(recursive=_names_no_path())),
    "wc": Spec(further_long=_FILES0),
    "du": Spec(further_long=_FILES0, recursive=_names_no_path()),
    "strings": Spec(check=_strings),
    **dict.fromkeys(
        _words("true false : sleep seq expr pwd whoami id groups uname tty which type nproc locale yes"),
        Spec(paths=False),
    ),
    **dict.fromkeys(("basename", "dirname", "echo", "tr"), Spec(paths=False)),
    "printf": Spec(paths=False, check=_printf),
    "printenv": Spec(paths=False),
    "hostname": Spec(paths=False, check=only(r"-[sfdiIA]", "it may set the name")),
    "date": Spec(check=_date, paths=False),
    "cut": Spec(values=frozenset({"-d", "--delimiter", "--output-delimiter"})),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rg": Spec(
        bad_long=("--pre", "--hostname-bin"),
        further_short="Lz",
        further_long=("--follow", "--search-zip"),
        patterns=1,
        values=frozenset(_words("-e --regexp -g --glob --iglob -t -T --type --color -r -A -B -C -m")),
        recursive=_names_no_path(1),
    ),
    "fd": Spec(check=_fd, further_short="L", further_long=("--follow",), patterns=1, recursive=_names_no_path(1)),
    "find": Spec(
        check=_find,
        values=frozenset(_words("-name -iname -path -ipath -wholename -regex -iregex -printf -lname -perm")),
        recursive=_find_below,
    ),
    "sort": Spec(
        bad_short="oT", bad_long=("--output", "--compress-program", "--temporary-directory"), further_long=_FILES0
    ),
    "uniq": Spec(check=at_most(1), counted=True),
    "tree": Spec(
        bad_short="oR",
        bad_long=("--output",),
        further_short="l",
        further_long=("--fromfile", "--fromtabfile", "--info", "--gitfile", "--infofile"),
        values=frozenset({"-I", "-P", "-L"}),
        recursive=_names_no_path(),
    ),
    "file": Spec(
        bad_short="C",
        bad_long=("--compile",),
        further_short="mfz",
        further_long=("--magic-file", "--files-from", "--uncompress"),
    ),
    "diff": Spec(bad_short="l", bad_long=("--paginate",)),
    **dict.fromkeys(
        ("sed", "gsed"),
        Spec(
            bad_short="i",
            bad_long=("--in-place",),
            check=sed_objection,
            judges_scripts=True,
            patterns=1,
            values=frozenset({"-e", "-ne", "-nE", "--expression"}) - {"-nE"},
        ),
    ),
    **dict.fromkeys(
        ("awk", "gawk", "mawk"),
        Spec(check=awk_objection, judges_scripts=True, patterns=1, values=frozenset({"-F", "-v"})),
    ),
    "jq": Spec(further_short="fL", further_long=("--from-file",), patterns=1, check=_jq, judges_scripts=True),
    "ps": Spec(paths=False, check=_ps),
    "xxd": Spec(
        bad_short="r", bad_long=("-revert",), check=at_most(1), counted=True, values=frozenset({"-l", "-s", "-c", "-g"})
    ),
    "test": Spec(),
    "[": Spec(),
    "git": Spec(check=git_objection, judges_scripts=True, values=GIT_VALUES, texts=GIT_TEXTS),
    "npm": Spec(check=_npm, judges_scripts=True, paths=False),
    **dict.fromkeys(("pip", "pip3"), Spec(check=_pip, judges_scripts=True, paths=False)),
    "set": Spec(check=only(r"-[eu]+|-[eu]*o|pipefail", "it may change how the line runs"), judges_scripts=True),
}
_RUSTUP = frozenset({"cargo", "rustc", "rustfmt", "rustdoc"})
_VERSIONS = {
    **dict.fromkeys(
        _words(
            "python python3 node npm npx cargo rustc rustfmt gcc g++ cc c++ clang clang++ make cmake ninja "
            "docker pip pip3 bash zsh dash jq rg fd tree curl wget ruby perl php tar gzip ssh rustup uv ruff "
            "mypy black psql sqlite3 vim nano tmux gh kubectl helm terraform deno bun sed awk gawk diff"
        ),
        frozenset({"--version"}),
    ),
    "go": frozenset({"version"}),
    "java": frozenset({"-version", "--version"}),
    "javac": frozenset({"-version", "--version"}),
}
_SHORT_VERSIONS = {
    "-V": frozenset(_words("python python3 pip cargo rustc ssh rg fd")),
    "-v": frozenset(_words("node npm")),
    "--help": frozenset(
        _words("python python3 node cargo rustc gcc make cmake docker pip pip3 bash jq rg fd tree tar gzip uv ruff")
    ),
}


def shows_version(words: Sequence[str]) -> bool:
    """Whether a command only prints its version or its help, and reads nothing before that."""
    if len(words) != 2:
        return False
    name, option = words
    return (
        option in _VERSIONS.get(name, ())
        or name in _SHORT_VERSIONS.get(option, ())
        or (option in ("--help", "--version") and name in READ_ONLY and name not in ("git", "npm", "echo"))
    )


def uses_rustup(name: str) -> bool:
    """Whether a file of the directory may choose the program that a name starts."""
    return name in _RUSTUP
