"""Which commands only read, with which options; everything that is not listed here is taken to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spec:
    """How a command may be used without anybody being asked."""

    bad_short: str = ""
    """Letters of short options that make it write, run or follow links."""
    bad_long: tuple[str, ...] = ()
    """Long options that do, or any abbreviation of them."""
    patterns: int = 0
    """How many of its first operands are no paths."""
    values: frozenset[str] = frozenset()
    """Options that always take a value which is no path, as the next word or after ``=``."""
    texts: frozenset[str] = frozenset()
    """Options that take one only after ``=``."""
    paths: bool = True
    """Its operands may be paths."""
    check: Callable[[Sequence[str]], str] | None = None
    """Takes the words after the name; returns what is wrong with them, or nothing."""

    @property
    def harmless(self) -> bool:
        """Whether no option can do harm, so that an unexpected one does none either."""
        return not self.bad_short and not self.bad_long and self.check is None

    def objection(self, words: Sequence[str]) -> str:
        """Return why these options are not read-only, or nothing."""
        for word in words:
            if word == "--":
                break
            name = word.split("=", 1)[0]
            if word.startswith("--"):
                if len(name) > 2 and any(bad.startswith(name) for bad in self.bad_long):
                    return f"its option {name} may write, run or reach further"
            elif word.startswith("-") and any(letter in word for letter in self.bad_short):
                return f"its option {word} may write, run or reach further"
        return self.check(words) if self.check else ""


def _words(text: str) -> list[str]:
    return text.split()


def _only(pattern: str, what: str) -> Callable[[Sequence[str]], str]:
    """Return a check that every word matches."""
    allowed = re.compile(pattern)
    return lambda words: "" if all(allowed.fullmatch(word) for word in words) else what


def _sed(words: Sequence[str]) -> str:
    """Scripts that only print, delete and substitute; no files, no commands, no brackets to hide a delimiter in."""
    scripts = [word for before, word in zip(("", *words), words, strict=False) if before in ("-e", "--expression")]
    options = [word for word in words if word.startswith("-")]
    if any(option not in ("-n", "-E", "-r", "-e", "-s", "-z", "-nE", "-ne", "-nr") for option in options):
        return "its options may write"
    operands = [word for word in words if not word.startswith("-")]
    if not scripts and not any(option in ("-e", "-ne") for option in options):
        scripts = operands[:1]
    elif "-ne" in options:
        return "its options are not simple"
    if scripts and all(_SED_SCRIPT.fullmatch(script) for script in scripts):
        return ""
    return "its script may write"


_SED_TEXT = r"(?:[^/\\\[\n]|\\[^\n])*"
_SED_ADDRESS = rf"(?:\d+|\$|/{_SED_TEXT}/)"
_SED_RANGE = rf"(?:{_SED_ADDRESS}(?:,(?:\+?\d+|{_SED_ADDRESS}))?)?"
_SED_STEP = rf"\s*{_SED_RANGE}\s*(?:[pdq=]|s/{_SED_TEXT}/{_SED_TEXT}/[gpiI0-9]*)\s*"
_SED_SCRIPT = re.compile(rf"{_SED_STEP}(?:;{_SED_STEP})*;?")

_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


def _find(words: Sequence[str]) -> str:
    bad = _FIND_RUNS | {"-delete", "-fls", "-fprint", "-fprint0", "-fprintf", "-L", "-H", "-follow", "-files0-from"}
    found = next((word for word in words if word in bad), None)
    return f"{found} may write, run or reach further" if found else ""


def _printf(words: Sequence[str]) -> str:
    return "it may set a variable" if words and words[0].startswith("-v") else ""


def _test(words: Sequence[str]) -> str:
    return "it may run code" if {"-v", "-R"} & set(words) else ""


def _jq(words: Sequence[str]) -> str:
    return "it may read modules" if any(re.search(r"\b(?:import|include)\b", word) for word in words) else ""


def _ps(words: Sequence[str]) -> str:
    options = [
        word for before, word in zip(("", *words), words, strict=False) if before not in ("-o", "-eo", "-p", "-C")
    ]
    known = r"aux|ax|auxf|auxww|-[efAlFwLju]+|-o|-eo|-p|-C"
    return "" if all(re.fullmatch(known, option) for option in options) else "it may show environments"


def _few(most: int) -> Callable[[Sequence[str]], str]:
    """Return a check that there are at most so many operands: one more would be written to."""

    def check(words: Sequence[str]) -> str:
        before = words[: words.index("--")] if "--" in words else words
        operands = [word for word in before if not word.startswith("-") or word == "-"]
        operands += words[len(before) + 1 :]
        return f"its operand {operands[most]} may be written to" if len(operands) > most else ""

    return check


_GIT_BAD = ("--output", "--ext-diff", "--textconv", "--exec", "--open-files-in-pager", "--no-index", "--filters")
_GIT_LISTING_BRANCH = frozenset(
    _words("-a -r -v -vv -l --list --all --remotes --verbose --show-current --no-color --color --column --no-column")
)
_GIT_BRANCH_FILTERS = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "--sort=", "--format=")


def _git(words: Sequence[str]) -> str:
    rest = list(words)
    while rest and rest[0] in ("--no-pager", "-P", "--no-optional-locks"):
        rest.pop(0)
    if not rest or rest[0] not in _GIT:
        return "it is not one of the git commands that only read"
    return _GIT[rest[0]].objection(rest[1:])


def _branch(words: Sequence[str]) -> str:
    listing = any(word in ("-l", "--list") or word.startswith(_GIT_BRANCH_FILTERS) for word in words)
    for word in words:
        known = word in _GIT_LISTING_BRANCH or word.startswith(_GIT_BRANCH_FILTERS)
        if not known and (word.startswith("-") or not listing):
            return "it may change branches"
    return ""


def _tag(words: Sequence[str]) -> str:
    listing = not words or "-l" in words or "--list" in words
    known = all(re.fullmatch(r"-l|--list|-n\d*|--sort=\S+|[^-].*", word) for word in words)
    return "" if listing and known else "it may change tags"


def _exactly(*uses: str) -> Callable[[Sequence[str]], str]:
    """Return a check that the words are one of these uses."""
    return lambda words: "" if " ".join(words) in uses else "only looking is known to be harmless"


_GIT_LOOK = Spec(bad_short="O", bad_long=_GIT_BAD)
_GIT = {
    **dict.fromkeys(
        _words(
            "status log diff show blame annotate shortlog describe rev-parse rev-list ls-files ls-tree merge-base "
            "name-rev show-ref for-each-ref cat-file diff-tree diff-index diff-files grep count-objects whatchanged"
        ),
        _GIT_LOOK,
    ),
    "branch": Spec(check=_branch),
    "tag": Spec(check=_tag),
    "remote": Spec(check=_exactly("", "-v", "--verbose")),
    "stash": Spec(check=_exactly("list")),
    "worktree": Spec(check=_exactly("list")),
    "version": Spec(),
}
_GIT_VALUES = frozenset({"-S", "-G", "--grep", "--author", "--committer"})
_GIT_TEXTS = frozenset(_words("--format --pretty --date --since --until --after --before --sort"))

_TEXT = Spec()
READ_ONLY: dict[str, Spec] = {
    **dict.fromkeys(
        _words(
            "cat head tail wc nl tac rev fold fmt expand unexpand cmp comm paste od hexdump cksum md5sum sha1sum "
            "sha256sum sha512sum b2sum stat ls dir vdir du df readlink realpath pathchk column strings join nproc arch"
        ),
        _TEXT,
    ),
    **dict.fromkeys(_words("true false : sleep seq expr pwd whoami id groups uname tty which type"), Spec(paths=False)),
    **dict.fromkeys(("basename", "dirname", "echo", "tr"), Spec(paths=False)),
    "printf": Spec(paths=False, check=_printf),
    "printenv": Spec(paths=False),
    "hostname": Spec(paths=False, check=_only(r"-[sfdiIA]", "it may set the name")),
    "date": Spec(check=_only(r"\+.*|-u|--utc|-R|-I\w*|--iso-8601(=\w+)?|--rfc-3339=\w+", "it may set the clock")),
    "cut": Spec(values=frozenset({"-d", "--delimiter", "--output-delimiter"})),
    "grep": Spec(
        bad_short="R",
        bad_long=("--dereference-recursive",),
        patterns=1,
        values=frozenset({"-e", "--regexp", "--include", "--exclude", "--exclude-dir"}),
        texts=frozenset({"--color", "--colour"}),
    ),
    "rg": Spec(
        bad_short="Lz",
        bad_long=("--pre", "--follow", "--search-zip", "--hostname-bin"),
        patterns=1,
        values=frozenset({"-e", "--regexp", "-g", "--glob", "--iglob", "-t", "-T", "--type", "--color", "-r"}),
    ),
    "find": Spec(
        check=_find,
        values=frozenset(_words("-name -iname -path -ipath -wholename -regex -iregex -printf -lname -perm")),
    ),
    "sort": Spec(bad_short="oT", bad_long=("--output", "--compress-program", "--temporary-directory", "--files0-from")),
    "uniq": Spec(check=_few(1)),
    "tree": Spec(
        bad_short="oRl", bad_long=("--output", "--fromfile", "--fromtabfile", "--info"), values=frozenset({"-I", "-P"})
    ),
    "file": Spec(bad_short="Cmfz", bad_long=("--compile", "--magic-file", "--files-from", "--uncompress")),
    "diff": Spec(bad_short="rlN", bad_long=("--recursive", "--paginate", "--to-file", "--from-file", "--new-file")),
    "sed": Spec(check=_sed, patterns=1, values=frozenset({"-e", "-ne"})),
    "jq": Spec(bad_short="fL", bad_long=("--from-file",), patterns=1, check=_jq),
    "ps": Spec(paths=False, check=_ps),
    "xxd": Spec(bad_short="r", bad_long=("-revert",), check=_few(1)),
    "test": Spec(check=_test),
    "[": Spec(check=_test),
    "git": Spec(check=_git, values=_GIT_VALUES, texts=_GIT_TEXTS),
}

WRAPPERS = frozenset(
    _words(
        """
    env xargs parallel sudo doas su nohup nice ionice timeout time stdbuf setsid command exec builtin eval source . trap
    alias busybox toybox bash sh zsh dash ksh fish chroot unshare nsenter strace ltrace gdb script watch flock coproc
    ssh runuser setpriv taskset chrt proot fakeroot
        """
    )
)
"""Commands that run what their arguments, or their input, say."""


def inner(words: Sequence[str]) -> Sequence[str] | None:
    """Return the command that a wrapper runs, when its words say so without doubt."""
    name, rest = words[0], words[1:]
    if name == "timeout" and rest and re.fullmatch(r"\d+(?:\.\d+)?[smhd]?", rest[0]):
        rest = rest[1:]
    elif name not in ("time", "nice", "command", "env", "builtin", "stdbuf"):
        return None
    return rest if rest and re.fullmatch(r"[\w.+-]+", rest[0]) and not rest[0].startswith("-") else None


def runs_unseen(words: Sequence[str]) -> bool:
    """Whether a command may run another one that no table of names can foresee."""
    name = words[0].rsplit("/", 1)[-1]
    if name in WRAPPERS or re.match(r"ld[-.]|ld-linux|ld-musl", name):
        return True
    if name == "find":
        return any(word in _FIND_RUNS for word in words)
    if name == "git":
        globals_ = words[1 : next((i for i, word in enumerate(words[1:], 1) if not word.startswith("-")), None)]
        return any(word.startswith(("-c", "--config-env", "--exec-path")) for word in globals_)
    return False
