from __future__ import annotations

import pytest

from agentmesh.config.templates import Piece, PieceKind, has_actions, pieces

TEXT, COMMAND, FILE = PieceKind.TEXT, PieceKind.COMMAND, PieceKind.FILE


@pytest.mark.parametrize(
    ("body", "arguments", "found"),
    [
        ("plain", "", [Piece(TEXT, "plain")]),
        ("plain", "more", [Piece(TEXT, "plain"), Piece(TEXT, "\n\nmore")]),
        ("At !`git log $1` now", "main", [Piece(TEXT, "At "), Piece(COMMAND, "git log main"), Piece(TEXT, " now")]),
        ("Review @$1.", "src/a.py", [Piece(TEXT, "Review "), Piece(FILE, "@src/a.py.", "src/a.py")]),
        ('@"$1"', "'a b.txt'", [Piece(FILE, '@"a b.txt"', "a b.txt")]),
        ("@$1", "'a b.txt'", [Piece(FILE, '@"a b.txt"', "a b.txt")]),
        ("me@example.com", "", [Piece(TEXT, "me@example.com")]),
        (r"\!`ls`", "", [Piece(TEXT, "!`ls`")]),
        ("a!`ls`, !!`ls`", "", [Piece(TEXT, "a!`ls`, !!`ls`")]),
        ("!`a\nb`", "", [Piece(TEXT, "!`a\nb`")]),
    ],
)
def test_a_text_is_taken_apart_with_its_arguments(body, arguments, found):
    assert pieces(body, arguments) == found


@pytest.mark.parametrize("typed", ["!`rm -rf /`", "@/etc/passwd", '@"x"', "\\!`ls`"])
def test_what_a_person_gives_as_arguments_is_no_template(typed):
    for body in ("$ARGUMENTS", "See $ARGUMENTS", "nothing"):
        assert not has_actions(body)
        assert {one.kind for one in pieces(body, typed)} == {TEXT}
