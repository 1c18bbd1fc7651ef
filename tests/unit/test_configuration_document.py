from __future__ import annotations

from pathlib import Path

from agentmesh.config import forms, mcp, schema
from agentmesh.config.type_files import _KEYS

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENT = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")
TYPES = (DOCS / "how-to" / "agent-types.md").read_text(encoding="utf-8")
TABLES = {
    "limits": schema.Limits,
    "model_calls": schema.ModelCalls,
    "databases.NAME": schema.Database,
    "providers.NAME": schema.Provider,
    "tui": schema.Tui,
    "agent_types.NAME": schema.TypeSettings,
    "web": schema.Web,
    "tools": schema.Tools,
    "sandbox": schema.Sandbox,
    "workspace": schema.Workspace,
    "log": schema.Logs,
    "retention": schema.Retention,
    "mcp": mcp.Mcp,
}
OTHERS = {"permissions.deny", "model_aliases.NAME", "mcpServers.NAME"}


def test_every_key_is_documented():
    top = [
        name for name in forms.of(schema.Document) if not any(key.split(".")[0] == name for key in (*TABLES, *OTHERS))
    ]
    keys = [*top, *OTHERS, *(f"{table}.{name}" for table, kind in TABLES.items() for name in forms.of(kind))]
    assert [key for key in keys if f"`{key}`" not in DOCUMENT] == []


def test_every_key_of_an_mcp_server_is_documented():
    section = DOCUMENT.partition("## MCP servers")[2].partition("\n## ")[0]
    assert [key for key in forms.of(mcp.McpServer) if f"`{key}`" not in section] == []


def test_every_key_of_a_type_is_documented():
    assert [key for key in _KEYS if f"\n| `{key}` |" not in TYPES] == []
