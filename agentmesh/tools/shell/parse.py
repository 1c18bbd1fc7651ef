"""Take a shell command apart with tree-sitter's grammar of bash.

The grammar is not bash: where the two could see different words, :func:`parse` reports a problem instead of guessing.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentmesh.tools.shell.words import WORD_NODES, Word, covered, read_word, short_source, source_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_MAX_LENGTH = 64 * 1024
_MAX_DEPTH = 60
_CONTAINERS = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "subshell",
        "compound_statement",
        "negated_command",
        "redirected_statement",
        "command_substitution",
        "process_substitution",
        "if_statement",
        "elif_clause",
        "else_clause",
        "while_statement",
        "do_group",
        "heredoc_redirect",
    }
)
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "case_statement", "case_item"})
_SETTING = frozenset({"variable_assignment", "variable_assignments", "declaration_command", "unset_command"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_SILENT = frozenset({"comment", "heredoc_start", "heredoc_end", "heredoc_content", "heredoc_body", "file_descriptor"})
_JOINED_LINE = re.compile(r"[^ \t\n]\\\n[^ \t\n]")
_HERE_START = re.compile(r"(['\"]?)(\w+)\1", re.ASCII)


@dataclass(frozen=True, slots=True)
class Simple:
    """A command and its words; the first is its name."""

    words: tuple[Word, ...]
    assignments: str = ""
    """The source of assignments in front of it."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirection from or to a file."""

    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Other:
    """Something that sets variables or loops over them; what it runs is listed apart."""

    text: str


@dataclass(slots=True)
class Parsed:
    """All that a command line consists of, in its order."""

    pieces: list[Simple | Redirect | Other] = field(default_factory=list)
    problem: str = ""

    def fail(self, problem: str) -> None:
        """Remember the first thing that was not understood."""
        self.problem = self.problem or problem


def parse(command: str) -> Parsed:
    """Take a command line apart; never raises."""
    parsed = Parsed()
    if len(command) > _MAX_LENGTH:
        parsed.fail("it is too long to be judged")
    elif any(_strange(char) for char in command):
        parsed.fail("it contains control or invisible characters")
    elif _JOINED_LINE.search(command):
        parsed.fail("a word of it is continued on the next line")
    else:
        root = _parser().parse(command.encode("utf-8")).root_node
        if root.has_error:
            parsed.fail("it cannot be parsed")
        _visit(root, parsed, 0)
    return parsed


def _strange(char: str) -> bool:
    if char in "\n\t" or " " <= char <= "~":
        return False
    return unicodedata.category(char)[0] in "CZ"


@functools.cache
def _parser() -> Parser:
    import tree_sitter_bash  # 35 ms, and only commands need it
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _visit(node: Node, parsed: Parsed, depth: int) -> None:
    """Take one statement apart, and all that is in it."""
    kind = node.type
    if depth > _MAX_DEPTH:
        parsed.fail("it is nested too deeply")
    elif kind == "command":
        _command(node, parsed, depth)
    elif kind == "heredoc_body" or kind not in _SILENT:
        _take(node, parsed)
        for child in node.named_children:
            if kind in _CONTAINERS and child.type not in WORD_NODES:
                _visit(child, parsed, depth + 1)
            else:
                _inside(child, parsed, depth + 1)


def _take(node: Node, parsed: Parsed) -> None:
    """Note what a node that is no plain command does itself, apart from what is in it."""
    kind = node.type
    first = node.children[0].type if node.children else ""
    if kind == "test_command" and first == "[":
        parsed.pieces.append(Simple((Word("["), *_test_words(node, parsed))))
    elif kind in _SETTING or kind in _LOOPS or kind == "test_command" or (kind, first) == ("compound_statement", "(("):
        parsed.pieces.append(Other(source_of(node)))
    elif kind in ("file_redirect", "herestring_redirect"):
        _redirect(node, parsed)
    elif kind == "heredoc_redirect":
        _check_here_document(node, parsed)
    elif kind == "function_definition":
        parsed.fail("it defines a function")
    elif kind not in _CONTAINERS and kind not in WORD_NODES and kind != "heredoc_body":
        parsed.fail(f"`{short_source(node)}` is not understood")
    elif kind in _CONTAINERS and not covered(node):
        parsed.fail("a part of it is not understood")


