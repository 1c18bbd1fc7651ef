"""Reads the metadata of a wheel and an sdist as a package index does, which refuses what it cannot read.

It runs with the locked tools, whose ``packaging`` is what PyPI judges uploads by: ``metadata.py WHEEL SDIST``.
"""

from __future__ import annotations

import configparser
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
"""As in pythons.py, which this script, run alone, cannot import."""


def main(wheel: Path, sdist: Path) -> None:
    """End with the first thing that is wrong."""
    name, version, _, tags = parse_wheel_filename(wheel.name)
    _same("name and version of the sdist", parse_sdist_filename(sdist.name), (name, version))
    _same("tags of the wheel", {str(tag) for tag in tags}, {"py3-none-any"})
    with zipfile.ZipFile(wheel) as archive:
        inside = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"
        _judge(archive.read(f"{inside}/METADATA"))
        _same("licence of the wheel", archive.read(f"{inside}/licenses/LICENSE")[:11], b"MIT License")
        entries = configparser.ConfigParser()
        entries.read_string(archive.read(f"{inside}/entry_points.txt").decode())
        _same("command", dict(entries["console_scripts"]), {"agentmesh": "agentmesh.cli.entry:main"})
    with tarfile.open(sdist) as archive:
        stored = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        _judge(stored.read() if stored else b"")


def _judge(text: bytes) -> None:
    found = Metadata.from_email(text, validate=True)
    _same("licence", found.license_expression, "MIT")
    _same("files of the licence", found.license_files, ["LICENSE"])
    _same("Python", str(found.requires_python), ">=3.11")
    _same("extras", {"mcp", "metrics", "otel"} - set(found.provides_extra or []), set())
    _same("type of the description", found.description_content_type, "text/markdown")
    _same("authors", found.author, "The agentmesh authors")
    _same("missing keywords", {"agents", "llm", "postgresql", "terminal"} - set(found.keywords or []), set())
    _same("Python versions", _versions(found.classifiers or []), list(VERSIONS))
    _same("one sentence", (found.summary or "").count("\n"), 0)
    _same("the README's first line", (found.description or "").splitlines()[:1], ["# agentmesh"])


def _versions(classifiers: list[str]) -> list[str]:
    """Return the versions of Python that the classifiers name, the oldest first."""
    named = [one.removeprefix("Programming Language :: Python :: ") for one in classifiers]
    return sorted((one for one in named if one.startswith("3.")), key=lambda version: int(version.partition(".")[2]))


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        sys.exit(f"metadata: {what}: {found}, should be {wanted}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
