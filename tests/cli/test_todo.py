"""``agentmesh todo``."""

from __future__ import annotations

import pytest

from agentmesh.store import todos


def test_the_board_is_added_to_listed_and_ended(am, mesh, here):
    assert am("todo").err == "Nothing is on the board.\n"
    first = am("todo", "--add", "build [b]\x1b[2J").out.strip()
    second = am("todo", "--add", "test", "--after", first, "--json").data["todo_id"]
    session = mesh.one("select session_id from agentmesh.agents where id = %s", here)
    mesh.run(todos.claim_todo, session, here, int(first))
    listed = am("todo").out
    assert listed.splitlines() == [
        f"{first}  build [b][2J  (claimed by root)",
        f"{second}  test  (open, after {first})",
    ]
    assert am("todo", "--release", first).err == f"Todo {first} is open.\n"
    assert am("todo", "--done", first, "--note", "in build/").err == f"Todo {first} is done.\n"
    ready, done = am("todo", "--json").data
    assert (ready["todo_id"], ready["ready"], ready["owner"]) == (second, True, None)
    assert (done["status"], done["note"]) == ("done", "in build/")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--add", ""), "a todo has 1 to 4000 bytes of text"),
        (("--add", "x", "--done", "1"), "give one of them"),
        (("--after", "1"), "--after belongs to --add"),
        (("--note", "x"), "--note belongs to --done"),
        (("--done", "0"), "0 is not in the range"),
        (("--add", "x", "--after", "99"), "there is no todo 99"),
    ],
)
def test_what_is_wrong_is_refused(am, mesh, here, arguments, words):
    done = am("todo", *arguments)
    assert done.code in (1, 2)
    assert words in done.err
    assert am("todo", "--json").data == []
