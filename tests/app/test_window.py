"""The warning that not even one turn fits into a model's context."""

from __future__ import annotations

from agentmesh.app.window import warning


def test_a_window_that_holds_a_turn_is_not_spoken_of():
    assert warning("here/a", 2000, "p" * 400, [], None) == ""


def test_a_window_that_holds_no_turn_is_told_with_what_can_be_done():
    said = warning("here/a", 2048, "p" * 4096, [{"type": "function"}], None)
    assert said.startswith("The context of here/a has 2,048 tokens. System prompt and tools take about 1,029")
    assert "an answer may have 1,024: not even one turn fits" in said
    assert said.endswith("Give the model a larger context, or offer fewer tools (tools.set, MCP servers).")


def test_the_limit_of_an_answer_counts():
    assert warning("here/a", 4096, "p" * 4096, [], 1024) == ""
    said = warning("here/a", 4096, "p" * 4096, [], 4000)
    assert "an answer may have 4,000" in said
    assert "larger context, lower providers.here.max_tokens, or offer fewer tools" in said
