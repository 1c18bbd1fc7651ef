"""Judge one command by its words: whether it is known to be read-only, and if not, why."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from agentmesh.tools.shell.conditions import bracket_objection
from agentmesh.tools.shell.git import git_hazard, looks_into_files, split_globals
from agentmesh.tools.shell.paths import Paths
from agentmesh.tools.shell.pieces import Assignment
from agentmesh.tools.shell.repository import repository_objection
from agentmesh.tools.shell.spec import Spec
from agentmesh.tools.shell.table import READ_ONLY, shows_version, uses_rustup
from agentmesh.tools.shell.variables import Variables, prefix_objection, read_objection
from agentmesh.tools.shell.words import Word
from agentmesh.tools.shell.wrappers import find_commands, xargs_command

_PATH_IN_OPTION = re.compile(r"[/~.].*", re.DOTALL)
_IN_SHELL = frozenset({"cd", "read", "mapfile", "readarray", "set", "command", "type"})
"""Builtins of bash, which another program cannot run."""
_TOOLCHAIN = ("rust-toolchain", "rust-toolchain.toml")

UNKNOWN = "not a known read-only command"
"""The objection to a command that the table does not have."""


class Commands:
    """Judges the commands of one line."""

    def __init__(self, paths: Paths, variables: Variables) -> None:
        self._paths = paths
        self._variables = variables

    def objection(self, words: Sequence[Word], assigned: Sequence[Assignment] = ()) -> str:
        """Return why a command is not read-only, or an empty string."""
        name = words[0].text
        if found := prefix_objection(name, assigned):
            return found
        if name == "cd":
            return self._change_directory(words)
        variants = self._variables.variants(words[1:])
        return next((found for variant in variants if (found := self._one(name, variant))), "")

    def hazard(self, words: Sequence[Word]) -> bool:
        """Whether an option or operand makes a command do more that is otherwise read-only."""
        name = words[0].text
        spec = READ_ONLY.get(name)
        if spec is None:
            return False
        for variant in self._variables.variants(words[1:]):
            masked = [word.masked for word in variant]
            if spec.hazard(masked) or (name == "git" and git_hazard(masked)):
                return True
        return False

    def _one(self, name: str, words: list[Word]) -> str:
        """Return why a command is not read-only, once its variables are filled in."""
        masked = [word.masked for word in words]
        if name == "read":
            return read_objection(words)
        if name in ("mapfile", "readarray"):
            return read_objection(words[1:] if masked[:1] == ["-t"] else words)
        if name == "command" and masked[:1] in (["-v"], ["-V"]):
            return ""
        if name == "env" and not words:
            return ""
        if shows_version([name, *masked]):
            return self._toolchain_objection() if uses_rustup(name) else ""
        if name == "xargs":
            return self._run_by_another(xargs_command([Word(name), *words]))
        if name == "find" and "-exec" in masked:
            return self._find(words)
        spec = READ_ONLY.get(name)
        if spec is None:
            return UNKNOWN
        if name in ("test", "[") and (found := bracket_objection(words, self._variables)):
            return found
        return spec.objection(masked) or self._words_objection(name, spec, words) or self._git(name, words)

    def _run_by_another(self, words: Sequence[Word] | None) -> str:
        """Return why a command that ``xargs`` or ``find`` runs is not read-only."""
        if words is None or not words[0].known or words[0].text in _IN_SHELL:
            return "what it runs is not known to only read"
        return self._one(words[0].text, list(words[1:]))

    def _find(self, words: Sequence[Word]) -> str:
        found = find_commands(words)
        if found is None:
            return "what it runs is not known to only read"
        own, commands = found
        objections = [self._one("find", own), *(self._run_by_another(command) for command in commands)]
        return next((one for one in objections if one), "")

    def _toolchain_objection(self) -> str:
        for base in self._paths.bases:
            place = base
            while place != os.path.dirname(place):
                if any(os.path.lexists(os.path.join(place, name)) for name in _TOOLCHAIN):
                    return "a file of the directory chooses the program"
                place = os.path.dirname(place)
        return ""

    def _git(self, name: str, words: Sequence[Word]) -> str:
        """Return why git may run a program that the repository names."""
        masked = [word.masked for word in words]
        found = split_globals(masked) if name == "git" else None
        if found is None or found[1] == ["version"]:
            return ""
        unsure = [word for word in words if word.masked in found[0] and (word.glob or not word.known)]
        if unsure:
            return f"which directories {unsure[0].text} stands for is not known"
        starts = self._paths.bases
        for directory in found[0]:
            starts = [os.path.join(base, directory) for base in starts]
        files = looks_into_files(masked)
        root, objects = self._paths.root, self._paths.objects
        objections = (repository_objection(start, root, files=files, objects=objects) for start in starts)
        return next((one for one in objections if one), "")

    def _words_objection(self, name: str, spec: Spec, words: Sequence[Word]) -> str:
        ended = False
        for word in words:
            ended = ended or (word.text == "--" and name != "find")
            if word.glob and word.text.startswith("-") and not spec.unlimited:
                return f"{word.text} may become another option"
            if spec.harmless or (word.known and not word.glob):
                continue
            if spec.counted and (word.glob or word.split):
                return f"how many words {word.text} stands for is not known"
            dashed = self._paths.dashed(word) if word.known else not self._variables.undashed(word)
            if dashed and not ended and name != "printf":
                return f"what {word.text} stands for could be an option"
        options, operands = _sorted(spec, words)
        objections = [self._option_path(word) for word in options]
        objections += [self._operand(spec, word) for word in operands]
        return next((found for found in objections if found), "")

    def _operand(self, spec: Spec, word: Word) -> str:
        """Return the objection to an operand, which may be a path, or an empty string."""
        if not (spec.paths or word.glob or word.tilde):
            return ""
        if not (self._paths.inside(word) if word.known else self._paths.begins_inside(word)):
            return f"{word.text} is outside the working directory"
        return ""

    def _option_path(self, word: Word) -> str:
        """Return the objection to a path in an option (``--file=PATH``, ``-fPATH``), or an empty string."""
        name, equals, value = word.text.partition("=")
        candidates = [value] if equals and name.startswith("--") else [word.text[2:]]
        if not equals and (found := _PATH_IN_OPTION.search(word.text)):
            candidates.append(found[0])
        for path in candidates:
            option = Word(path, known=word.known, glob=word.glob, tilde=path.startswith("~"))
            if path and not (self._paths.inside(option) if word.known else self._paths.begins_inside(option)):
                return f"{path} is outside the working directory"
        return ""

    def _change_directory(self, words: Sequence[Word]) -> str:
        if len(words) != 2:
            return "where it goes is not fixed"
        word = words[1]
        if not word.known or word.glob or word.text.startswith("-") or not self._paths.inside(word):
            return f"{word.text} is not known to be inside the working directory"
        self._paths.enter(word.text)
        return ""


def _sorted(spec: Spec, words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return the options, and the operands that may be paths, without patterns and values of options."""
    skip = 0 if any(_gives_pattern(word.text) for word in words) else spec.patterns
    options: list[Word] = []
    operands: list[Word] = []
    value = ended = False
    for word in words:
        if value:
            value = False
        elif ended or not word.text.startswith("-") or word.text == "-":
            operands.append(word)
        elif word.text == "--":
            ended = True
        elif word.text.split("=")[0] in spec.values | spec.texts:
            value = word.text in spec.values
        else:
            options.append(word)
    return options, operands[skip:]


def _gives_pattern(word: str) -> bool:
    """Whether an option may replace the pattern, so that the first operand is a file."""
    if word.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and any(full.startswith(name) for full in ("--regexp", "--expression", "--files"))
    return word.startswith("-") and ("e" in word or "f" in word)
