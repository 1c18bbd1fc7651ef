from __future__ import annotations

import subprocess

import pytest

from agentmesh.config.templates import PieceKind, TemplatePiece, has_actions, pieces
from agentmesh.domain.errors import UsageError

TEXT, COMMAND, FILE = PieceKind.TEXT, PieceKind.COMMAND, PieceKind.FILE


@pytest.mark.parametrize(
    ("body", "arguments", "found"),
    [
        ("plain", "", [TemplatePiece(TEXT, "plain")]),
        ("plain", "more", [TemplatePiece(TEXT, "plain"), TemplatePiece(TEXT, "\n\nmore")]),
        (
            "At !`git log $1` now",
            "main",
            [TemplatePiece(TEXT, "At "), TemplatePiece(COMMAND, "git log main"), TemplatePiece(TEXT, " now")],
        ),
        ("Review @$1.", "src/a.py", [TemplatePiece(TEXT, "Review "), TemplatePiece(FILE, "@src/a.py.", "src/a.py")]),
        ('@"$1"', "'a b.txt'", [TemplatePiece(FILE, '@"a b.txt"', "a b.txt")]),
        ("@$1", "'a b.txt'", [TemplatePiece(FILE, '@"a b.txt"', "a b.txt")]),
        ("me@example.com", "", [TemplatePiece(TEXT, "me@example.com")]),
        (r"\!`ls`", "", [TemplatePiece(TEXT, "!`ls`")]),
        ("a!`ls`, !!`ls`", "", [TemplatePiece(TEXT, "a!`ls`, !!`ls`")]),
        ("!`a\nb`", "", [TemplatePiece(TEXT, "!`a\nb`")]),
    ],
)
def test_a_text_is_taken_apart_with_its_arguments(body, arguments, found):
    assert pieces(body, arguments) == found


@pytest.mark.parametrize("typed", ["!`rm -rf /`", "@/etc/passwd", '@"x"', "\\!`ls`"])
def test_what_a_person_gives_as_arguments_is_no_template(typed):
    for body in ("$ARGUMENTS", "See $ARGUMENTS", "nothing"):
        assert not has_actions(body)
        assert {one.kind for one in pieces(body, typed)} == {TEXT}


def command(body: str, arguments: str) -> str:
    """Return the one command of a text."""
    (found,) = pieces(f"!`{body}`", arguments)
    assert found.kind is COMMAND
    return found.text


VALUES = (
    "$(touch pwn)",
    "; touch pwn #",
    '"; touch pwn; "',
    "it's",
    "'; touch pwn; '",
    "a\\",
    "*",
    "~",
    "$HOME",
    "a\nb",
)


@pytest.mark.parametrize("place", ["$1", '"$1"', "'$1'", "$ARGUMENTS", "''$1", "'$ARGUMENTS'"])
@pytest.mark.parametrize("value", VALUES)
def test_an_argument_that_stands_by_itself_reaches_the_shell_as_it_is(tmp_path, place, value):
    typed = value
    if place in ("$1", '"$1"', "'$1'", "''$1", "$ARGUMENTS"):
        typed = "'" + value.replace("'", "'\\''") + "'"
    made = command(f"printf '<%s>' --x={place} ';'", typed)
    done = subprocess.run(["bash", "-c", made], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"<--x={value}><;>"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [value for value in VALUES if value != "a\nb"])
@pytest.mark.parametrize(
    "body",
    [
        "echo 'to $ARGUMENTS'",
        'sh -c "echo $ARGUMENTS"',
        'echo "$(echo "$ARGUMENTS")"',
        "echo $((1 + $ARGUMENTS))",
        "echo ${x:-$ARGUMENTS}",
        "[[ $ARGUMENTS -eq 1 ]]",
        "x[$ARGUMENTS]=1",
        "echo a # $ARGUMENTS",
        "echo $$ARGUMENTS",
        "echo $'$ARGUMENTS'",
        "echo 'open $ARGUMENTS",
    ],
)
def test_an_argument_that_a_shell_could_run_elsewhere_is_refused(body, value):
    with pytest.raises(UsageError, match="a shell could run a part of it"):
        command(body, value)
    assert command(body, "src/a b.py") == body.replace("$ARGUMENTS", "src/a b.py")


@pytest.mark.parametrize(
    ("body", "arguments", "made"),
    [
        ("ls $ARGUMENTS", "a 'b c'", "ls a 'b c'"),
        ("ls $1 $2", "a", "ls a"),
        ("ls '$1' \"$2\"", "a", "ls a ''"),
        ("git log --grep=$1", "'a b'", "git log --grep='a b'"),
        ("git log --grep='about $1'", "'a b'", "git log --grep='about a b'"),
        (r"awk '{print \$1}' $1", "f.txt", "awk '{print $1}' f.txt"),
    ],
)
def test_a_command_has_the_words_that_are_judged_and_shown(body, arguments, made):
    assert command(body, arguments) == made
