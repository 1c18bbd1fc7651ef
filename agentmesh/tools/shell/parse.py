"""Parse a shell command with tree-sitter's grammar of bash.

The grammar is not bash, so :mod:`agentmesh.tools.shell.scan` reads the line again by bash's own rules. If the two see
different commands or words, :func:`parse` reports a problem instead of guessing.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentmesh.tools.shell.lines import join_lines
from agentmesh.tools.shell.pieces import Assignment, Other, Piece, Redirect, Simple, Test
from agentmesh.tools.shell.scan import Found, UnclearError, scan
from agentmesh.tools.shell.words import WORD_NODES, Word, covered, read_word, read_words, short_source, source_of

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
_DECLARING = frozenset({"declaration_command", "unset_command"})
_MERE_GROUPS = frozenset({"variable_assignments", "heredoc_body"})
_REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
_SILENT = frozenset({"comment", "heredoc_start", "heredoc_end", "heredoc_content", "heredoc_body", "file_descriptor"})
_PLAIN = re.compile(r"\$\{\w+\}", re.ASCII)
_TEST_TOKENS = frozenset({"[", "[[", "]", "]]", "=", "==", "!=", "=~", "!", "&&", "||", "(", ")", "<", ">"})
_ONLY_IN_DOUBLE = frozenset({"&&", "||", "(", ")", "<", ">", "=~"})


@dataclass(slots=True)
class Parsed:
    """The parts of a command line, in order."""

    pieces: list[Piece] = field(default_factory=list)
    problem: str = ""
    seen: Found = field(default_factory=Found)
    """Where the grammar sees commands and words."""

    def fail(self, problem: str) -> None:
        """Record the first part that was not understood."""
        self.problem = self.problem or problem


def parse(command: str) -> Parsed:
    """Parse a command line; never raises."""
    parsed = Parsed()
    if len(command) > _MAX_LENGTH:
        parsed.fail("it is too long to be judged")
    elif any(_strange(char) for char in command):
        parsed.fail("it contains control or invisible characters")
    else:
        source = join_lines(command).encode("utf-8")
        root = _parser().parse(source).root_node
        if root.has_error or source[: root.start_byte].strip(b" \t\n") or source[root.end_byte :].strip(b" \t\n"):
            parsed.fail("it cannot be parsed")
        _visit(root, parsed, 0)
        _compare(source, parsed)
    return parsed


def _compare(source: bytes, parsed: Parsed) -> None:
    """Report a problem if the grammar and the scanner differ."""
    try:
        found = scan(source)
    except UnclearError:
        parsed.fail("a part of it is not understood")
    else:
        if found != parsed.seen:
            parsed.fail("a part of it can be read in two ways")


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
    """Parse one statement and everything in it."""
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
    """Record the effects of a node that is not a plain command, apart from the commands inside it."""
    kind = node.type
    first = node.children[0].type if node.children else ""
    if kind == "test_command":
        _test(node, parsed)
    elif kind == "variable_assignment":
        parsed.pieces.append(_assignment(node, parsed))
    elif kind == "for_statement":
        parsed.pieces.append(_loop(node, parsed))
    elif kind in _DECLARING | _LOOPS or (kind, first) == ("compound_statement", "(("):
        parsed.pieces.append(Other(source_of(node)))
    elif kind in ("file_redirect", "herestring_redirect"):
        _redirect(node, parsed)
    elif kind == "function_definition":
        parsed.fail("it defines a function")
    elif kind not in _CONTAINERS | WORD_NODES | _MERE_GROUPS:
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
        if node.type == "arithmetic_expansion" or (node.type == "expansion" and not _PLAIN.fullmatch(source_of(node))):
            parsed.pieces.append(Other(source_of(node)))  # `$((PATH=5))` and `${X:=1}` set variables
        for child in node.named_children:
            _inside(child, parsed, depth + 1)


_STATEMENTS = (_CONTAINERS | _LOOPS | _SETTING | _REDIRECTS | {"command", "test_command", "function_definition"}) - {
    "program"
}


def _test(node: Node, parsed: Parsed) -> None:
    double = node.children[0].type == "[["
    words = tuple(_test_words(node, parsed, double=double))
    if double:
        parsed.pieces.append(Test(source_of(node), words))
        return
    parsed.seen.commands.add(node.start_byte)
    parsed.seen.words.add((node.start_byte, node.start_byte + 1))
    parsed.pieces.append(Simple((Word("["), *words), source=source_of(node)))


def _test_words(node: Node, parsed: Parsed, *, double: bool) -> list[Word]:
    """Return the words between ``[`` and ``]``."""
    words: list[Word] = []
    for child in node.children:
        if child.type in WORD_NODES:
            words.append(read_word(child, parsed.fail))
        elif child.type in _TEST_TOKENS:
            if not double and child.type in _ONLY_IN_DOUBLE:
                parsed.fail(f"`{short_source(node)}` is not understood")
            if child.type not in ("[", "]", "[[", "]]"):
                words.append(Word(child.type))
        elif child.type in _REDIRECTS:
            _visit(child, parsed, 0)
        elif not child.is_named and not child.children and not re.fullmatch("-[a-z]+", child.type):
            parsed.fail(f"`{short_source(node)}` is not understood")
        elif child.children:
            words += _test_words(child, parsed, double=double)
        else:
            words.append(Word(source_of(child)))
    return words


def _assignment(node: Node, parsed: Parsed) -> Assignment:
    """Return the value that a variable is set to; a name that is not plain keeps its source text."""
    name, *values = node.named_children
    words = tuple(read_word(value, parsed.fail) for value in values if value.type in WORD_NODES)
    if len(words) != len(values) or len(words) > 1:
        parsed.fail(f"`{short_source(node)}` is not understood")
    appended = any(child.type == "+=" for child in node.children)
    values_of = (Word(source_of(node), known=False),) if appended else words or (Word(""),)
    return Assignment(source_of(node), source_of(name), values_of)


def _loop(node: Node, parsed: Parsed) -> Assignment:
    """Return the variable of a loop, with the values that it takes."""
    name = source_of(node.child_by_field_name("variable"))
    listed = [child for child in node.named_children if child.type in WORD_NODES]
    words = [word for child in listed for word in read_words(child, parsed.fail)]
    if not words or node.children[0].type != "for":
        parsed.fail("what a loop in it goes over is not known")
    return Assignment(source_of(node).split("\n")[0], name, tuple(words))


def _command(node: Node, parsed: Parsed, depth: int) -> None:
    words: list[Word] = []
    assigned: list[Assignment] = []
    if not covered(node):
        parsed.fail("a part of it is not understood")
    for child in node.children:
        if child.type == "variable_assignment":
            assigned.append(_assignment(child, parsed))
            for value in child.named_children:
                _inside(value, parsed, depth + 1)
            continue
        if child.type == "command_name" and child.named_children:
            parsed.seen.commands.add(child.start_byte)
            parsed.seen.words.add((child.start_byte, child.end_byte))
            words.append(read_word(child.named_children[0], parsed.fail))
        elif child.type in WORD_NODES:
            parsed.seen.words.add((child.start_byte, child.end_byte))
            words += read_words(child, parsed.fail)
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
        assignments = " ".join(one.text for one in assigned)
        parsed.pieces.append(Simple(tuple(words), assignments, tuple(assigned), source_of(node)))


def _redirect(node: Node, parsed: Parsed) -> None:
    operator = next((child.type for child in node.children if not child.is_named), "")
    targets = [child for child in node.named_children if child.type != "file_descriptor"]
    if operator == "<<<" or (len(targets) == 1 and operator in (">&", "<&") and _is_number(targets[0])):
        return
    if len(targets) == 1 and operator in ("<", ">", ">>", "&>", "&>>", ">|", ">&"):
        parsed.pieces.append(Redirect(operator, read_word(targets[0], parsed.fail), source_of(node)))
    else:
        parsed.fail(f"`{short_source(node)}` is not understood")


def _is_number(node: Node) -> bool:
    return re.fullmatch("[0-9]+", source_of(node)) is not None
