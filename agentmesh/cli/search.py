"""``agentmesh search``: find words in all conversations and mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit, in_database
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import plural

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.store.search import Hit, Reach

_MOST = 1000


@click.command()
@click.argument("words", nargs=-1)
@click.option("-a", "--all", "everything", is_flag=True, help="In the newest sessions of any directory.")
@click.option("--agent", "who", type=NAMED, metavar="AGENT", help="Only this agent's conversation and mail.")
@click.option("-n", "--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="Limit of hits.")
@json_option
@place_options()
def search(
    words: tuple[str, ...], *, everything: bool, who: str | None, limit: int, as_json: bool, place: PlaceOptions
) -> None:
    """Find the rows and the mail of the session that hold all these WORDS, the newest first.

    Understands "a phrase", or, and -without (options first, then -- and the words). It also finds text that
    was rewound, cleared or summarized. AGENT:ROW is the form for `agentmesh fork --at`.
    """
    from agentmesh.store import search as store

    wanted = text_argument(" ".join(words) if words else None, "word to look for")
    if everything and (who is not None or place.session is not None):
        raise UsageError("--all looks into all sessions.", hint="Leave it out, or --agent and --session.")
    reach: list[store.Reach] = []
    if everything:
        hits, reach = _everywhere(place, wanted, limit)
    else:
        with place.mesh("search", who=[who] if who else ()) as mesh:
            agent = find_agent(mesh, place, who)[0].id if who is not None else None
            session = None if agent else place.find_session(mesh).id
            hits = [
                ("", hit) for hit in mesh.database.run(store.search, wanted, session, agent, limit, idempotent=True)
            ]
    if as_json:
        emit([{**_data(hit), **in_database(name)} for name, hit in hits])
    else:
        _print(hits, everything)
    if not hits:
        say("Nothing found." if everything or who else "Nothing found in this session; --all looks into all.")
    elif len(hits) == limit:
        say(f"The newest {limit}: --limit shows more.")
    looked_into, all_of_them = sum(one.looked_into for one in reach), sum(one.all_of_them for one in reach)
    if looked_into < all_of_them:
        say(
            f"Looked into the newest {plural(looked_into, 'session')} of {all_of_them}; "
            "--session ID looks into one of the others."
        )


def _everywhere(place: PlaceOptions, wanted: str, limit: int) -> tuple[list[tuple[str, Hit]], list[Reach]]:
    """Return the newest hits of all databases, each with its database, and how far each was looked into."""
    from agentmesh.store import search as store

    def search_in(mesh: Mesh) -> tuple[list[Hit], Reach]:
        run = mesh.database.run
        return run(store.search, wanted, None, None, limit, idempotent=True), run(store.reach, idempotent=True)

    with all_databases(place, "search") as databases:
        answers = databases.ask(search_in)
    hits = [(name, hit) for name, (some, _) in answers.items() for hit in some]
    if databases.are_several:
        hits = sorted(hits, key=lambda one: one[1].at, reverse=True)[:limit]
    return hits, [reach for _, reach in answers.values()]


def _print(hits: list[tuple[str, Hit]], everything: bool) -> None:
    from agentmesh.cli.render.hits import hit_text
    from agentmesh.cli.render.screen import console

    out = console()
    for name, hit in hits:
        out.print(hit_text(hit, sessions=everything, database=name), soft_wrap=not out.is_terminal)


def _data(hit: Hit) -> dict[str, object]:
    return {
        "session_id": hit.session_id,
        "agent_id": hit.agent_id,
        "name": hit.name,
        "seq": hit.seq,
        "message_id": hit.mail_id,
        "kind": hit.kind,
        "at": hit.at,
        "snippet": hit.snippet,
    }
