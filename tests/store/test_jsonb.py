"""JSON parameters: PostgreSQL reads back what storable_json makes of a value, whatever is in it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.text import storable_json
from agentmesh.store.jsonb import jsonb
from agentmesh.store.tx import Database
from tests.fixtures.mesh import Mesh

TEXT = st.text(st.characters(codec=None), max_size=12) | st.sampled_from(
    ["\0", "a\0b", "\ud800", "\udc00x", "\\u0000", "\\ud800", '"', "\U0001f600", "\u2028", "é\0"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def test_it_comes_back_clean(mesh: Mesh):
    @given(VALUES)
    def comes_back(value):
        assert mesh.one("select %s::jsonb", jsonb(value)) == storable_json(value)

    comes_back()


@pytest.mark.parametrize("value", ["\\u0000", {"\\u0000": "\\ud800"}, "two words\n", ["é", "\U0001f600"]])
def test_what_only_looks_unstorable_is_kept(mesh: Mesh, value):
    assert mesh.one("select %s::jsonb", jsonb(value)) == value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (math.nan, "NaN"),
        ({"a": [math.inf, -math.inf, 1.5]}, {"a": ["Infinity", "-Infinity", 1.5]}),
        ({"\0": math.nan}, {"\ufffd": "NaN"}),
    ],
)
def test_numbers_that_json_does_not_have_are_kept_as_words(mesh: Mesh, value, kept):
    assert mesh.one("select %s::jsonb", jsonb(value)) == kept


@pytest.mark.parametrize("kind", ["json", "jsonb"])
def test_a_number_that_python_does_not_read_is_a_text(db: Database, kind: str):
    rows = db.run(lambda conn: conn.execute(f"select ('[1, -' || repeat('9', 5000) || ', 2.5]')::{kind}").fetchall())
    assert rows == [([1, f"-{'9' * 5000}", 2.5],)]
