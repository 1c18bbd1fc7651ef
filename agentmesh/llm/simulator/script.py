"""Script files for ``agentmesh simulate``: a list of rules; the first that matches the request gives the reply.

docs/reference/simulator.md describes the format. Loading validates everything; errors name file and rule.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agentmesh.domain.errors import ConfigError
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator import placeholders
from agentmesh.llm.simulator.reply import Fault, FaultKind, NoReply, Responder, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView

Seconds = Annotated[float, Field(ge=0, le=3600)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ResultCondition(_Strict):
    """A condition on the last result of one tool since the last input."""

    tool: str
    contains: str = ""


class When(_Strict):
    """Conditions; all that are given must hold."""

    agent: str | None = None
    """Name of the asking agent; ``*`` and ``?`` are wildcards."""
    step: int | None = Field(default=None, ge=0)
    """Answers given since the last message from the user or another agent."""
    contains: str | None = None
    """Text in the last message."""
    matches: str | None = None
    """Regular expression found in the last message."""
    input_contains: str | None = None
    """Text in the last message from the user or another agent."""
    images: int | None = Field(default=None, ge=0)
    """How many images the request has."""
    result: ResultCondition | None = None
    model: str | None = None
    """Model of the request; ``*`` and ``?`` are wildcards."""

    @field_validator("matches")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
        return value

    def holds(self, view: ChatRequestView) -> bool:
        """Whether every given condition holds for the request."""
        if self.agent is not None and not fnmatchcase(view.agent, self.agent):
            return False
        if self.model is not None and not fnmatchcase(view.model, self.model):
            return False
        if self.step is not None and view.step != self.step:
            return False
        if self.images is not None and len(view.images) != self.images:
            return False
        if self.contains is not None and self.contains not in view.last_text:
            return False
        if self.input_contains is not None and self.input_contains not in view.input_text:
            return False
        if self.matches is not None and not re.search(self.matches, view.last_text):
            return False
        if self.result is not None:
            exchange = view.last_result(self.result.tool)
            return exchange is not None and self.result.contains in exchange.text
        return True


class CallSpec(_Strict):
    """A tool call."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str = ""


class UsageSpec(_Strict):
    """Token counts to report."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)


class FaultSpec(_Strict):
    """A failure with its details."""

    kind: FaultKind
    status: int = Field(default=500, ge=400, le=599)
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | dict[str, Any] | None = None
    message: str = ""
    after: int | None = Field(default=None, ge=0)


class ReplySpec(_Strict):
    """A reply."""

    text: str = ""
    reasoning: str = ""
    tool_calls: list[CallSpec] = Field(default_factory=list)
    usage: UsageSpec | None = None
    cost_usd: float = Field(default=0.0, ge=0)
    chunk_size: int = Field(default=24, ge=0)
    first_byte_delay: Seconds = 0.0
    chunk_delay: Seconds = 0.0
    finish_reason: str = ""
    fault: FaultSpec | None = None

    @field_validator("fault", mode="before")
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @field_validator("text", "reasoning")
    @classmethod
    def _known_placeholders(cls, value: str) -> str:
        if problem := placeholders.check(value):
            raise ValueError(problem)
        return value

    @field_validator("tool_calls")
    @classmethod
    def _known_placeholders_in_calls(cls, value: list[CallSpec]) -> list[CallSpec]:
        if problem := placeholders.check([call.arguments for call in value]):
            raise ValueError(problem)
        return value

    def reply_to(self, view: ChatRequestView, match: re.Match[str] | None) -> ScriptedReply:
        """Return the reply with its placeholders filled."""
        calls = tuple(
            ScriptedCall(
                call.name,
                placeholders.fill_text(call.arguments, view, match)
                if isinstance(call.arguments, str)
                else placeholders.fill(call.arguments, view, match),
                call.id,
            )
            for call in self.tool_calls
        )
        return ScriptedReply(
            text=placeholders.fill_text(self.text, view, match),
            reasoning=placeholders.fill_text(self.reasoning, view, match),
            tool_calls=calls,
            usage=Usage(**self.usage.model_dump()) if self.usage else None,
            fault=Fault(**self.fault.model_dump()) if self.fault else None,
            **self.model_dump(include=_COPIED),
        )


_COPIED = {"cost_usd", "chunk_size", "first_byte_delay", "chunk_delay", "finish_reason"}


class ScriptRule(_Strict):
    """One rule."""

    name: str = ""
    when: When = When()
    reply: ReplySpec


class Script(_Strict):
    """A script file."""

    rules: list[ScriptRule] = Field(min_length=1)

    def respond(self, view: ChatRequestView) -> ScriptedReply:
        """Answer by the first matching rule; raise NoReply if none matches or a placeholder cannot be filled."""
        for number, rule in enumerate(self.rules, 1):
            if rule.when.holds(view):
                match = re.search(rule.when.matches, view.last_text) if rule.when.matches else None
                try:
                    return rule.reply.reply_to(view, match)
                except NoReply as error:
                    raise NoReply(f"{_rule_label(number, rule.name)}: {error}") from error
        who = f'agent "{view.agent}" at step {view.step}'
        raise NoReply(f"no rule of the script fits {who}; last message: {view.last_text[:200]!r}")


def load_script(path: Path) -> Responder:
    """Read a script file; raise ConfigError that names file, rule and field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"the script {path} cannot be read: {why}") from error
    return parse_script(text, str(path))


def parse_script(text: str, name: str) -> Responder:
    """Parse a script; ``name`` stands for the file in errors."""
    try:
        return Script.model_validate_json(text).respond
    except ValidationError as error:
        problems = "; ".join(_problem(item["loc"], item["msg"], text) for item in error.errors()[:5])
        raise ConfigError(
            f"the script {name} is not valid: {problems}", hint="docs/reference/simulator.md has the format"
        ) from error


def _problem(location: tuple[int | str, ...], message: str, text: str) -> str:
    message = message.removeprefix("Value error, ")
    if len(location) >= 2 and location[0] == "rules" and isinstance(location[1], int):
        named = _rule_label(location[1] + 1, _rule_name(text, location[1]))
        where = ".".join(str(part) for part in location[2:])
        return f"{named}: {where}: {message}" if where else f"{named}: {message}"
    where = ".".join(str(part) for part in location)
    return f"{where}: {message}" if where else message


def _rule_label(number: int, name: str) -> str:
    return f'rule {number} "{name}"' if name else f"rule {number}"


def _rule_name(text: str, index: int) -> str:
    """Return the name of a rule in a file that may be wrong elsewhere, or an empty string."""
    rule = json.loads(text)["rules"][index]
    name = rule.get("name") if isinstance(rule, dict) else None
    return name if isinstance(name, str) else ""
