"""Every command and block of code in docs/ and in the README does what the page says."""

from __future__ import annotations

import ast
import re

import pytest

from tests.docs import readers
from tests.docs.blocks import ROOT, Block, fits, pages, read
from tests.docs.not_run import NOT_RUN
from tests.docs.shell import Reader, commands

_TRACEBACK = "Traceback (most recent call last)"
PAGES = [path for path in pages() if any(block.language for block in read(path))]
EMBEDDED = "docs/tutorial/first-team.md"
"""This one is read by somebody who has nothing: not even a database."""
RUN_ELSEWHERE = {"docs/how-to/python.md": "tests/api/test_python_document.py"}
"""Pages whose blocks of Python go on from one to the next, against a scripted model of their own."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page(path, request):
    """Run the blocks of a page in their order, as one reader would."""
    name = str(path.relative_to(ROOT))
    reader: Reader = request.getfixturevalue("lonely" if name == EMBEDDED else "reader")
    for block in read(path):
        if "not run" not in block.says:
            _play(block, reader)


def _play(block: Block, reader: Reader) -> None:
    match block.language:
        case "setup":
            _must(reader, block.text, block)
        case "console":
            _console(block, reader)
        case "sql":
            _sql(block, reader)
        case "python":
            _python(block, reader)
        case _:
            readers.check(block, reader)


def _must(reader: Reader, command: str, block: Block, exit_code: int = 0) -> str:
    code, printed = reader.run(command)
    assert code == exit_code, f"{block.where}: {command}\nended with {code}:\n{printed}"
    assert _TRACEBACK not in printed, f"{block.where}: {command}\nprints a traceback:\n{printed}"
    return printed


def _console(block: Block, reader: Reader) -> None:
    *first, (last, shown) = commands(block.text)
    for command, wanted in first:
        _compare(block, command, wanted, _must(reader, command, block))
    if "screen until" in block.says:
        reader.look(last, block.says["screen until"])
    elif "until" in block.says:
        _compare(block, last, shown, reader.run_until(last, block.says["until"]))
    else:
        _compare(block, last, shown, _must(reader, last, block, int(block.says.get("exit", 0))))


def _compare(block: Block, command: str, wanted: str | None, printed: str) -> None:
    if wanted is not None:
        assert fits(wanted, printed.strip("\n")), (
            f"{block.where}: {command}\nshould print\n{wanted}\nand prints\n{printed}"
        )


def _sql(block: Block, reader: Reader) -> None:
    """Run a block as psql does, by a role that owns the schema: the verbs are among them."""
    reader.write("~/.block.sql", block.text)
    query = 'psql "${URL:=$(agentmesh db url)}" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --file="$HOME/.block.sql"'
    _compare(block, block.text, block.output, _must(reader, query, block))


def _python(block: Block, reader: Reader) -> None:
    ast.parse(block.text)
    if block.page in RUN_ELSEWHERE:
        return
    file = reader.write(block.says.get("file", "~/block.py"), block.text)
    if "file" not in block.says or block.output is not None:
        _compare(block, block.text, block.output, _must(reader, f"python {file}", block))


def test_what_is_not_run_is_listed_with_its_reason():
    marked = {
        (block.page, block.text.splitlines()[0].strip()[:50]): block.says["not run"]
        for path in PAGES
        for block in read(path)
        if "not run" in block.says
    }
    assert marked == NOT_RUN


def test_every_block_says_what_it_is():
    """A block made by indenting, or with no language, would be run by nobody."""
    known = {"setup", "console", "sql", "python", "toml", "json", "yaml", "markdown"}
    strays = [
        block.where
        for path in PAGES
        for block in read(path)
        if block.language not in known and "not run" not in block.says
    ]
    assert strays == []


def test_a_reader_is_told_the_name_of_every_file():
    """The comment that names a file is not seen, so the words before the block do."""
    unnamed = []
    for path in PAGES:
        for part in re.split(r"^(?:#+ .*|```)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            words, mark, rest = part.partition("<!-- file: ")
            name = rest.partition(" -->")[0].removeprefix("~/.config/agentmesh/")
            if mark and f"{name}`" not in words:
                unnamed.append((path.name, name))
    assert unnamed == []


def test_what_a_reader_does_not_see_makes_no_agents_and_no_files():
    makes = re.compile(r"\bagentmesh (?!db url)|\b(?:mkdir|touch|export AGENTMESH_\w+)\b|>(?! ?/dev/null|&)")
    hidden = [
        block.where
        for path in PAGES
        if path.name != "README.md"  # its commands look at what a real model does
        for block in read(path)
        if block.language == "setup" and makes.search(block.text)
    ]
    assert hidden == []


def test_every_page_with_python_that_is_run_elsewhere_has_its_test():
    for page, test in RUN_ELSEWHERE.items():
        assert page.removeprefix("docs/") in (ROOT / test).read_text(encoding="utf-8")


def test_a_block_that_prints_something_else_is_seen(reader):
    block = Block("page", 1, "console", "$ echo hello\ngood bye\n", {})
    with pytest.raises(AssertionError, match="should print"):
        _play(block, reader)


def test_a_command_that_fails_is_seen(reader):
    with pytest.raises(AssertionError, match="ended with 1"):
        _play(Block("page", 1, "console", "$ false\n", {}), reader)
    with pytest.raises(AssertionError, match="ended with 3"):
        _play(Block("page", 1, "sql", "select nothing_like_that();\n", {}), reader)


@pytest.mark.parametrize(
    "command",
    [
        'echo "$(false)"',
        'echo "$(true; ls /no/such/folder)"',
        'echo "${NOTHING:=$(false)}"',
        'true "$(echo "$(false)")"',
    ],
)
def test_17_8_a_command_that_fails_inside_another_is_seen(reader, command):
    with pytest.raises(AssertionError, match=r"failed inside \$\(\.\.\.\)"):
        _play(Block("page", 1, "console", f"$ {command}\n", {}), reader)
    _play(Block("page", 1, "console", '$ echo "$(echo fine)"\nfine\n', {}), reader)
    _play(Block("page", 1, "console", '$ if ! echo "$(false || echo fine)"; then :; fi\nfine\n', {}), reader)


def test_17_8_a_traceback_is_seen_though_the_command_goes_on(reader):
    with pytest.raises(AssertionError, match="prints a traceback"):
        _play(Block("page", 1, "console", "$ python -c 'import nothing' || true\n…\n", {}), reader)


@pytest.mark.parametrize(
    ("pattern", "text", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a …\nb", "a 12 s\nb\n", True),
        ("a\n…\nb", "a\nx\ny\nb\n", True),
        ("a\n…", "a\n", True),
        ("…\nb", "a\nb\nc\n", False),
        ("a\nb", "a\nx\nb\n", False),
        ("a.b", "axb", False),
    ],
)
def test_what_fits(pattern, text, same):
    assert fits(pattern, text) is same
