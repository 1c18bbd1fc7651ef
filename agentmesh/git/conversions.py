"""How a file's bytes on disk and in Git differ.

libgit2 converts ends of lines and ``$Id$`` itself, as git does. What git would let a program do (``filter``, such as
LFS), and encodings, it does not: such files are stored as they are on disk. Git's own object for them is another one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import BlobFilter

from agentmesh.git.rule_files import read_regular

_FOREIGN: Final = ("filter", "working-tree-encoding")
_ENDS: Final = ("text", "crlf", "eol")
_NO: Final = ("false", "no", "off", "0")


def foreign(view: pygit2.Repository, index: pygit2.Index, top: Path, common_dir: Path) -> Iterator[str]:
    """Yield the files of an index whose object in Git differs from the file on disk."""
    if not any(word.encode() in text for text in _attribute_files(view, index, top, common_dir) for word in _FOREIGN):
        return
    for path in [os.fspath(entry.path) for entry in index]:
        if _named(view, path, _FOREIGN):
            yield path


def is_as_on_disk(view: pygit2.Repository, path: str) -> bool:
    """Return whether a file is stored as its bytes, though libgit2 would convert its ends of lines."""
    return _named(view, path, _FOREIGN) and _has_rules(view, path)


def has_modes(view: pygit2.Repository) -> bool:
    """Return whether the file system tells programs from other files."""
    return "core.filemode" not in view.config or view.config.get_bool("core.filemode")


def to_disk(view: pygit2.Repository, blob: pygit2.Blob, path: str) -> bytes:
    """Return the bytes that a file has on disk."""
    if not is_converted(view, path):
        return blob.data
    with pygit2.BlobIO(blob, as_path=path, flags=BlobFilter.CHECK_FOR_BINARY) as file:
        return file.read()


def object_id(view: pygit2.Repository, data: bytes, full: Path, path: str) -> bytes:
    """Return the id of the object that a file with these bytes is stored as."""
    if not is_converted(view, path):
        return pygit2.hash(data).raw
    return view.hashfile(os.fspath(full), as_path=path).raw


def is_converted(view: pygit2.Repository, path: str) -> bool:
    """Return whether a file's bytes on disk and in Git may differ."""
    return _has_rules(view, path) and not _named(view, path, _FOREIGN)


def adds_cr(view: pygit2.Repository) -> bool:
    """Return whether the settings let a checkout write CR LF where Git has LF."""
    ends = (_setting(view, "core.autocrlf") or "false").lower()
    return ends not in (*_NO, "input") or (_setting(view, "core.eol") or "").lower() == "crlf"


def may_add_cr(view: pygit2.Repository, index: pygit2.Index, top: Path, common_dir: Path) -> bool:
    """Return whether a checkout may write CR LF in any file."""
    return adds_cr(view) or any(b"crlf" in text for text in _attribute_files(view, index, top, common_dir))


def adds_cr_in(view: pygit2.Repository, path: str, *, by_settings: bool) -> bool:
    """Return whether a checkout writes CR LF in this file, if it converts it; ``by_settings`` is ``adds_cr``."""
    try:
        ends = view.get_attr(path, "eol")
        if ends in ("lf", "crlf"):
            return ends == "crlf"
        return by_settings and view.get_attr(path, "crlf") != "input"
    except UnicodeEncodeError:
        return by_settings


def _has_rules(view: pygit2.Repository, path: str) -> bool:
    if _named(view, path, ("ident",)):
        return True
    if _is_off(view, path, "text"):
        return False
    if (_setting(view, "core.autocrlf") or "false").lower() not in _NO:
        return True
    return _named(view, path, _ENDS)


def _is_off(view: pygit2.Repository, path: str, attribute: str) -> bool:
    try:
        return view.get_attr(path, attribute) is False
    except UnicodeEncodeError:
        return False


def _named(view: pygit2.Repository, path: str, attributes: tuple[str, ...]) -> bool:
    try:
        return any(view.get_attr(path, each) not in (None, False) for each in attributes)
    except UnicodeEncodeError:
        return False


def _setting(view: pygit2.Repository, key: str) -> str | None:
    if key not in view.config:
        return None
    return view.config[key]


def _attribute_files(view: pygit2.Repository, index: pygit2.Index, top: Path, common_dir: Path) -> Iterator[bytes]:
    """Yield the texts of all files that can name a filter."""
    for path in (common_dir / "info" / "attributes", *_elsewhere(view)):
        if path.is_file():
            yield read_regular(path)
    for entry in index:
        if entry.path == ".gitattributes" or os.fspath(entry.path).endswith("/.gitattributes"):
            blob = view.get(entry.id)
            if isinstance(blob, pygit2.Blob):
                yield blob.data
            on_disk = top / entry.path
            if on_disk.is_file():
                yield read_regular(on_disk)


def _elsewhere(view: pygit2.Repository) -> Iterator[Path]:
    named = _setting(view, "core.attributesfile")
    if named:
        yield Path(named).expanduser()
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    yield Path(home).expanduser() / "git" / "attributes"
    yield Path("/etc/gitattributes")
