"""Which git commands are read-only, and with which options."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentmesh.tools.shell.spec import Spec, exactly, only

_GLOBAL = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"})
_GLOBAL_VALUES = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"}
)
"""Options of git itself that may take the next word as their value."""
_BAD = ("--output", "--ext-diff", "--textconv", "--exec", "--open-files-in-pager", "--filters", "--show-signature")
_FURTHER = (
    "--no-index", "--contents", "--ignore-revs-file", "--recurse-submodules", "--submodule", "--pathspec-from-file",
    "--exclude-from", "--exclude-per-directory", "--resolve-git-dir", "--git-dir", "--work-tree", "--remerge-diff",
    "--stdin", "--lost-found", "--help",
)  # fmt: skip
_SIGNATURE = re.compile(r"%[-+ ]?G|signature")
_LISTING_BRANCH = frozenset(
    [
        "-a",
        "-r",
        "-v",
        "-vv",
        "-l",
        "-i",
        "--list",
        "--all",
        "--remotes",
        "--verbose",
        "--show-current",
        "--no-color",
        "--color",
        "--column",
        "--no-column",
        "--ignore-case",
    ]
)
_BRANCH_FILTERS = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
_BRANCH_FORMS = ("--sort=", "--format=", "--color=", "--abbrev=")
_GET = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch"})
_CONFIG_OPTIONS = _GET | frozenset(
    [
        "--show-origin",
        "--show-scope",
        "--local",
        "--worktree",
        "--name-only",
        "-z",
        "--null",
        "--bool",
        "--int",
        "--path",
        "--includes",
        "--no-includes",
        "--type=bool",
        "--type=int",
        "--type=path",
    ]
)


def split_globals(words: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the directories of ``-C``, and the words from the subcommand on; None for other global options."""
    directories: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-C" and rest:
            directories.append(rest.pop(0))
        elif option in ("--version", "-v", "--help", "-h", "--html-path", "--man-path") and not rest:
            return directories, ["version"]
        elif option not in _GLOBAL:
            return None
    return directories, rest


def without_globals(words: Sequence[str]) -> list[str]:
    """Return the words from the subcommand on, whichever options of git itself stand before it.

    For rules that restrict: an unknown option, or an expansion that may be one, is left out as well.
    """
    rest = list(words)
    while rest and rest[0].startswith(("-", "$", "`", "'", '"')):
        option = rest.pop(0)
        if option in _GLOBAL_VALUES and rest:
            rest.pop(0)
    return rest


def looks_into_files(words: Sequence[str]) -> bool:
    """Whether a git command may compare files of the working tree, and so look into submodules."""
    found = split_globals(words)
    return not found or not found[1] or found[1][0] not in _WITHOUT_FILES


def git_spec(words: Sequence[str]) -> Spec | None:
    """Return the read-only uses of the subcommand; None if it is not known to have any."""
    found = split_globals(words)
    return _GIT.get(found[1][0]) if found and found[1] else None


def git_objection(words: Sequence[str]) -> str:
    """Return why a git command is not known to be read-only, or an empty string."""
    found, spec = split_globals(words), git_spec(words)
    if "--help" in words[1:]:
        return "it shows a manual by a program that the configuration names"
    if found is None or spec is None:
        return "it is not one of the git commands that only read"
    return spec.objection(found[1][1:])


def git_hazard(words: Sequence[str]) -> bool:
    """Whether an option makes a git command do more that is otherwise read-only."""
    found, spec = split_globals(words), git_spec(words)
    return bool(found and spec and spec.hazard(found[1][1:]))


def _look(words: Sequence[str]) -> str:
    found = next((word for word in words if _SIGNATURE.search(word) and word.startswith(("--format", "--pretty"))), "")
    return f"{found} may run gpg" if found else ""


def _branch(words: Sequence[str]) -> str:
    listing = any(word in ("-l", "--list") or word.split("=")[0] in _BRANCH_FILTERS for word in words)
    for word in words:
        known = word in _LISTING_BRANCH or word.split("=")[0] in _BRANCH_FILTERS or word.startswith(_BRANCH_FORMS)
        if "signature" in word or (not known and (word.startswith("-") or not listing)):
            return "it may change branches"
    return ""


