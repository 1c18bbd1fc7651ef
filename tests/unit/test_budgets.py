from __future__ import annotations

import re
import uuid
from decimal import Decimal

import pytest

from agentmesh.domain.budgets import Budget, Cap, CostLine, Unit, cost_cells, parse, parse_words, total, unpriced
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import SessionId


@pytest.mark.parametrize(
    ("text", "unit", "amount"),
    [
        ("5", Unit.USD, "5"),
        ("$5", Unit.USD, "5"),
        ("$ 2.50", Unit.USD, "2.50"),
        ("5usd", Unit.USD, "5"),
        (".5 USD", Unit.USD, "0.5"),
        ("5$", Unit.USD, "5"),
        ("$2k", Unit.USD, "2000"),
        ("2M", Unit.TOKENS, "2000000"),
        ("1.5m", Unit.TOKENS, "1500000"),
        ("200k tokens", Unit.TOKENS, "200000"),
        ("500000t", Unit.TOKENS, "500000"),
        ("500_000 tokens", Unit.TOKENS, "500000"),
        ("1 token", Unit.TOKENS, "1"),
        ("none", None, None),
        ("None tokens", Unit.TOKENS, None),
        ("none usd", Unit.USD, None),
    ],
)
def test_amounts(text, unit, amount):
    assert parse(text) == Cap(unit, None if amount is None else Decimal(amount))


@pytest.mark.parametrize(
    "text", ["", "coder", "-5", "5 eur", "$5 tokens", "5,000", "1e9", "2M k", "none at all", "NaN"]
)
def test_what_is_no_amount_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="is no amount") as refused:
        parse(text)
    assert "2M" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.4 tokens", "Tokens are whole."),
        ("1.5 tokens", "Tokens are whole."),
        ("0.0005k", "Tokens are whole."),
        ("$0.0000001", "The least amount is $0.000001."),
    ],
)
def test_an_amount_is_never_rounded(text, why):
    for words in ([text], text.split(), ["coder", *text.split()]):
        with pytest.raises(UsageError, match="is no amount") as refused:
            parse_words(words)
        assert why in refused.value.hint


def test_a_fraction_of_a_thousand_is_whole():
    assert parse("1.5k tokens") == Cap(Unit.TOKENS, Decimal(1500))
    assert parse("9" * 60).unit is Unit.USD, "the database says that it is out of range"
    assert parse("$0.000001") == Cap(Unit.USD, Decimal("0.000001"))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], (None, None)),
        (["5"], (None, Cap(Unit.USD, Decimal(5)))),
        (["200k", "tokens"], (None, Cap(Unit.TOKENS, Decimal(200_000)))),
        (["coder"], ("coder", None)),
        (["coder", "2M"], ("coder", Cap(Unit.TOKENS, Decimal(2_000_000)))),
        (["coder", "none", "usd"], ("coder", Cap(Unit.USD, None))),
    ],
)
def test_an_agent_comes_before_the_amount(words, meant):
    assert parse_words(words) == meant


def test_an_agent_with_what_is_no_amount_is_refused():
    with pytest.raises(UsageError, match="'plenty' is no amount"):
        parse_words(["coder", "plenty"])


@pytest.mark.parametrize("word", ["-5", "+3", "-$2", "$-5", "$", "1,5", "5€", "5 eur", "5%"])
def test_what_begins_as_an_amount_and_names_no_agent_is_no_amount(word):
    with pytest.raises(UsageError, match=f"'{re.escape(word)}' is no amount"):
        parse_words([word])


@pytest.mark.parametrize("word", ["1e3", "2nd-coder", "3d", "4.v2_a", str(uuid.UUID(int=2**127))])
def test_a_name_or_an_id_may_begin_with_a_digit(word):
    assert parse_words([word]) == (word, None)


@pytest.mark.parametrize("word", ["12345678", "1234567b", "1234567812345678"])
def test_what_may_be_the_beginning_of_an_id_is_no_amount_alone(word):
    with pytest.raises(UsageError, match=f"'{word}' may be an amount or the beginning of an agent's id") as refused:
        parse_words([word])
    assert "hyphen" in refused.value.hint


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["1234567"], (None, Cap(Unit.USD, Decimal(1_234_567)))),
        (["$12345678"], (None, Cap(Unit.USD, Decimal(12_345_678)))),
        (["12345678", "usd"], (None, Cap(Unit.USD, Decimal(12_345_678)))),
        (["12345678-"], ("12345678-", None)),
        (["12345678", "5"], ("12345678", Cap(Unit.USD, Decimal(5)))),
        (["12345678", "12345678"], ("12345678", Cap(Unit.USD, Decimal(12_345_678)))),
    ],
)
def test_what_may_be_the_beginning_of_an_id_can_be_written_as_either(words, meant):
    assert parse_words(words) == meant


@pytest.mark.parametrize(
    ("used", "cap", "left"), [(0, 10, "90 %"), (3, 10, "60 %"), (9, 10, "nothing"), (20, 10, "nothing"), (5, None, "")]
)
def test_what_is_left_counts_what_is_reserved(used, cap, left):
    budget = Budget(SessionId(uuid.UUID(int=1)), None, None, cap, used, 1, None, Decimal(), Decimal(), 0)
    assert next(budget.lines()).left == left


def test_a_sum_is_of_known_cost():
    def line(cost, unknown):
        return CostLine("a", 1, 10, 8, 1, 2, cost, unknown)

    assert total([line(Decimal(1), 0), line(None, 1)]) == CostLine("total", 2, 20, 16, 2, 4, Decimal(1), 1)
    assert total([line(None, 1)]).cost_usd is None
    assert total([]).cost_usd == 0
    assert [cost_cells(line(known, 1))[-1] for known in (None, Decimal(0), Decimal(1))] == ["?", "?", "$1.00 + ?"]
    assert [cost_cells(line(known, 0))[-1] for known in (Decimal(0), Decimal(1))] == ["$0.00", "$1.00"]
    assert unpriced(0) == ""
    assert unpriced(1).startswith("1 model call has no known price")
    assert unpriced(2).startswith("2 model calls have no known price")
