"""Errors: one tree, a sentence and a hint each, exit codes of four kinds."""

from __future__ import annotations

import inspect

import pytest

from agentmesh.domain import errors
from agentmesh.domain.errors import AgentmeshError, DeadAgent, LimitReached, Refused

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, AgentmeshError)]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_has_a_default_sentence_a_code_and_an_exit_code(kind: type[AgentmeshError]):
    error = kind()
    assert error.message == str(error) == kind.__doc__
    assert error.hint == ""
    assert kind.code.startswith("AM")
    assert len(kind.code) == 5
    assert kind.exit_code in (1, 2, 3, 4, 130)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_stands_in_the_tree_of_the_module(kind: type[AgentmeshError]):
    assert kind.__name__ in (errors.__doc__ or "")


def test_a_message_and_a_hint_are_kept_apart():
    error = DeadAgent("a is dead", hint="Fork a new one.")
    assert (error.message, error.hint, str(error)) == ("a is dead", "Fork a new one.", "a is dead")


def test_limits_end_a_command_with_3():
    assert {kind.exit_code for kind in TREE if issubclass(kind, LimitReached)} == {3}
    assert all(issubclass(kind, Refused) for kind in TREE if issubclass(kind, LimitReached))