def _tag(words: Sequence[str]) -> str:
    forms = r"-l|--list|-n\d*|--column|--(?:sort|contains|merged|no-merged|points-at|format)=\S+"
    options = [word for word in words if word.startswith("-")]
    filters = ("--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
    listing = any(word.split("=")[0] in ("-l", "--list", *filters) for word in words) or len(options) == len(words)
    known = all(re.fullmatch(forms, word) or word in filters for word in options)
    return "" if listing and known and not any("signature" in word for word in words) else "it may change tags"


def _config(words: Sequence[str]) -> str:
    options = [word for word in words if word.startswith("-")]
    operands = [word for word in words if not word.startswith("-")]
    if any(option not in _CONFIG_OPTIONS for option in options):
        return "it may change the configuration, or read that of the user"
    if _GET & set(options) or (operands[:1] in (["get"], ["list"]) and len(operands) <= 2):
        return ""
    fixed = len(operands) == 1 and "\0" not in operands[0]
    return "" if fixed and "." in operands[0] else "it may change the configuration"


def _reflog(words: Sequence[str]) -> str:
    verbs = ("expire", "delete", "drop", "write", "exists", "\0")
    return "it may change the log" if words and words[0].startswith(verbs) else _look(words)


def _stash(words: Sequence[str]) -> str:
    if not words or words[0] not in ("list", "show"):
        return "only looking is known to be harmless"
    return _LOOK.objection(words[1:])


def _remote(words: Sequence[str]) -> str:
    if words[:1] == ["get-url"] and len(words) <= 3:
        return ""
    return exactly("", "-v", "--verbose", "show")(words)


def _symbolic_ref(words: Sequence[str]) -> str:
    operands = [word for word in words if word not in ("--short", "-q", "--quiet")]
    fixed = len(operands) == 1 and re.fullmatch(r"[\w/][\w/.-]*", operands[0])
    return "" if fixed else "it may change the reference"


_LOOK = Spec(bad_short="O", bad_long=_BAD, further_long=_FURTHER, check=_look)
_ANNOTATE = Spec(bad_short="O", bad_long=_BAD, further_short="S", further_long=_FURTHER)
_GIT = {
    **dict.fromkeys(
        [
            "status",
            "log",
            "diff",
            "show",
            "shortlog",
            "describe",
            "rev-parse",
            "rev-list",
            "ls-tree",
            "merge-base",
            "name-rev",
            "show-ref",
            "for-each-ref",
            "cat-file",
            "diff-tree",
            "diff-index",
            "diff-files",
            "count-objects",
            "whatchanged",
            "cherry",
            "show-branch",
            "check-attr",
            "check-mailmap",
            "version",
        ],
        _LOOK,
    ),
    **dict.fromkeys(("blame", "annotate"), _ANNOTATE),
    "ls-files": Spec(bad_long=_BAD, further_short="X", further_long=_FURTHER),
    "check-ignore": Spec(bad_long=_BAD, further_long=_FURTHER),
    "grep": Spec(bad_short="O", bad_long=_BAD, further_short="f", further_long=_FURTHER),
    "branch": Spec(check=_branch, judges_scripts=True),
    "tag": Spec(check=_tag, judges_scripts=True),
    "remote": Spec(check=_remote, judges_scripts=True),
    "stash": Spec(check=_stash, judges_scripts=True),
    "worktree": Spec(check=only("list|-v|--porcelain|-z", "it may change worktrees"), judges_scripts=True),
    "config": Spec(check=_config, judges_scripts=True),
    "reflog": Spec(bad_long=_BAD, further_long=_FURTHER, check=_reflog, judges_scripts=True),
    "symbolic-ref": Spec(check=_symbolic_ref, judges_scripts=True),
    "notes": Spec(check=exactly("list"), judges_scripts=True),
}
_WITHOUT_FILES = frozenset(
    [
        "log",
        "rev-parse",
        "rev-list",
        "ls-tree",
        "merge-base",
        "name-rev",
        "show-ref",
        "for-each-ref",
        "cat-file",
        "count-objects",
        "branch",
        "tag",
        "remote",
        "config",
        "reflog",
        "symbolic-ref",
        "version",
        "shortlog",
        "worktree",
        "notes",
        "check-attr",
        "check-mailmap",
        "cherry",
        "show-branch",
        "show",
        "whatchanged",
        "diff-tree",
    ]
)
GIT_VALUES = frozenset({"-S", "-G", "--grep", "--author", "--committer", "-n", "--max-count"})
GIT_TEXTS = frozenset(["--format", "--pretty", "--date", "--since", "--until", "--after", "--before", "--sort"])
