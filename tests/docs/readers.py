"""Files that a page shows, read as the program reads them; what is wrong with one is an assertion."""

from __future__ import annotations

import json
import tomllib

import yaml

from agentmesh.config import custom_commands, folders, mcp, settings, skills, type_catalog
from agentmesh.llm.simulator.script import parse_script
from tests.docs.blocks import Block
from tests.docs.shell import Reader


def check(block: Block, reader: Reader) -> None:
    """Check one block of a file format."""
    match block.language:
        case "toml":
            _toml(block, reader)
        case "json":
            _json(block, reader)
        case "yaml":
            assert yaml.safe_load(block.text), block.where
        case "markdown":
            _guides(block, reader)
        case other:
            raise AssertionError(f"{block.where}: nothing knows how to run a block of {other or 'no language'}")


def _toml(block: Block, reader: Reader) -> None:
    tomllib.loads(block.text)
    if "file" in block.says:
        reader.write(block.says["file"], block.text)
        folder = reader.home / ".config" / "agentmesh"
    else:
        folder = reader.write("~/.shown/config.toml", block.text).parent
    environ = reader.environ | {"AGENTMESH_CONFIG_DIR": str(folder)}
    read = settings.load({}, environ, reader.project)
    assert read.warnings == (), block.where


def _json(block: Block, reader: Reader) -> None:
    value = json.loads(block.text)
    if "file" in block.says:
        reader.write(block.says["file"], block.text)
    if "rules" in value:
        parse_script(block.text, block.where)
    for each in value.get("mcpServers", {}).values():
        mcp.server(each)


def _guides(block: Block, reader: Reader) -> None:
    """Check a type of sub-agents, a skill or a custom command, which its path tells."""
    assert "file" in block.says, f"{block.where}: what file is it?"
    file = reader.write(block.says["file"], block.text)
    environ, aliases = reader.environ, settings.load({}, reader.environ, reader.project).model_aliases
    types = type_catalog.load(folders.folders(environ, reader.project, "agents"), aliases)
    found = skills.load(environ, reader.project)
    commands = custom_commands.CustomCommands(environ, reader.project).load()
    assert [*types.problems, *found.problems, *commands.problems] == [], block.where
    sources = {kind.source for kind in types.types.values()} | {one.source for one in commands.commands.values()}
    sources |= {str(one.file) for one in found.skills.values()}
    assert any(str(file).endswith(source) for source in sources), (
        f"{block.where}: nobody reads {file}; what is read: {sources}"
    )
