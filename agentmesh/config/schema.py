"""Every key of a configuration, its form and its limits. ``settings`` has the meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from agentmesh.config.forms import (
    BadValue,
    Form,
    boolean,
    decimal,
    entries,
    integer,
    matching,
    member,
    optional,
    path,
    shown,
    table,
    text,
    word,
)
from agentmesh.config.mcp import Mcp, McpServer, servers_table
from agentmesh.domain import spans
from agentmesh.domain.limits import MOST_SECONDS
from agentmesh.domain.shape import EFFORTS
from agentmesh.domain.states import PermissionMode

_INT4, _INT8 = 2**31 - 1, 2**63 - 1
"""Limits are stored in integer and bigint columns."""
_MOST_USD: Final = 10_000_000
"""What `agentmesh budget` takes at most; the column has room for ten times as much."""

_NONE: Final[Mapping[str, Any]] = {}
_NOTIFY: Final = ("auto", "off", "osc9", "osc777", "osc99")
_WALLS: Final = ("auto", "bubblewrap", "landlock", "seatbelt")
CACHES: Final = (
    "~/.cache",
    "~/.cargo/git",
    "~/.cargo/registry",
    "~/.gradle/caches",
    "~/.m2/repository",
    "~/.npm",
    "~/.yarn/berry/cache",
    "~/go/pkg/mod",
)
"""Caches of build tools."""
_TAKEN: Final = frozenset(
    {"model", "messages", "tools", "stream", "stream_options", "tool_choice", "temperature", "max_tokens"}
    | {"max_completion_tokens", "n", "functions", "function_call"}
)
"""Parameters of a request that have a key of their own, or that would change what an answer is."""
_MOST_EXTRA: Final = 65_536
_LINE: Final = matching(r".*\S.*", "should be one line of text, not empty")
_ADDRESS: Final = matching(r"https?://[^\s/]+\S*", "should be a URL, as in https://api.openai.com/v1")
_HEADER: Final = matching(r"[\x20-\x7e]*", "should be printable ASCII")
_HOST: Final = matching(r"[^\s/@\[\]]+|\[[^\s/@\[\]]+\](:\d+)?", "should be a host, as in localhost or wiki.corp:8080")
_DATABASE_NAME: Final = matching(r"[a-z0-9][a-z0-9_-]{0,31}", "should be a name of a-z, 0-9, '_' and '-'")
_PROVIDER_NAME: Final = matching(r"[A-Za-z0-9][\w.-]*", "should be a name of letters, digits, '.', '_' and '-'")


def _databases(value: Any) -> dict[str, Database]:
    given: dict[str, Database] = entries(_DATABASE_NAME, table(Database))(value)
    without = [name for name, one in given.items() if one.url is None]
    if len(without) > 1:
        raise BadValue("needs a url: only one database may leave it out", (without[1],))
    return given


def _url(value: Any) -> str:
    return str(_ADDRESS(value)).rstrip("/")


def _flat(value: Any) -> Any:
    """Return ``{"agents.pick": ...}`` for the table that TOML makes of ``agents.pick = ...``."""
    if not isinstance(value, Mapping):
        return value
    flat: dict[str, Any] = {}
    for name, each in value.items():
        below = _flat(each)
        flat |= {f"{name}.{rest}": one for rest, one in below.items()} if isinstance(each, Mapping) else {name: each}
    return flat


def _keys(value: Any) -> dict[str, str]:
    keys: dict[str, str] = entries(_LINE, text)(_flat(value))
    return keys


def _rules(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadValue('should be a list of rules, as in ["bash(git log *)", "read(*.pem)"]')
    if value:
        from agentmesh.config.rules import check

        for rule in value:
            check(text(rule))
    return tuple(value)


def _hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadValue('should be a list of hosts, as in ["localhost:8000", "wiki.corp"]')
    return tuple(str(_HOST(each)).lower() for each in value)


def _paths(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(text(each).startswith(("/", "~/")) for each in value):
        raise BadValue('should be a list of paths that begin with / or ~/, as in ["~/.cache", "/srv/build"]')
    return tuple(value)


def _below(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(map(_is_below, value)):
        raise BadValue('should be a list of paths below the working directory, as in ["node_modules", "config/.env"]')
    return tuple(each.rstrip("/") for each in value)


def _is_below(value: Any) -> bool:
    parts = text(value).rstrip("/").split("/")
    return all(parts) and not {".", "..", ".git"} & set(parts) and "\0" not in value


def _extra_body(value: Any) -> Mapping[str, Any]:
    """Return parameters of a request: JSON, and none that agentmesh or a key of its own sets."""
    if not isinstance(value, Mapping):
        raise BadValue("should be a table, as in { top_k = 20 }")
    if taken := sorted(_TAKEN & value.keys()):
        raise BadValue(f"should not have {taken[0]}, which agentmesh sets")
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise BadValue("should have only what JSON has: texts, finite numbers, true, false, lists and tables") from None
    if size > _MOST_EXTRA:
        raise BadValue(f"should have at most {_MOST_EXTRA} bytes as JSON")
    return value


def _age(value: Any) -> str:
    if spans.read_age(text(value)) is None:
        raise BadValue(f"should be {spans.AGE}")
    return str(value)


def _log_file(value: Any) -> str:
    return "-" if value == "-" else str(path(value))


def _up_to(most: int, *, least: int = 0) -> Form:
    return integer(ge=least, le=most)


def _seconds(most: float) -> Form:
    return decimal(gt=0, le=most)


class Limits(NamedTuple):
    """Limits of a new session; a project may lower each."""

    max_depth: Annotated[int, _up_to(_INT4)] = 4
    """Depth of the tree; the root is at 0."""
    max_children: Annotated[int, _up_to(_INT4)] = 16
    """Living children of one agent."""
    max_agents: Annotated[int, _up_to(_INT4, least=1)] = 64
    """Agents of the session that work or wait; no further one is made while there are so many."""
    max_living: Annotated[int | None, optional(_up_to(_INT4, least=1))] = None
    """Living agents of the session, those that are idle too; by default ten times `max_agents`."""
    max_unread: Annotated[int, _up_to(_INT4, least=1)] = 1000
    """Unread mail of one agent."""
    max_tokens: Annotated[int, _up_to(_INT8)] = 20_000_000
    """Uncached input plus output tokens, summed over all calls of the session."""
    max_cost_usd: Annotated[float, decimal(ge=0, le=_MOST_USD)] = 10.0
    """Known cost of all calls of the session."""
    max_spawns: Annotated[int | None, optional(_up_to(_INT4))] = None
    """Agents that the session may ever make, whether they still live or not; by default as many as it can use."""
    ask_agents: Annotated[int, _up_to(_INT4)] = 20
    """Before one step of a model starts so many agents, a person is asked, if one is there. 0: never."""
    max_turns: Annotated[int | None, optional(_up_to(_INT4, least=1))] = None
    """Model calls of one turn of any agent; then the turn ends."""
    max_turn_seconds: Annotated[int | None, optional(_up_to(_INT4, least=1))] = None
    """Seconds of one turn of any agent; then it ends before its next model call."""
    max_seconds: Annotated[int | None, optional(_up_to(MOST_SECONDS, least=1))] = None
    """Seconds from the session's start; then no further model call of it begins, and no call is tried again."""
    max_task_steps: Annotated[int, _up_to(_INT4, least=1)] = 500
    """Model calls of one task of a sub-agent."""
    task_silence: Annotated[float, decimal(ge=1, le=86_400)] = 120.0
    """Seconds without a token, after the first one, that end a sub-agent's task."""
    tool_output_bytes: Annotated[int, _up_to(_INT4, least=1024)] = 65_536
    """Output of one tool call that the model sees; the middle of longer output is cut."""
    answer_tokens: Annotated[int, _up_to(_INT4, least=1)] = 32_768
    """Output tokens of one answer of a model, including its reasoning; a longer answer is stopped."""
    answer_bytes: Annotated[int, _up_to(_INT4, least=1024)] = 1_048_576
    """Bytes of text, reasoning and tool calls in one answer of a model; a longer answer is stopped."""


