"""The workflow of docs/how-to/headless.md, with GitHub's shells and without GitHub."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import ROOT, read

_SHELLS = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
"""What GitHub runs a step with, by the shell that the step names."""


@pytest.fixture
def job() -> dict[str, Any]:
    blocks = (block for block in read(ROOT / "docs/how-to/headless.md") if block.language == "yaml")
    review: dict[str, Any] = yaml.safe_load(next(blocks).text)["jobs"]["review"]
    return review


def run(step: dict[str, str], folder: Path, exit_code: int) -> int:
    """Run a step with an ``agentmesh`` that ends so; return the step's exit code."""
    program = folder / "agentmesh"
    program.write_text(f"#!/bin/sh\necho the report\nexit {exit_code}\n")
    program.chmod(0o755)
    script = folder / "step.sh"
    script.write_text(step["run"])
    environ = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(folder),
        "GITHUB_ENV": str(folder / "env"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
    }
    return subprocess.run([*_SHELLS[step.get("shell")], str(script)], cwd=folder, env=environ, check=False).returncode


@pytest.mark.parametrize("code", [0, 3])
def test_the_step_ends_as_the_run_does(job: dict[str, Any], tmp_path: Path, code: int):
    (step,) = (step for step in job["steps"] if "agentmesh run" in step.get("run", ""))
    assert run(step, tmp_path, code) == code
    assert (tmp_path / "summary").read_text() == "the report\n"


def test_the_data_folder_is_set_where_github_knows_its_own(job: dict[str, Any], tmp_path: Path):
    """In the ``env`` of a job there is no ``runner``: GitHub refuses the whole workflow."""
    assert "runner." not in str(job["env"])
    (step,) = (step for step in job["steps"] if "GITHUB_ENV" in step.get("run", ""))
    assert run(step, tmp_path, 0) == 0
    assert (tmp_path / "env").read_text() == f"AGENTMESH_DATA_DIR={tmp_path}/agentmesh\n"
