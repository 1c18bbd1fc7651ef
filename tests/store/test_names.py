"""Names of agents: what is made of them, what is refused, what happens to one that is taken."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import BadName, ReservedName
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def named(mesh: Mesh, name: str) -> str:
    return mesh.name(mesh.fork(mesh.root, name))


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("worker", "worker"),
        ("File Reader", "file-reader"),
        ("  blanks \t\r\n around and  inside ", "blanks-around-and-inside"),
        ("MiXeD_0.9-x", "mixed_0.9-x"),
        ("7", "7"),
        ("a" * 32, "a" * 32),
        ("cafe", "cafe"),
        ("deadbeef", "deadbeef"),
        ("users", "users"),
    ],
)
def test_a_name_is_lowered_and_its_blanks_become_dashes(mesh: Mesh, given: str, made: str):
    assert named(mesh, given) == made


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        "a" * 33,
        "x" * 10_000,
        "-begins-with-dash",
        ".hidden",
        "_private",
        "größe",
        "агент",
        "名前",
        "a\u00a0b",
        "emoji🙂",
        "[/x]",
        "[@click=app.quit]",
        "\x1b[31mred",
        "../etc/passwd",
        "a/b",
        "'; drop table agents; --",
        'quo"te',
        "per%cent",
        "new\nline\x00",
        "\ud800",
        "ſ",
    ],
)
def test_anything_else_is_refused_in_words_a_model_can_act_on(mesh: Mesh, given: str):
    with pytest.raises(BadName, match="is no name for an agent") as refused:
        named(mesh, given)
    assert "1 to 32 characters" in refused.value.hint
    assert len(refused.value.message) < 200, "a long one is cut"
    assert mesh.one("select count(*) from agentmesh.agents") == 1


@pytest.mark.parametrize("given", ["parent", "user", "all", "root", "children", "session", "Parent", " USER ", "ROOT"])
def test_reserved_names_are_refused(mesh: Mesh, given: str):
    with pytest.raises(ReservedName, match="is reserved") as refused:
        named(mesh, given)
    assert refused.value.hint


def test_a_taken_name_gets_the_next_number(mesh: Mesh):
    assert [named(mesh, "w") for _ in range(3)] == ["w", "w-2", "w-3"]


def test_the_dead_and_the_reaped_keep_their_names(mesh: Mesh):
    first = mesh.fork(mesh.root, "w")
    mesh.kill(first)
    mesh.conn.execute("select agentmesh.reap(%s)", [mesh.session])
    assert named(mesh, "w") == "w-2"


def test_a_number_that_is_taken_by_its_own_right_is_left_out(mesh: Mesh):
    assert [named(mesh, name) for name in ("w-2", "w", "w", "w-2")] == ["w-2", "w", "w-3", "w-2-2"]


def test_a_long_name_is_shortened_so_that_its_number_fits(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 100")
    made = [named(mesh, "a" * 32) for _ in range(11)]
    assert made[0] == "a" * 32
    assert made[1] == "a" * 30 + "-2"
    assert made[10] == "a" * 29 + "-11"
    assert all(len(name) <= 32 for name in made)


def test_a_shortened_name_does_not_end_in_two_dashes(mesh: Mesh):
    name = "a" * 29 + "-bc"
    assert [named(mesh, name) for _ in range(2)] == [name, "a" * 29 + "-2"]


def test_names_are_per_session(mesh: Mesh):
    other = mesh.new_session()
    assert named(mesh, "w") == "w"
    assert mesh.name(mesh.fork(other, "w")) == "w"


def test_the_final_name_is_told_to_the_caller(mesh: Mesh):
    mesh.fork(mesh.root, "w")
    call = mesh.call(mesh.root, "fork")[0]
    mesh.fork(mesh.root, "W", "work", call)
    assert mesh.result(call)["name"] == "w-2"