class ModelCalls(NamedTuple):
    """How long a call to a model server waits; times in seconds."""

    connect_timeout: Annotated[float, _seconds(3600)] = 10.0
    """Time limit for opening the connection."""
    first_token_timeout: Annotated[float, _seconds(86_400)] = 600.0
    """Time until the answer must begin; local servers load the model first."""
    idle_timeout: Annotated[float, _seconds(86_400)] = 180.0
    """Longest pause within an answer."""
    retries: Annotated[int, _up_to(100)] = 5
    """Retries after the first attempt, for failures that may pass."""
    longest_pause: Annotated[float, _seconds(86_400)] = 600.0
    """Total pauses of one call while its server is overloaded, limits its rate or is away; they use no retries."""
    prefix_gate: Annotated[int, _up_to(_INT4)] = 2000
    """Tokens that agents' conversations begin alike with before one of them asks the model first, and the others wait
    up to 5 s for its first token: then the server has read these tokens once. 0: all ask at once."""


class Provider(NamedTuple):
    """A server that speaks Chat Completions. Its key is never written here, only where it is."""

    base_url: Annotated[str, _url]
    """URL above ``/chat/completions``; may hold a password."""
    api_key_env: Annotated[str | None, optional(_LINE)] = None
    """Environment variable with the API key; unset for servers that need no key."""
    stored_key: Annotated[Literal["keyring", "file"] | None, optional(word("keyring", "file"))] = None
    """Where `agentmesh setup` has put the API key; used if the variable is not set."""
    headers: Annotated[Mapping[str, str], entries(_HEADER, _HEADER)] = _NONE
    """Further headers of every request."""
    context_window: Annotated[int | None, optional(_up_to(_INT4, least=1))] = None
    """Context size of its models in tokens, if the price tables do not know it."""
    priced_as: Annotated[str | None, optional(_LINE)] = None
    """Provider id of genai-prices, for gateways whose address it does not know."""
    max_tokens: Annotated[int | None, optional(_up_to(_INT4, least=1))] = None
    """Limit of output tokens that its server is given for one answer; by default the server decides."""
    stream: Annotated[bool | None, optional(boolean)] = None
    """Whether answers are streamed; by default they are, unless the streams of their model stay empty."""
    tool_choice: Annotated[Literal["auto"] | None, optional(matching("auto", 'should be "auto"'))] = None
    """`auto` for servers that leave out the tools of requests without it; by default it is not sent."""
    temperature: Annotated[float | None, optional(decimal(ge=0, le=2))] = None
    """Randomness of its models' answers; by default the server decides."""
    concurrency: Annotated[int | None, optional(_up_to(1000, least=1))] = None
    """Calls to it at once from one worker, for servers with few slots; by default only the worker's limit counts."""
    slots: Annotated[int | None, optional(_up_to(10_000, least=1))] = None
    """Conversations that it keeps and answers at once; by default as llama.cpp says. Agents with the same long prefix
    take turns there."""
    extra_body: Annotated[Mapping[str, Any], _extra_body] = _NONE
    """Further parameters of every request, as in `{ top_k = 20 }`; not those that agentmesh sets."""
    vision: Annotated[bool | None, optional(boolean)] = None
    """Whether its models see images; by default as their names say, and what no name says is tried."""
    cache_marks: Annotated[bool | None, optional(boolean)] = None
    """Whether requests say by `cache_control` up to where a cache is to keep them; by default for Claude at OpenRouter.
    Claude needs that behind other gateways too. Most other models keep requests by themselves."""
    text_tool_calls: Annotated[bool, boolean] = True
    """Whether tool calls that a model writes into its text are read as calls."""

    def __repr__(self) -> str:
        return shown(self, hidden=("base_url", "headers", "extra_body"))


