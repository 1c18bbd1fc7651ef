"""``agentmesh db``: upgrade, status, start, url, stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import Number
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import complain, say
from agentmesh.domain.errors import DatabaseError, SchemaDiffers, UsageError

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings
    from agentmesh.store.embedded import EmbeddedServer

_MISSING = (
    "Roles are missing, and this user may not create them. A user who may can run these statements; "
    "then run `agentmesh db upgrade` again to give them their rights:"
)


@click.group()
def db() -> None:
    """The database: its schema, its state, its URL; start and stop the embedded server."""


@db.command()
@place_options(session=False)
def upgrade(place: PlaceOptions) -> None:
    """Bring the schema up to date. Safe at any time, even from several places at once."""
    from agentmesh.app.meshes import same_database
    from agentmesh.store import lineage, roles, schema
    from agentmesh.store.opening import require_one_database

    upgraded: dict[str, str] = {}
    failure: DatabaseError | None = None
    for one in place.settings().each_database():
        try:
            with place.open(one, "db", migrate=False, pool_size=1) as mesh:
                identity = mesh.database.run(lineage.identity)
                if identity in upgraded:
                    twice = same_database(upgraded[identity], one.database or "")
                    complain(twice.message, twice.hint)
                    continue
                if identity:
                    upgraded[identity] = one.database or ""
                require_one_database(mesh.database)
                schema.upgrade(mesh.database.direct_url, mesh.server.home if mesh.server else None)
                say(f"The schema of {mesh.database.where} is at {schema.needed()}.")
                if missing := mesh.database.run(roles.settle):
                    say(f"{_MISSING}\n" + "\n".join(f"  {statement}" for statement in missing))
        except DatabaseError as error:
            if one.database is None:
                raise
            complain(f"{one.database}: {error.message}", error.hint)
            failure = error
    if failure:
        raise failure


@db.command()
@json_option
@place_options(session=False)
def status(*, as_json: bool, place: PlaceOptions) -> None:
    """Show which database this is, and its state. Starts nothing."""
    from agentmesh.cli.render.status import print_facts

    settings = place.settings_of_one()
    server = _embedded(settings)
    facts: dict[str, object] = {}
    if server:
        now = server.status()
        facts |= {
            "kind": "embedded",
            "running": now.running,
            "version": now.version,
            "pid": now.pid,
            "processes": now.holders,
            "data_dir": str(now.data_dir),
            "socket_dir": str(now.socket_dir),
            "log_file": str(now.log_file) if now.log_file else None,
        }
        if now.running:
            facts |= _schema(server.url())
    else:
        url = settings.direct_database_url or settings.database_url or ""
        facts |= {"kind": "url", **_schema(url)}
    (emit if as_json else print_facts)(facts)


@db.command()
@click.option(
    "--linger",
    type=Number(min=1),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Keep the embedded server this long after its last client.",
)
@place_options(session=False)
def start(*, linger: float, place: PlaceOptions) -> None:
    """Start the embedded server, and keep it while it has clients and for --linger after the last one."""
    settings = place.settings_of_one()
    if settings.database_url:
        raise UsageError("A database given by URL is not ours to start.", hint="Start it where it is.")
    with place.open(settings, "db", pool_size=1) as mesh:
        assert mesh.server is not None  # noqa: S101  no URL is given
        mesh.server.keep(linger)
    say(f"The embedded server runs; it ends when it has had no client for {linger:g} s.")


@db.command("url")
@click.option("--reader", "as_reader", is_flag=True, help="For the role that can only read the views.")
@click.option(
    "--linger",
    type=Number(min=1),
    metavar="SECONDS",
    help="Keep the embedded server this long after its last client; by default as long as it is kept now, or 600 s.",
)
@place_options(session=False)
def show_url(*, as_reader: bool, linger: float | None, place: PlaceOptions) -> None:
    """Print the URL for psql and other programs. It may hold a password.

    It starts the embedded server, and keeps it while it has clients and for --linger after the last one.
    """
    from agentmesh.store.reader import READER, reader_url

    settings = place.settings_of_one()
    if not settings.database_url:
        with place.open(settings, "db", pool_size=1) as mesh:
            assert mesh.server is not None  # noqa: S101  no URL is given
            mesh.server.keep(linger)
            print(mesh.server.url(role=READER) if as_reader else mesh.server.url())
    elif as_reader:
        print(settings.reader_url or reader_url(settings.database_url or ""))
    else:
        print(settings.database_url)


@db.command()
@click.option("--force", is_flag=True, help="Also while other processes use it.")
@place_options(session=False)
def stop(*, force: bool, place: PlaceOptions) -> None:
    """Stop the embedded server."""
    server = _embedded(place.settings_of_one())
    if server is None:
        raise UsageError("A database given by URL is not ours to stop.", hint="Stop it where it was started.")
    if not server.stop(force=force):
        say("The embedded server was not running.")
        return
    say("Stopped the embedded server.")
    if others := server.status().holders:
        who = "1 other process uses it and starts" if others == 1 else f"{others} other processes use it and start"
        complain(f"{who} it again.", "`agentmesh doctor` names the workers; end them first if it has to stay stopped.")


def _embedded(settings: Settings) -> EmbeddedServer | None:
    if settings.database_url:
        return None
    from agentmesh.store.embedded import EmbeddedServer

    return EmbeddedServer(settings.data_dir)


def _schema(url: str) -> dict[str, object]:
    """Return facts from the database itself."""
    from agentmesh.store import health, schema
    from agentmesh.store.pool import describe

    with health.look(url) as connection:
        server = health.server(connection)
        state = str(schema.state(connection))
        if state == schema.SchemaState.CURRENT:
            try:
                schema.check(connection, describe(url))
            except SchemaDiffers as error:
                complain(error.message, error.hint)
                state = "differs"
        return {
            "database": server.database,
            "role": server.role,
            "server_version": server.version,
            "connections": server.connections,
            "bytes": server.bytes,
            "schema": str(there) if (there := schema.installed(connection)) else None,
            "schema_needed": str(schema.needed()),
            "schema_state": state,
        }
