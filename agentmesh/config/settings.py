"""The program's settings: read once by :func:`load`, then passed as an argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentmesh.config import forms, sources
from agentmesh.config.mcp import Mcp, McpServer
from agentmesh.config.schema import (
    Database,
    Limits,
    Logs,
    ModelCalls,
    Provider,
    Retention,
    Sandbox,
    Tools,
    Tui,
    TypeSettings,
    Web,
    Workspace,
)
from agentmesh.domain.errors import ConfigError, NoModel, UsageError
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.config.rules import SourcedRule

_DEFAULT_PROVIDER = "openai"
_NONE: Final[Mapping[str, Any]] = {}


class Settings(NamedTuple):
    """All settings. Its repr shows no URL that may hold a password, and it does not contain API keys at all."""

    data_dir: Path
    """Folder of the embedded server, absolute."""
    providers: Mapping[str, Provider]
    """Model servers by name; one is always named openai, and OPENAI_BASE_URL sets its address."""
    provider_prefixes: frozenset[str]
    """First segments of a model's name that mean a provider."""
    database_url: str | None = None
    """None for the embedded server."""
    direct_database_url: str | None = None
    """For LISTEN and a worker's lock, if ``database_url`` goes through a pooler in transaction mode."""
    reader_url: str | None = None
    """For ``agentmesh sql``: a role that may only read the views."""
    databases: Mapping[str, Database] = _NONE
    """The databases of the mesh by name, if there are several; empty: ``database_url`` is the only one."""
    database: str | None = None
    """Which of them ``database_url`` is; None if there is only one, or none is chosen."""
    model: str | None = None
    effort: str | None = None
    """How hard the models of new sessions think; None: the server decides."""
    permission_mode: PermissionMode = PermissionMode.ASK
    concurrency: int = 16
    """Model calls and tools that run at once in one worker."""
    compact_at: float = 0.8
    """Share of a model's window that a request may take before older rows become a summary."""
    limits: Limits = Limits()
    model_calls: ModelCalls = ModelCalls()
    tui: Tui = Tui()
    rules: tuple[SourcedRule, ...] = ()
    """Permission rules for the root of a new session, the user's first."""
    model_aliases: Mapping[str, str] = _NONE
    """Models by the names that types of sub-agents may use for them."""
    agent_types: Mapping[str, TypeSettings] = _NONE
    """What the configuration sets for types of sub-agents, by name."""
    web: Web = Web()
    tools: Tools = Tools()
    sandbox: Sandbox = Sandbox()
    workspace: Workspace = Workspace()
    log: Logs = Logs()
    retention: Retention = Retention()
    mcp: Mcp = Mcp()
    mcp_servers: Mapping[str, McpServer] = _NONE
    """MCP servers of the user's own configuration; those of a project are read when they are needed."""
    warnings: tuple[str, ...] = ()
    """What was ignored and why, one sentence each, for people."""
    elsewhere: SettingsReader | None = None
    """Reads the settings again with another directory's project file, or None for no project; may raise ConfigError."""

    def of_database(self, name: str) -> Settings:
        """Return the settings for one of the databases; raise ConfigError if the name is unknown."""
        one = self.databases.get(name)
        if one is None:
            known = f"There are {', '.join(self.databases)}." if self.databases else "[databases] names none."
            raise ConfigError(f"There is no database {one_line(name, 40)!r}.", hint=known)
        if one.url is None:
            return self._replace(database=name)
        return self._replace(database=name, database_url=one.url, direct_database_url=one.direct_url, reader_url=None)

    @property
    def name_among_several(self) -> str:
        """The name of the database that is meant; empty if there is only one, or none is chosen."""
        return self.database if self.database and len(self.databases) > 1 else ""

    def each_database(self) -> Sequence[Settings]:
        """Return the settings for each of several databases; if there is only one, these alone."""
        return [self.of_database(name) for name in self.databases] if self.has_several_databases else [self]

    @property
    def database_urls(self) -> Sequence[str]:
        """Every URL of a database that these settings name, whichever of them is meant."""
        several = (url for one in self.databases.values() for url in (one.url, one.direct_url))
        own = (self.database_url, self.direct_database_url, self.reader_url)
        return [url for url in (*own, *several) if url]

    @property
    def is_read_only(self) -> bool:
        """Whether the database is only to be looked into."""
        return self.database is not None and self.databases[self.database].read_only

    @property
    def has_several_databases(self) -> bool:
        """Whether these settings name several databases, and do not say which one is meant."""
        return bool(self.databases) and self.database is None

    def require_one_database(self) -> None:
        """Raise UsageError if they name several databases, and do not say which one is meant."""
        if self.has_several_databases:
            raise UsageError(
                f"There are several databases: {', '.join(self.databases)}.", hint="--database NAME says which."
            )

    @property
    def has_embedded(self) -> bool:
        """Whether a database of the mesh is the embedded server."""
        urls = [one.url or self.database_url for one in self.databases.values()] or [self.database_url]
        return not all(urls)

    def __repr__(self) -> str:
        return forms.shown(self, hidden=("database_url", "direct_database_url", "reader_url", "elsewhere"))