class Tui(NamedTuple):
    """How the terminal UI looks and behaves."""

    theme: Annotated[str, _LINE] = "auto"
    """``dark``, ``light`` or one of Textual's, as `/theme` lists them; auto: as the terminal says, else dark."""
    on_exit: Annotated[Literal["finish", "interrupt"], word("finish", "interrupt")] = "finish"
    """What happens to running agents when you leave: they finish in the background, or are interrupted."""
    bell: Annotated[bool, boolean] = True
    """Whether the terminal's bell rings when an agent asks; while you look elsewhere, also when one fails or ends."""
    title: Annotated[bool, boolean] = True
    """Whether the terminal's title names the agent in view and who needs you."""
    notify: Annotated[Literal["auto", "off", "osc9", "osc777", "osc99"], word(*_NOTIFY)] = "auto"
    """How the desktop is notified while you look elsewhere; auto: as the terminal's environment says."""
    open_requests: Annotated[bool, boolean] = True
    """Whether a dialog opens by itself when an agent asks; if not, a key opens it."""
    vim: Annotated[bool, boolean] = False
    """Whether the input has Vim's keys."""
    keys: Annotated[Mapping[str, str], _keys] = _NONE
    """Keys by action, named as in the help: ``agents.pick = "ctrl+k"``; several with commas, ``""`` for no key."""


