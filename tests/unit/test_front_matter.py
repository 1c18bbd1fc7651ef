from __future__ import annotations

import subprocess
import sys

import pytest

from agentmesh.config.front_matter import BadFrontMatter, parse


def test_keys_lists_and_text():
    text = """---
name: reviewer
tools: [read, "bash(git log *)"]
flag: no
day: 2026-01-01
folded: >
  two
  lines
permissions:
  deny:
    - read(*.pem)
  ask: write
# a comment
empty:
---

You review.

---
not a fence
"""
    found = parse(text)
    assert found.values == {
        "name": "reviewer",
        "tools": ["read", "bash(git log *)"],
        "flag": "no",
        "day": "2026-01-01",
        "folded": "two lines\n",
        "permissions": {"deny": ["read(*.pem)"], "ask": ["write"]},
        "empty": "",
    }
    assert found.lines["permissions"] == 9
    assert found.body == "You review.\n\n---\nnot a fence"


def test_windows_lines():
    found = parse("---\r\nname: a\r\n---\r\nbody\r\n")
    assert (found.values, found.body) == ({"name": "a"}, "body")


def test_a_colon_in_unquoted_text_is_read_as_it_is_meant():
    found = parse('---\nname: a\ndescription: Use it so: user: "hi" \\n # here\ntools: Read, Bash\n---\nx')
    assert found.values["description"] == 'Use it so: user: "hi" \\n # here'
    assert found.values["tools"] == "Read, Bash"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "has no front matter"),
        ("# Title\n---\na: b\n---", 1, "has no front matter"),
        ("---\na: b\n", 2, "without an end"),
        ("---\na: b\nb: [\n---\n", 3, "is not valid YAML"),
        ("---\na: b\n\tb: c\n---\n", 3, "is not valid YAML"),
        ("---\na: \x01\n---\n", 2, "is not valid YAML"),
        ("---\na: *nowhere\n---\n", 2, "is not valid YAML: found undefined alias"),
        (f"---\na: {'[' * 3000}\n---\n", 2, "is not valid YAML"),
        ("---\n- a\n---\n", 2, "not a list of keys and values"),
        ("---\n? [a]\n: b\n---\n", 2, "a key that is not text"),
        ("---\nb: c\na: [[x]]\n---\n", 3, "a value in a value"),
        ("---\na: &a [*a]\n---\n", 2, "a value in a value"),
        ("---\na:\n  b:\n    c: d\n---\n", 4, "a value in a value"),
        ("---\na: b\nc: d\na: e\n---\n", 4, "has the key a twice"),
        ("---\np:\n  deny: [a]\n  deny: []\n---\n", 4, "has the key deny twice"),
        (f"---\na: {'x' * 40_000}\n---\n", 1, "more than 32768 characters"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text, line, words):
    with pytest.raises(BadFrontMatter, match=words) as raised:
        parse(text)
    assert raised.value.line == line


def test_yaml_is_imported_only_for_a_file(tmp_path):
    code = (
        "import sys; from pathlib import Path; from agentmesh.config import type_catalog\n"
        f"here = {str(tmp_path)!r}\n"
        "loaded = type_catalog.Catalog({'AGENTMESH_CONFIG_DIR': here}, {}, lambda _: {}).of(Path(here))\n"
        "assert sorted(loaded.types) == ['explore', 'general-purpose', 'plan'], loaded\n"
        "assert 'yaml' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
