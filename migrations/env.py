"""Alembic's environment: runs the revisions on a psycopg connection, in one transaction.

``agentmesh.store.schema`` hands the connection over; from the command line (``alembic upgrade head``) one is made from
AGENTMESH_DATABASE_URL. The code (``agentmesh/sql``) is dropped before the tables change, and created anew when they are
those of the newest revision. SQLAlchemy is here because Alembic needs it, and nowhere else.
"""

from __future__ import annotations

import os

import psycopg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from agentmesh.store import code, schema
from agentmesh.store.pool import describe


def own_connection() -> psycopg.Connection:
    """Connect for a developer who runs Alembic by hand."""
    try:
        return psycopg.connect(os.environ["AGENTMESH_DATABASE_URL"])
    except KeyError:
        raise CommandError("set AGENTMESH_DATABASE_URL, or use `agentmesh db upgrade`") from None


def run(connection: psycopg.Connection) -> None:
    """Run what Alembic's command asks for; all of it or nothing."""
    where = context.config.attributes.get("where") or describe(connection.info.dsn)
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=NullPool)
    with engine.begin() as bind:
        schema.let_take_long(connection)
        # Alembic makes its version table before the first revision runs; the schema must be there by then.
        bind.exec_driver_sql("create schema if not exists agentmesh")
        code.drop(connection, where)
        context.configure(connection=bind, version_table_schema="agentmesh")
        context.run_migrations()
        if context.get_context().get_current_revision() == schema.head():
            code.bring_up_to_date(connection, where)


if context.is_offline_mode():
    raise CommandError("the code of the database is applied by what it finds there; there is no --sql")
try:
    run(context.config.attributes.get("connection") or own_connection())
except DBAPIError as error:
    # psycopg's own error, whether it comes from a revision or from SQLAlchemy: the caller knows what it means.
    raise error.orig if isinstance(error.orig, psycopg.Error) else error from error
