"""Commands that run other commands: find the other command, if the words name it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentmesh.domain.command_prefixes import WRAPPERS
from agentmesh.tools.shell.words import Word

FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_XARGS_ALONE = re.compile(r"-[0rt]+|--null|--no-run-if-empty|-[nLP]\d+|--max-(?:args|lines|procs)=\d+|-d\S+|-I\S+")
_XARGS_VALUES = {"-n": r"\d+", "-L": r"\d+", "-P": r"\d+", "-I": r"\S+", "-d": r".+", "-s": r"\d+"}


def inner(words: Sequence[str]) -> Sequence[str] | None:
    """Return the command that a wrapper runs, if its words name it without doubt."""
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
        return any(word in FIND_RUNS for word in words)
    if name == "git":
        globals_ = words[1 : next((i for i, word in enumerate(words[1:], 1) if not word.startswith("-")), None)]
        return any(word.startswith(("-c", "--config-env", "--exec-path")) for word in globals_)
    return False


def xargs_command(words: Sequence[Word]) -> list[Word] | None:
    """Return the command that ``xargs`` runs with the words that it reads, if its options are known."""
    rest = list(words[1:])
    replaced = ""
    while rest and rest[0].known and rest[0].text.startswith("-"):
        option = rest.pop(0).text
        if option in _XARGS_VALUES:
            value = rest.pop(0) if rest else Word("", known=False)
            if not value.known or not re.fullmatch(_XARGS_VALUES[option], value.text):
                return None
            replaced = value.text if option == "-I" else replaced
        elif not _XARGS_ALONE.fullmatch(option):
            return None
        elif option.startswith("-I"):
            replaced = option[2:]
    unknown = Word("$@", known=False, split=True)
    if not rest:
        return [Word("echo"), unknown]
    if not replaced:
        return [*rest, unknown]
    return [Word(word.text.replace(replaced, "$_"), known=False) if replaced in word.text else word for word in rest]


def find_commands(words: Sequence[Word]) -> tuple[list[Word], list[list[Word]]] | None:
    """Return ``find``'s own words, and the commands that it runs by ``-exec``; None if they are not clear."""
    own: list[Word] = []
    commands: list[list[Word]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.text != "-exec" or not word.known:
            own.append(word)
            continue
        end = next((i for i, one in enumerate(rest) if one.text == ";" or (one.text == "+" and i)), None)
        if not end or any("{}" in one.text and one.text != "{}" for one in rest[:end]):
            return None
        commands.append([Word("./{}") if one.text == "{}" else one for one in rest[:end]])
        del rest[: end + 1]
    return own, commands


def script(words: Sequence[Word]) -> str | None:
    """Return the command line that ``bash -c '...'``, ``eval '...'`` or ``trap '...'`` runs, if it is in the words."""
    name = words[0].text.rsplit("/", 1)[-1]
    if name == "eval" and len(words) > 1 and all(word.known for word in words):
        return " ".join(word.text for word in words[1:])
    if name == "trap" and len(words) > 1 and words[1].known:
        return words[1].text
    if name in _SHELLS and len(words) > 2 and words[1].text == "-c" and words[2].known:
        return words[2].text
    return None


def opaque(words: Sequence[Word]) -> bool:
    """Whether a command runs code that is neither in the command line nor in a file that it names."""
    name = words[0].text.rsplit("/", 1)[-1]
    if name in _SHELLS:
        if len(words) == 2 and words[1].text == "--version":
            return False
        return len(words) == 1 or not words[1].known or words[1].text.startswith("-")
    return name in ("eval", "trap") and len(words) > 1
