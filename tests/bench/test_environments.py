from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from bench.peers.environments import NotInstalledError, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # pip takes its time on a busy machine


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    """A folder of requirements files: peer.txt pins a wheel that lies beside it."""
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "peer.txt").write_text(f"{_wheel(folder, '1.0')}\n")
    return folder


def _wheel(folder: Path, version: str) -> Path:
    path = folder / f"somepeer-{version}-py3-none-any.whl"
    info = f"somepeer-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("somepeer.py", f"VERSION = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: somepeer\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def _version(python: Path) -> str:
    code = "import somepeer; print(somepeer.VERSION)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_is_made_once_and_anew_when_its_file_changes(requirements, tmp_path) -> None:
    python = environment("peer", tmp_path / "cache", requirements)
    assert _version(python) == "1.0"
    kept = python.parents[1] / "kept"
    kept.touch()

    assert environment("peer", tmp_path / "cache", requirements) == python
    assert kept.exists()

    (requirements / "peer.txt").write_text(f"{_wheel(requirements, '2.0')}\n")
    assert _version(environment("peer", tmp_path / "cache", requirements)) == "2.0"
    assert not kept.exists()


def test_what_cannot_be_installed_is_said_and_tried_again(requirements, tmp_path) -> None:
    (requirements / "peer.txt").write_text("/nowhere/other-1.0-py3-none-any.whl\n")
    with pytest.raises(NotInstalledError, match=r"peer cannot be installed: .*other-1\.0"):
        environment("peer", tmp_path / "cache", requirements)

    (requirements / "peer.txt").write_text(f"{_wheel(requirements, '1.0')}\n")
    assert _version(environment("peer", tmp_path / "cache", requirements)) == "1.0"


def test_a_peer_without_requirements_is_named(requirements, tmp_path) -> None:
    with pytest.raises(NotInstalledError, match=r"other has no file .*other\.txt"):
        environment("other", tmp_path / "cache", requirements)
