"""The target of an export: a file that appears complete or not at all and that only its owner may read, or a stream."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from agentmesh.domain.errors import UsageError


@contextmanager
def to_file(path: Path, *, force: bool, hint: str = "Name another.") -> Iterator[TextIO]:
    """Yield a file that gets its name once it is complete; raise UsageError if the name exists, unless forced.

    ``hint`` says what else to do then.
    """
    if not force and os.path.lexists(path):
        raise _taken(path, hint)
    # mkstemp creates files with mode 0600.
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:60]}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent)) from error
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if force:
            os.replace(temporary, path)
        else:
            _name(temporary, path, hint)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


@contextmanager
def to_stream(stream: BinaryIO) -> Iterator[TextIO]:
    """Yield a file that is copied to the stream at the end, so that a slow reader does not keep a snapshot open."""
    with tempfile.TemporaryFile() as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
        yield text
        text.flush()
        raw.seek(0)
        shutil.copyfileobj(raw, stream)
        stream.flush()


def _name(temporary: str, path: Path, hint: str) -> None:
    """Give the file its name, unless the name was taken meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise _taken(path, hint) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise _taken(path, hint) from None
        os.rename(temporary, path)


def _taken(path: Path, hint: str) -> UsageError:
    return UsageError(f"The file {path} exists.", hint=hint)
