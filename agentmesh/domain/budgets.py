"""Budgets as people write and read them: ``5`` is money, ``2M`` is tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Final

from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import cost, count, money
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import one_line

HOW_TO_WRITE: Final = "Write 5, $5 or 5usd for money, 2M or 200k tokens for tokens, none for no cap."

_AMOUNT = re.compile(
    r"(?P<money>\$)?\s*(?P<number>\d[\d_]*(\.\d+)?|\.\d+)\s*(?P<times>[kmb])?\s*(?P<unit>\$|usd|tokens?|t)?"
)
_MAY_BE_AN_ID = re.compile(r"\d{7,}[\db]")
"""An amount without a unit that looks like one of the short ids in lists."""
_BEGINS_AN_AMOUNT = re.compile(r"[$+\-.\d]")
_MAY_BE_AN_AGENT = re.compile(r"[a-z0-9][a-z0-9_.-]*")
"""A name or an id of an agent, or the beginning of an id."""
_LEAST_USD: Final = Decimal("0.000001")
"""What the database can tell from nothing."""
_NONE = re.compile(r"none(\s+(?P<unit>tokens|usd))?")
_TIMES: Final = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}


class Unit(StrEnum):
    """What a cap counts."""

    TOKENS = "tokens"
    USD = "usd"


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap to set: on tokens, on money or (no unit) on both; no amount removes the cap."""

    unit: Unit | None
    amount: Decimal | None


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps of a session, or of an agent with everything below it, and their usage (``v_budgets``)."""

    session_id: SessionId
    agent_id: AgentId | None
    """None: the session's."""
    name: str | None
    """The agent's."""
    max_tokens: int | None
    tokens: int
    reserved_tokens: int
    """For model calls that run now."""
    max_cost_usd: Decimal | None
    cost_usd: Decimal
    """Known cost."""
    reserved_cost_usd: Decimal
    unpriced_calls: int
    """Model calls whose price is not known."""

    def lines(self) -> Iterator[BudgetLine]:
        """Yield its line on tokens, then on money."""
        yield BudgetLine(Unit.TOKENS, Decimal(self.tokens), Decimal(self.reserved_tokens), _decimal(self.max_tokens))
        yield BudgetLine(Unit.USD, self.cost_usd, self.reserved_cost_usd, self.max_cost_usd)


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One unit of a budget."""

    unit: Unit
    used: Decimal
    reserved: Decimal
    cap: Decimal | None

    @property
    def left(self) -> str:
        """How much of the cap is left, in words; nothing without a cap."""
        if self.cap is None:
            return ""
        free = self.cap - self.used - self.reserved
        return f"{int(100 * free / self.cap)} %" if free > 0 else "nothing"


@dataclass(frozen=True, slots=True)
class CostLine:
    """Usage by the model calls of an agent, a model or a day."""

    what: str
    calls: int
    tokens: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """Known cost; None: no price is known."""
    unpriced_calls: int


def budget_cells(budget: Budget, session: str, tokens: str = "") -> Iterator[tuple[str, ...]]:
    """Yield the cells of each line of a budget: what it is of, unit, used, reserved, cap and left.

    ``session`` names the session if the budget is the session's; ``tokens`` follows each number of tokens.
    """
    for line in budget.lines():
        used, reserved = (amount_words(line.unit, amount, tokens) for amount in (line.used, line.reserved))
        cap = "none" if line.cap is None else amount_words(line.unit, line.cap, tokens)
        yield budget.name or session, line.unit, used, reserved, cap, line.left


def amount_words(unit: Unit, amount: Decimal, tokens: str = "") -> str:
    """Return an amount as people read it; ``tokens`` follows a number of tokens."""
    return money(amount) if unit == Unit.USD else f"{count(int(amount))}{tokens}"


def cost_cells(line: CostLine) -> tuple[str, ...]:
    """Return the cells of a line of costs: what it is of, calls, tokens, input, cached, output and cost."""
    tokens = (line.tokens, line.input_tokens, line.cached_tokens, line.output_tokens)
    return line.what, str(line.calls), *map(count, tokens), cost(line.cost_usd, line.unpriced_calls)


def total(lines: Iterable[CostLine]) -> CostLine:
    """Return the sum."""
    every = list(lines)
    known = [line.cost_usd for line in every if line.cost_usd is not None]
    return CostLine(
        "total",
        sum(line.calls for line in every),
        sum(line.tokens for line in every),
        sum(line.input_tokens for line in every),
        sum(line.cached_tokens for line in every),
        sum(line.output_tokens for line in every),
        sum(known, Decimal()) if known or not every else None,
        sum(line.unpriced_calls for line in every),
    )


def unpriced(calls: int) -> str:
    """Return the remark for a cost with calls of unknown price, "" if there are no such calls."""
    if not calls:
        return ""
    subject = "1 model call has" if calls == 1 else f"{calls} model calls have"
    return f"{subject} no known price: the cost, and its cap, count known cost only."


def remark_on(budgets: Sequence[Budget], above: int | None = None) -> str:
    """Return a remark on caps on money if calls have no known price, with the cap on those calls; otherwise "".

    ``above``: the lowest cap on tokens that holds for the agent of these budgets too.
    """
    blind = [one for one in budgets if one.max_cost_usd is not None and one.unpriced_calls]
    if not blind:
        return ""
    caps = [cap for cap in (above, *(one.max_tokens for one in blind)) if cap is not None]
    return f"{unpriced(max(one.unpriced_calls for one in blind))} {token_cap(min(caps, default=None))}"


def token_cap(most: int | None) -> str:
    """Return a sentence about the cap on calls whose price is not known."""
    if most is None:
        return "Nothing caps such calls: agentmesh budget 2M caps their tokens."
    return f"Their tokens are capped: {count(most)} in all."


def parse(text: str) -> Cap:
    """Read an amount; raise UsageError."""
    clean = " ".join(text.lower().split())
    if nothing := _NONE.fullmatch(clean):
        return Cap(Unit(nothing["unit"]) if nothing["unit"] else None, None)
    found = _AMOUNT.fullmatch(clean)
    if not found or (found["money"] and found["unit"]):
        raise _no_amount(text)
    is_money = bool(found["money"]) or found["unit"] in ("$", "usd") or not (found["unit"] or found["times"])
    unit, least = (Unit.USD, _LEAST_USD) if is_money else (Unit.TOKENS, Decimal(1))
    amount = Decimal(found["number"].replace("_", "")) * _TIMES[found["times"] or ""]
    if (Fraction(amount) / Fraction(least)).denominator > 1:
        raise _no_amount(text, "Tokens are whole." if unit is Unit.TOKENS else f"The least amount is ${least}.")
    return Cap(unit, amount if is_money else Decimal(int(amount)))


def parse_words(words: Sequence[str]) -> tuple[str | None, Cap | None]:
    """Read ``[AGENT] [AMOUNT]``; a missing part is None. An amount is never taken for an agent's name.

    Raise UsageError for a word that may be either, because as an amount it would set the session's cap.
    """
    if not words:
        return None, None
    if len(words) == 1 and _MAY_BE_AN_ID.fullmatch(words[0].strip().lower()):
        raise UsageError(
            f"{words[0].strip()!r} may be an amount or the beginning of an agent's id",
            hint="Write it with its unit ($, usd or tokens), or with the hyphen that follows in the id.",
        )
    text = " ".join(words)
    clean = " ".join(text.lower().split())
    if _NONE.fullmatch(clean) or _AMOUNT.fullmatch(clean):
        return None, parse(text)
    if _BEGINS_AN_AMOUNT.match(words[0].strip()) and not _MAY_BE_AN_AGENT.fullmatch(words[0].strip().lower()):
        raise _no_amount(text)
    return words[0], parse(" ".join(words[1:])) if words[1:] else None


def _no_amount(text: str, why: str = "") -> UsageError:
    return UsageError(f"{one_line(text, 40)!r} is no amount", hint=f"{why} {HOW_TO_WRITE}".lstrip())


def _decimal(number: int | None) -> Decimal | None:
    return None if number is None else Decimal(number)
