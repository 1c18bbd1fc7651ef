"""budget and cost, as a person gives them."""

from __future__ import annotations

from agentmesh.store import steps

USAGE = {"input_tokens": 1500, "output_tokens": 500, "cached_tokens": 500, "cost_usd": 0.25, "model": "dear"}


def book(mesh, agent, **usage):
    mesh.run(steps.book_call, agent, {**USAGE, **usage})


def test_budget_shows_used_reserved_cap_and_what_is_left(am, mesh, here):
    book(mesh, here)
    shown = am("budget")
    assert shown.code == 0
    lines = [line.split() for line in shown.out.splitlines()]
    session = str(mesh.session_of(here))[:8]
    assert lines == [
        ["BUDGET", "OF", "UNIT", "USED", "RESERVED", "CAP", "LEFT"],
        ["session", session, "tokens", "2k", "0", "20.0M", "99", "%"],
        ["session", session, "usd", "$0.2500", "$0.00", "$10.00", "97", "%"],
    ]
    assert shown.err == ""


def test_a_cap_on_the_session_is_set_and_shown(am, mesh, here):
    assert "$5.00" in am("budget", "5").out
    assert am("budget", "2M", "--json").data[0]["max_tokens"] == 2_000_000
    (budget,) = am("budget", "none", "tokens", "--json").data
    assert (budget["max_tokens"], budget["max_cost_usd"], budget["name"]) == (None, 5.0, None)


def test_a_cap_on_an_agent_is_set_shown_and_taken_away(am, mesh, here):
    child = mesh.fork(here, "coder")
    set_ = am("budget", "coder", "200k", "tokens")
    assert set_.code == 0
    assert set_.out.splitlines()[1].split() == ["coder", "tokens", "0", "0", "200k", "100", "%"]
    assert [one["name"] for one in am("budget", "--json").data] == [None, "coder"]
    assert am("budget", str(child)[:9], "--json").data[0]["agent_id"] == str(child)
    gone = am("budget", "coder", "none")
    assert (gone.code, gone.out) == (0, "")
    assert "coder has no budget of its own" in gone.err


def test_calls_without_a_price_are_capped_by_what_is_above_their_agent_too(am, mesh, here):
    child = mesh.fork(here, "coder")
    below = mesh.fork(child, "below")
    book(mesh, below, cost_usd=None, model="free")
    assert "Their tokens are capped: 20.0M in all." in am("budget", "below", "5").err
    assert am("budget", "coder", "3M").code == 0
    assert "Their tokens are capped: 3.0M in all." in am("budget", "below").err
    assert am("budget", "below", "200k").code == 0
    assert "Their tokens are capped: 200k in all." in am("budget", "below").err
    for who in ("coder", "below"):
        assert am("budget", who, "none", "tokens").code == 0
    assert am("budget", "none", "tokens").code == 0
    assert "Nothing caps such calls" in am("budget", "below").err


def test_what_is_no_amount_or_no_agent_is_said(am, here):
    wrong = am("budget", "root", "plenty")
    assert wrong.code == 2
    assert "'plenty' is no amount" in wrong.err
    assert "2M" in wrong.err
    unknown = am("budget", "nobody")
    assert unknown.code == 1
    assert "nobody" in unknown.err


def test_cost_by_agent_model_and_day_with_their_sum(am, mesh, here):
    child = mesh.fork(here, "coder")
    book(mesh, here)
    book(mesh, child, cost_usd=None, model="free")
    shown = am("cost")
    assert shown.code == 0
    assert [line.split() for line in shown.out.splitlines()] == [
        ["AGENT", "MODEL", "CALLS", "TOKENS", "INPUT", "CACHED", "OUTPUT", "COST"],
        ["root", "1", "2k", "2k", "500", "500", "$0.2500"],
        ["coder", "1", "2k", "2k", "500", "500", "?"],
        ["total", "2", "3k", "3k", "1k", "1k", "$0.2500", "+", "?"],
    ]
    assert "1 model call has no known price" in shown.err
    assert [line["model"] for line in am("cost", "--by", "model", "--json").data] == ["dear", "free"]
    (day,) = am("cost", "--by", "day", "--json").data
    assert (day["calls"], day["tokens"], day["cost_usd"], day["unpriced_calls"]) == (2, 3000, 0.25, 1)


def test_a_session_without_calls_has_no_costs(am, here):
    assert am("cost", "--json").data == []
    assert am("cost").out.split() == ["AGENT", "MODEL", "CALLS", "TOKENS", "INPUT", "CACHED", "OUTPUT", "COST"]


def test_a_budget_that_was_too_small_is_raised_and_the_run_goes_on(am, mesh):
    refused = am("run", "--model", "demo", "list files", AGENTMESH_MAX_TOKENS="1")
    assert refused.code == 3
    assert "does not fit into the budget of the session, 1 tokens" in refused.err
    assert "agentmesh budget AMOUNT" in refused.err
    assert am("budget", "none").code == 0
    assert am("run", "-c", "list files").code == 0
