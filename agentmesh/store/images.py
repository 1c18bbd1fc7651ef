"""The bytes of images, by session and digest."""

from __future__ import annotations

from collections.abc import Collection

from psycopg import Connection

from agentmesh.domain.ids import SessionId
from agentmesh.domain.images import Image
from agentmesh.sql import statement
from agentmesh.store.call import scalar


def keep(conn: Connection, session: SessionId, image: Image) -> str:
    """Store an image before the row that refers to it; return its digest. Raise UnknownSession."""
    values = {
        "session": session,
        "media_type": image.media_type,
        "width": image.width,
        "height": image.height,
        "bytes": image.data,
    }
    return scalar(conn, statement("images.keep"), values, str)


def load(conn: Connection, session: SessionId, digests: Collection[str]) -> dict[str, bytes]:
    """Return the bytes of these images by digest, as far as the session has them."""
    values = {"session": session, "digests": list(digests)}
    return {row[0]: bytes(row[1]) for row in conn.execute(statement("images.bytes"), values).fetchall()}