class PermissionRules(NamedTuple):
    """Rules for what agents do, judged in the order deny, ask, allow; a project may only deny and ask."""

    deny: Annotated[tuple[str, ...], _rules] = ()
    """Never allowed, in any mode."""
    ask: Annotated[tuple[str, ...], _rules] = ()
    """Allowed only after a person has agreed."""
    allow: Annotated[tuple[str, ...], _rules] = ()
    """Allowed without asking."""


class TypeSettings(NamedTuple):
    """What a person sets for a type of sub-agents, wherever it is defined."""

    hidden: Annotated[bool | None, optional(boolean)] = None
    """Whether the type is hidden from agents; by default as the type says."""
    model: Annotated[str | None, optional(_LINE)] = None
    """Model or alias, ``inherit`` for the parent's; by default as the type says."""
    effort: Annotated[str | None, optional(word(*EFFORTS))] = None
    """How hard its model thinks, where it can be told; by default as the type says."""


class Web(NamedTuple):
    """What ``web_fetch`` may reach."""

    allow_private: Annotated[tuple[str, ...], _hosts] = ()
    """Hosts (``localhost``, ``wiki.corp:8080``) whose addresses may be private; all other hosts must be public."""


class Tools(NamedTuple):
    """Which of their tools the agents of a new session are offered."""

    set: Annotated[Literal["auto", "full", "compact"], word("auto", "full", "compact")] = "auto"
    """All tools, or fewer with fewer arguments; auto: compact for a model whose context is known to be below 16,384."""


class Sandbox(NamedTuple):
    """The wall around approved commands of agents; a command that nobody approved always has a stricter one."""

    bash: Annotated[Literal["off", "auto", "required"], word("off", "auto", "required")] = "auto"
    """Whether approved commands run behind a wall. auto: if one can be built; required: only behind one; off: never."""
    wall: Annotated[Literal["auto", "bubblewrap", "landlock", "seatbelt"], word(*_WALLS)] = "auto"
    """What builds the wall; auto: the first of these that works here."""
    network: Annotated[bool, boolean] = True
    """Whether approved commands reach the network."""
    writable: Annotated[tuple[str, ...], _paths] = CACHES
    """Where approved commands may write besides the working directory and /tmp; by default caches of build tools."""
    hidden: Annotated[tuple[str, ...], _paths] = ()
    """What no command sees, besides the files of agentmesh itself, as in ["~/.ssh"]."""


class Workspace(NamedTuple):
    """Where agents work: in the session's directory, or each in a tree of its own."""

    default: Annotated[Literal["shared", "own"], word("shared", "own")] = "shared"
    """Where a fork works unless told otherwise: with its parent, or in a tree of its own."""
    snapshots: Annotated[bool, boolean] = True
    """Whether the files are kept as they are after each step that changed some, in the Git repository they are in."""
    copy: Annotated[tuple[str, ...], _below] = ()
    """Ignored files and folders that an own tree gets as copies, as in [".env"]."""
    link: Annotated[tuple[str, ...], _below] = ()
    """The same as links to the user's files, which commands in the tree can read only, as in ["node_modules"]."""
    keep: Annotated[int, integer(ge=1, le=1_000_000)] = 200
    """Snapshots that are kept of each workspace; older ones are freed."""
    max_file: Annotated[int, integer(ge=1024, le=_INT4)] = 10_485_760
    """Bytes above which a new file is left out of snapshots."""
    leases: Annotated[tuple[str, ...], _below] = ()
    """Folders in a shared directory that only one agent at a time writes to, as in ["migrations"]."""


class Retention(NamedTuple):
    """What is erased when it is old."""

    sessions: Annotated[str | None, optional(_age)] = None
    """Age at which workers erase your sessions, as in "90d": nothing has happened in them for so long. Pinned ones stay
    (`agentmesh sessions pin`)."""

    @property
    def seconds(self) -> int | None:
        """That age; None if no session is erased."""
        return None if self.sessions is None else spans.read_age(self.sessions)


class Logs(NamedTuple):
    """What the program records of its work, besides its normal output."""

    file: Annotated[str | None, optional(_log_file)] = None
    """File for log records, as JSON lines; `-` for stderr."""
    level: Annotated[Literal["debug", "info", "warning"], word("debug", "info", "warning")] = "info"
    """Lowest level of the records in it."""