def _inside(node: Node, parsed: Parsed, depth: int) -> None:
    """Visit the commands in a word, an expression or the body of a loop."""
    if depth > _MAX_DEPTH:
        parsed.fail("it is nested too deeply")
    elif node.type in ("command_substitution", "process_substitution") or node.type in _STATEMENTS:
        _visit(node, parsed, depth + 1)
    else:
        if node.type == "arithmetic_expansion" or (node.type == "expansion" and len(node.children) != 3):
            parsed.pieces.append(Other(source_of(node)))  # `$((PATH=5))` and `${X:=1}` set variables
        for child in node.named_children:
            _inside(child, parsed, depth + 1)


_STATEMENTS = (_CONTAINERS | _LOOPS | _SETTING | _REDIRECTS | {"command", "test_command", "function_definition"}) - {
    "program"
}


def _test_words(node: Node, parsed: Parsed) -> list[Word]:
    """Return the words between ``[`` and ``]``."""
    words: list[Word] = []
    for child in node.children:
        if child.type in ("[", "]"):
            continue
        if child.type in WORD_NODES:
            words.append(read_word(child, parsed.fail))
        elif child.children:
            words += _test_words(child, parsed)
        else:
            words.append(Word(source_of(child)))
    return words


def _check_here_document(node: Node, parsed: Parsed) -> None:
    """Make sure that bash ends the document where the grammar does."""
    start = _HERE_START.fullmatch(source_of(_child(node, "heredoc_start")))
    body = source_of(_child(node, "heredoc_body"))
    word = start[2] if start else ""
    nested = any(child.type == "heredoc_redirect" for child in _below(node))
    siblings = [child for child in node.parent.children if child.type == "heredoc_redirect"] if node.parent else []
    if not word or nested or len(siblings) > 1 or any(line.strip() == word for line in body.splitlines()):
        parsed.fail("a here-document in it is not understood")


def _child(node: Node, kind: str) -> Node | None:
    return next((child for child in node.children if child.type == kind), None)


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)


def _command(node: Node, parsed: Parsed, depth: int) -> None:
    words: list[Word] = []
    assignments: list[str] = []
    if not covered(node):
        parsed.fail("a part of it is not understood")
    for child in node.children:
        if child.type == "variable_assignment":
            assignments.append(source_of(child))
        elif child.type == "command_name" and child.named_children:
            words.append(read_word(child.named_children[0], parsed.fail))
        elif child.type in WORD_NODES:
            words.append(read_word(child, parsed.fail))
        elif child.type in _REDIRECTS:
            _visit(child, parsed, depth + 1)
            continue
        else:
            parsed.fail(f"`{short_source(child)}` is not understood")
        _inside(child, parsed, depth + 1)
    if words:
        name = words[0]
        if not name.known or name.glob or name.tilde or not name.text:
            parsed.fail("the name of a command in it is not fixed")
        parsed.pieces.append(Simple(tuple(words), " ".join(assignments)))


def _redirect(node: Node, parsed: Parsed) -> None:
    operator = next((child.type for child in node.children if not child.is_named), "")
    targets = [child for child in node.named_children if child.type != "file_descriptor"]
    if operator == "<<<" or (len(targets) == 1 and operator in (">&", "<&") and source_of(targets[0]).isdigit()):
        return
    if len(targets) == 1 and operator in ("<", ">", ">>", "&>", "&>>", ">|", ">&"):
        parsed.pieces.append(Redirect(operator, read_word(targets[0], parsed.fail)))
    else:
        parsed.fail(f"`{short_source(node)}` is not understood")
