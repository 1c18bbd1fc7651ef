"""Alembic's environment: runs the revisions on a psycopg connection, in one transaction.

``agentmesh.store.schema`` hands the connection over; from the command line (``alembic upgrade head``) one is made from
AGENTMESH_DATABASE_URL. SQLAlchemy is here because Alembic needs it, and nowhere else.
"""

from __future__ import annotations

import os

import psycopg
from alembic import context
from alembic.util import CommandError
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

FENCE = """
do $$
begin
  if to_regprocedure('agentmesh.free_agents(bigint[])') is not null then
    perform agentmesh.free_agents(array(
      select id from agentmesh.workers where ended_at is null order by id for no key update));
  end if;
end $$
"""
"""Takes their agents from all workers, in the upgrade's own commit: what older code writes after it is refused."""


def own_connection() -> psycopg.Connection:
    """Connect for a developer who runs Alembic by hand."""
    try:
        return psycopg.connect(os.environ["AGENTMESH_DATABASE_URL"])
    except KeyError:
        raise CommandError("set AGENTMESH_DATABASE_URL, or use `agentmesh db upgrade`") from None


def run(connection: psycopg.Connection) -> None:
    """Run what Alembic's command asks for; all of it or nothing."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=NullPool)
    with engine.begin() as bind:
        # Alembic makes its version table before the first revision runs; the schema must be there by then.
        bind.exec_driver_sql("create schema if not exists agentmesh")
        bind.exec_driver_sql(FENCE)
        context.configure(connection=bind, version_table_schema="agentmesh")
        context.run_migrations()


if context.is_offline_mode():
    raise CommandError("the revisions run SQL files; read migrations/versions/*.sql instead of --sql")
try:
    run(context.config.attributes.get("connection") or own_connection())
except DBAPIError as error:
    # psycopg's own error, whether it comes from a revision or from SQLAlchemy: the caller knows what it means.
    raise error.orig if isinstance(error.orig, psycopg.Error) else error from error