class Database(NamedTuple):
    """One of several databases that make the mesh. Each session is wholly in one of them."""

    url: Annotated[str | None, optional(_LINE)] = None
    """Its PostgreSQL; one of them may leave it out: the one that `database_url` names, or the embedded server."""
    direct_url: Annotated[str | None, optional(_LINE)] = None
    """A way around a pooler in transaction mode, for LISTEN; by default ``url``."""
    weight: Annotated[float, decimal(ge=0, le=1000)] = 1
    """Its share of new sessions, against the weights of the others; at 0 no session begins in it."""
    read_only: Annotated[bool, boolean] = False
    """Whether it is only looked into: no session begins in it, no agent runs, and nothing is changed."""
    draining: Annotated[bool, boolean] = False
    """Whether no session begins in it any more; those that are there go on."""

    def __repr__(self) -> str:
        return shown(self, hidden=("url", "direct_url"))


class Document(NamedTuple):
    """A whole configuration."""

    data_dir: Annotated[Path, path]
    """Folder of the embedded server."""
    providers: Annotated[Mapping[str, Provider], entries(_PROVIDER_NAME, table(Provider))]
    """Servers that speak Chat Completions."""
    database_url: Annotated[str | None, optional(_LINE)] = None
    """PostgreSQL to use; by default the embedded server."""
    direct_database_url: Annotated[str | None, optional(_LINE)] = None
    """A way around a pooler in transaction mode, for LISTEN; by default ``database_url``.

    A later source with another ``database_url`` drops it.
    """
    reader_url: Annotated[str | None, optional(_LINE)] = None
    """A login that may only read, for ``agentmesh sql``; by default made from ``database_url``.

    A later source with another ``database_url`` drops it.
    """
    databases: Annotated[Mapping[str, Database], _databases] = _NONE
    """The databases of the mesh, if there are several."""
    model: Annotated[str | None, optional(_LINE)] = None
    """Model of new sessions: ``NAME``, or ``PROVIDER/NAME``."""
    effort: Annotated[str | None, optional(word(*EFFORTS))] = None
    """How hard models of new sessions think, where they can be told: none to xhigh; by default the server decides."""
    permission_mode: Annotated[PermissionMode, member(PermissionMode)] = PermissionMode.ASK
    """What agents of new sessions may do without asking; a project may only make it stricter."""
    concurrency: Annotated[int, integer(ge=1, le=1000)] = 16
    """Model calls and tools at once in one worker."""
    compact_at: Annotated[float, decimal(ge=0.1, le=1)] = 0.8
    """Share of a model's context at which a conversation is compacted."""
    limits: Annotated[Limits, table(Limits)] = Limits()
    """Limits of a new session."""
    model_calls: Annotated[ModelCalls, table(ModelCalls)] = ModelCalls()
    """How long calls to model servers wait."""
    tui: Annotated[Tui, table(Tui)] = Tui()
    """The terminal UI."""
    permissions: Annotated[PermissionRules, table(PermissionRules)] = PermissionRules()
    """Rules for what agents do."""
    model_aliases: Annotated[Mapping[str, str], entries(_LINE, _LINE)] = _NONE
    """Models by names that types of sub-agents may use for them."""
    agent_types: Annotated[Mapping[str, TypeSettings], entries(_LINE, table(TypeSettings))] = _NONE
    """What you set for types of sub-agents, by their names."""
    web: Annotated[Web, table(Web)] = Web()
    """What ``web_fetch`` may reach."""
    tools: Annotated[Tools, table(Tools)] = Tools()
    """Which of their tools agents are offered."""
    sandbox: Annotated[Sandbox, table(Sandbox)] = Sandbox()
    """The wall around commands of agents."""
    workspace: Annotated[Workspace, table(Workspace)] = Workspace()
    """Where agents work, and which states of their files are kept."""
    log: Annotated[Logs, table(Logs)] = Logs()
    """What the program records of its work, besides its normal output."""
    retention: Annotated[Retention, table(Retention)] = Retention()
    """What is erased when it is old."""
    mcp: Annotated[Mcp, table(Mcp)] = Mcp()
    """Settings for all MCP servers."""
    mcpServers: Annotated[Mapping[str, McpServer], servers_table] = _NONE  # noqa: N815
    """MCP servers whose tools agents get."""