class SettingsReader:
    """Reads the settings again for another directory. Its repr shows nothing: the environment contains keys."""

    def __init__(self, flags: Mapping[str, Any], environ: Mapping[str, str], named: Callable[[str], str]) -> None:
        self._sources = (flags, environ)
        self._named = named

    def __call__(self, workdir: Path | None) -> Settings:
        return load(*self._sources, workdir, self._named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SettingsReader) and self._sources == other._sources

    def __hash__(self) -> int:
        return hash(SettingsReader)


def load(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    workdir: Path | None,
    named: Callable[[str], str] = sources.flag,
) -> Settings:
    """Read defaults, the user's file, the project's file, AGENTMESH_* and flags; each overrides the ones before.

    ``workdir`` is the directory with the project's file; None means that there is none. A flag is named like its
    variable, in lower case (``max_depth``, ``model_retries``); None means that it is not given. Raise ConfigError for
    an unknown key or a bad value; it names the file and key, the variable, or the flag as ``named`` returns it.
    """
    read = sources.read(flags, environ, workdir, named)
    document = read.document
    databases = _NONE if read.is_one_database else document.databases
    prefixes = set(document.providers)
    if not read.openai_configured and document.providers[_DEFAULT_PROVIDER].base_url != sources.OPENAI_URL:
        # OPENAI_BASE_URL alone moved it, maybe to a server that has models named openai/gpt-oss-20b itself.
        prefixes.discard(_DEFAULT_PROVIDER)
    settings = Settings(
        data_dir=document.data_dir,
        providers=document.providers,
        provider_prefixes=frozenset(prefixes),
        database_url=document.database_url,
        direct_database_url=document.direct_database_url,
        reader_url=document.reader_url,
        databases=databases,
        model=document.model,
        effort=document.effort,
        permission_mode=document.permission_mode,
        concurrency=document.concurrency,
        compact_at=document.compact_at,
        limits=document.limits,
        model_calls=document.model_calls,
        tui=document.tui,
        rules=read.rules,
        model_aliases=document.model_aliases,
        agent_types=document.agent_types,
        web=document.web,
        tools=document.tools,
        sandbox=document.sandbox,
        workspace=document.workspace,
        log=document.log,
        retention=document.retention,
        mcp=document.mcp,
        mcp_servers=document.mcpServers,
        warnings=read.warnings,
        elsewhere=SettingsReader(flags, environ, named),
    )
    return settings.of_database(*databases) if len(databases) == 1 else settings


def resolve_model(settings: Settings, name: str) -> tuple[str, str]:
    """Return the names of the provider and of its model for a model's name as a person writes it.

    A name whose first part is no provider is the default provider's: many servers have models named ``org/model``.
    Raise NoModel if it names no model, or cannot be such a name: its first part differs from a provider's only in case,
    or the default provider is OpenAI itself.
    """
    first, slash, rest = name.strip().partition("/")
    provider, model = (
        (first, rest) if slash and first in settings.provider_prefixes else (_DEFAULT_PROVIDER, name.strip())
    )
    if slash and provider == _DEFAULT_PROVIDER and first not in settings.provider_prefixes:
        meant = next((one for one in settings.provider_prefixes if one.lower() == first.lower()), None)
        if meant or settings.providers[_DEFAULT_PROVIDER].base_url == sources.OPENAI_URL:
            known = f"Did you mean {meant}/{rest}?" if meant else f"Known are {', '.join(sorted(settings.providers))}."
            if meant and settings.providers[_DEFAULT_PROVIDER].base_url != sources.OPENAI_URL:
                known += f" For a model of this name, rename the provider {meant}."
            raise NoModel(f"there is no provider {one_line(first, 40)!r} for model {one_line(name, 80)}", hint=known)
    if not model:
        raise NoModel(f"{name!r} names no model", hint="Write it as NAME or PROVIDER/NAME.")
    return provider, model
