"""The generated parts of docs/reference are what the code says; AGENTMESH_UPDATE_DOCS=1 (`make docs`) writes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.reference import commands, database, errors, pages, python, screen, settings, tokens, tools

MAJOR = 18
"""PostgreSQL by which the pages of SQL are written; others print the same types in other words."""
FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(path for path in FOLDER.glob("*.md") if pages.names(path.read_text(encoding="utf-8")))
PARTS = {
    "commands": commands.commands,
    "errors": errors.classes,
    "exit-codes": commands.exit_codes,
    "keys": screen.keys,
    "python": python.python,
    "servers": settings.servers,
    "settings": settings.settings,
    "slash-commands": screen.slash_commands,
    "tokens": tokens.tokens,
    "tools": tools.tools,
}


@pytest.fixture
def parts(conn):
    """All parts by name; the SQL ones look into a database."""
    return PARTS | {"functions": lambda: database.functions(conn), "views": lambda: database.views(conn)}


@pytest.mark.only_rows
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_what_the_code_says(page, parts, conn):
    text = page.read_text(encoding="utf-8")
    if {"views", "functions"} & {*pages.names(text)} and conn.info.server_version // 10000 != MAJOR:
        pytest.skip(f"the page is as PostgreSQL {MAJOR} writes types")
    wanted = pages.renewed(text, parts)
    if os.environ.get("AGENTMESH_UPDATE_DOCS") == "1":
        page.write_text(wanted, encoding="utf-8")
        text = wanted
    assert text == wanted, "run `make docs`"


def test_every_part_stands_on_one_page(parts):
    found = [name for page in PAGES for name in pages.names(page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(parts)


def test_a_part_that_was_changed_is_seen():
    text = "before\n<!-- generated: keys; by hand -->\nwhat I say\n<!-- end of generated -->\nafter\n"
    renewed = pages.renewed(text, PARTS)
    assert renewed != text
    assert renewed.startswith("before\n<!-- generated: keys;")
    assert renewed.endswith("<!-- end of generated -->\nafter\n")
    assert pages.renewed(renewed, PARTS) == renewed


def test_every_view_and_function_has_a_sentence():
    named = [("view", name) for kind, name in database.sentences() if kind == "view" and name.startswith("v_")]
    named += [("function", name) for names in database.FUNCTIONS.values() for name in names]
    assert [one for one in named if not database.sentences().get(one)] == []


def test_every_option_of_a_command_says_what_it_is_for():
    silent = [
        (context.command_path, option.name)
        for context in commands.contexts()
        for option in context.command.params
        if option.param_type_name == "option" and not getattr(option, "help", None)
    ]
    assert silent == []


def test_arguments_that_are_only_given_by_name_or_by_place_are_marked_so():
    listed = python.python()
    assert "`run(prompt, *, timeout=None, images=()) → str`" in listed
    assert "`tool(function=None, /, *, effect='write', name=None) → " in listed
    assert "`wait(*who, timeout=None) → WaitResult`" in listed
