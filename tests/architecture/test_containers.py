"""docker-compose.yml and Dockerfile, as far as they can be judged without an engine that runs them."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from agentmesh.cli.worker import worker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def instructions():
    """The Dockerfile as (instruction, arguments)."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_the_database_is_postgresql_18_with_a_healthcheck_and_a_lasting_volume(compose):
    postgres = compose["services"]["postgres"]
    assert postgres["image"] == "postgres:18"
    assert "pg_isready" in postgres["healthcheck"]["test"]
    assert "--host=127.0.0.1" in postgres["healthcheck"]["test"]  # the image's server for the scripts has no TCP
    assert postgres["volumes"][0] == "postgres:/var/lib/postgresql"
    assert "postgres" in compose["volumes"]


def test_no_password_is_written_down_and_none_is_optional(compose):
    text = (ROOT / "docker-compose.yml").read_text()
    assert "trust" not in text
    assert "HOST_AUTH_METHOD" not in text
    assert compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert compose["services"]["upgrade"]["environment"]["PGPASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    assert not re.search(r"://\w+:[^@\s]+@", text)


def test_the_worker_logs_in_with_the_rights_of_a_worker_and_knows_no_other_password(compose):
    environment = compose["services"]["worker"]["environment"]
    assert environment["AGENTMESH_DATABASE_URL"] == "postgresql://worker@postgres:5432/agentmesh"
    assert environment["PGPASSWORD"].startswith("${WORKER_PASSWORD:?")
    assert not any("POSTGRES_PASSWORD" in value for value in environment.values())
    script, place, mode = compose["services"]["postgres"]["volumes"][1].split(":")
    assert (place, mode) == ("/docker-entrypoint-initdb.d/roles.sh", "ro")
    assert os.access(ROOT / script, os.X_OK)
    assert "in role agentmesh_worker" in (ROOT / script).read_text()


def test_own_trees_outlive_the_container_and_belong_to_its_user(compose, instructions):
    worker = compose["services"]["worker"]
    folder = worker["environment"]["AGENTMESH_DATA_DIR"]
    assert f"data:{folder}" in worker["volumes"]
    assert "data" in compose["volumes"]
    owned = next(arguments for kind, arguments in instructions if kind == "RUN" and "--owner=agentmesh" in arguments)
    assert folder in owned.split(), "a new volume takes its owner from the image's folder"


def test_the_image_has_git_and_certificates_for_the_agents(instructions):
    installed = next(arguments for kind, arguments in instructions if kind == "RUN" and "apt-get install" in arguments)
    assert {"git", "ca-certificates"} <= set(installed.split())


def test_the_image_has_what_the_wheel_is_made_of(instructions):
    copied = {arguments.split()[0] for kind, arguments in instructions if kind == "COPY"}
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*package["only-include"]} <= copied


def test_the_workers_health_is_asked_by_a_command_that_there_is(compose, instructions):
    check = compose["services"]["worker"]["healthcheck"]
    kind, program, command, option = check["test"]
    assert (kind, command) == ("CMD", "worker")
    assert ("ENTRYPOINT", f'["{program}"]') in instructions
    assert option in {name for parameter in worker.params for name in parameter.opts}
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


def test_the_image_holds_no_secret(instructions):
    text = (ROOT / "Dockerfile").read_text().lower()
    assert not {name for name, _ in instructions} & {"ENV", "ARG", "ADD"}
    assert not re.search(r"password|secret|token|api_key", text)
    assert ".env" not in {path.lstrip("!") for path in (ROOT / ".dockerignore").read_text().split()}


def test_the_database_is_reachable_from_this_host_only(compose):
    (port,) = compose["services"]["postgres"]["ports"]
    assert port.startswith("127.0.0.1:")


def test_the_worker_scales_and_starts_after_the_upgrade(compose):
    service, upgrade = compose["services"]["worker"], compose["services"]["upgrade"]
    assert service["command"] == ["worker", "--any"]
    assert not {"ports", "container_name", "hostname"} & set(service)
    assert service["depends_on"]["upgrade"]["condition"] == "service_completed_successfully"
    assert upgrade["command"] == ["db", "upgrade"]
    assert upgrade["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "restart" not in upgrade


def test_the_image_is_debians_and_its_user_is_not_root(instructions):
    assert instructions[0] == ("FROM", "python:3.13-slim")
    order = [name for name, _ in instructions]
    assert instructions[order.index("USER")] == ("USER", "agentmesh")
    assert order.index("USER") > max(position for position, name in enumerate(order) if name == "RUN")
    assert ("ENTRYPOINT", '["agentmesh"]') in instructions


def test_the_image_installs_what_is_locked(instructions):
    installs = [arguments for name, arguments in instructions if name == "RUN" and "pip install" in arguments]
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_the_image_gets_every_folder_of_the_wheel_and_the_context_lets_it_in(instructions):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    copied = {source for name, rest in instructions if name == "COPY" for source in rest.split()[:-1]}
    assert {folder for folder in folders if (ROOT / folder).exists()} <= copied
    ignored, *allowed = (ROOT / ".dockerignore").read_text().split()
    assert ignored == "*"
    assert {f"!{source}" for source in copied} <= set(allowed)
    assert all((ROOT / source).exists() for source in copied)
