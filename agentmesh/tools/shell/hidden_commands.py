"""Find the commands that a command may run with its own words, for rules that deny or ask.

``env rm f`` runs ``rm``, and so may a program that nobody has heard of. A rule that restricts ``rm`` covers them all.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence

from agentmesh.domain.command_prefixes import names_no_command
from agentmesh.tools.shell.git import without_globals
from agentmesh.tools.shell.table import READ_ONLY
from agentmesh.tools.shell.wrappers import runs_unseen

_WHOLE = 200
"""From so many words on, only the beginnings of further commands are compared: a line may have 30,000 words."""
_BEGINNING = 20
_QUOTABLE = re.compile(r"[\s'\"]")
_NO_SUBCOMMAND = ("-", "$", "`", "'", '"')
_SCRIPT_OPTION = re.compile(r"-\w*c|--call|--command")
_FD_RUNS = ("-x", "-X", "--exec")


def other_texts(words: Sequence[str]) -> list[str]:
    """Return the commands that a command may run, and its other names: only rules that restrict look at them."""
    quoted = [_quoted(word) for word in words]
    texts = _spellings(words[0], quoted)
    if _may_run_words(words):
        for start in range(1, len(words)):
            texts += _spellings(words[start], quoted[start : None if start < _WHOLE else start + _BEGINNING])
        texts += _scripts(words)
    return texts


def joined(words: Sequence[str]) -> str:
    """Return words as one text, with quotes around those that need them."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    return shlex.quote(word) if not word or _QUOTABLE.search(word) else word


def _spellings(program: str, quoted: Sequence[str]) -> list[str]:
    """Return a command as it is, without the folder of its program, and without the options of git itself."""
    name, rest = program.rsplit("/", 1)[-1], quoted[1:]
    texts = [" ".join(quoted)]
    if name != program:
        texts.append(" ".join([_quoted(name), *rest]))
    if name == "git" and rest and rest[0].startswith(_NO_SUBCOMMAND):
        texts.append(" ".join([name, *without_globals(rest)]))
    return texts


def _may_run_words(words: Sequence[str]) -> bool:
    """Return whether later words may be a command. Those after an unknown program may."""
    name, rest = words[0].rsplit("/", 1)[-1], list(words[1:])
    if runs_unseen(words):
        return True
    if name == "fd":
        return any(word.startswith(_FD_RUNS) for word in rest)
    if name == "arch":  # on macOS it runs its words
        return bool(rest)
    if name == "git":
        rest = without_globals(rest)
    elif name in READ_ONLY and name not in ("npm", "pip", "pip3"):
        return False
    return not names_no_command([name, *rest])


def _scripts(words: Sequence[str]) -> list[str]:
    """Return the words that may be a whole command line: ``npx -c 'rm f'``."""
    if runs_unseen(words):
        return list(words[1:])
    return [word for before, word in itertools.pairwise(words) if _SCRIPT_OPTION.fullmatch(before)]
