"""We use libraries by their public names: a private one may change with any release, and no test of theirs would tell.

A cancellation of a model call once hung on the name of a private attribute of the HTTP client.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HTTP = {"httpx2", "httpcore2", "openai"}
"""Libraries of a model call."""


def sources() -> list[Path]:
    return sorted((ROOT / "agentmesh").rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted name of each module that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_uses(text: str) -> list[str]:
    """Return what a file that imports a library of a model call uses of other objects' private names."""
    tree = ast.parse(text)
    names = list(imported(tree))
    libraries = [name for name in names if name.partition(".")[0] in HTTP]
    if not libraries:
        return []
    private = [name for name in libraries if any(part.startswith("_") for part in name.split("."))]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            private.append(ast.unparse(node))
    return private


@pytest.mark.parametrize(
    "text",
    [
        "import httpx2\nhttp._transport._pool._network_backend = 1",
        "from openai._base_client import SyncAPIClient",
        "import openai\nself._client._client",
    ],
)
def test_a_private_name_of_a_library_is_noticed(text):
    assert private_uses(text)


@pytest.mark.slow
def test_no_private_name_of_the_sdk_or_its_http_client_is_used():
    used = {str(path.relative_to(ROOT)): private_uses(path.read_text()) for path in sources()}
    assert {path: names for path, names in used.items() if names} == {}


@pytest.mark.slow
def test_the_layer_below_the_http_client_is_not_imported():
    known = {path.name for path in sources() for name in imported(ast.parse(path.read_text())) if "httpcore" in name}
    assert known == set()
