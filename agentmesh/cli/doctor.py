"""``agentmesh doctor``: what works and what does not, in words."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit, in_database
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.store.checks import Invariant


@click.command()
@click.option(
    "--model", type=NAMED, metavar="NAME", help="Ask only the server of this model what it can, and remember it."
)
@click.option("--deep", is_flag=True, help="Also check in all rows of the database that every invariant holds.")
@json_option
@place_options(session=False)
def doctor(*, model: str | None, deep: bool, as_json: bool, place: PlaceOptions) -> int:
    """Check what works and what does not; exit code 1 if something is broken. May start the embedded server.

    With --model: ask its server by four to seven short requests what it can. Does it stream, read tools, keep what it
    has read? Can it be made to call a tool? How many slots has it, how long is its context? Workers use the answers for
    a month; what the configuration says comes first.
    """
    from agentmesh.cli.checks import all_checks
    from agentmesh.cli.deep_check import deep_checks
    from agentmesh.cli.finding import Health

    if model is not None:
        from agentmesh.cli.server_check import check_server

        if deep:
            raise UsageError("--model asks a model server, --deep looks at the database's rows.", hint="Give one.")
        return check_server(place, model, as_json=as_json)
    findings = []
    invariants: list[tuple[str, Invariant]] = []
    for finding in chain(all_checks(place), deep_checks(place, invariants) if deep else ()):
        findings.append(finding)
        if not as_json:
            _print(finding.state.glyph, finding.about, finding.words, finding.hint)
    broken = list(dict.fromkeys(finding.about for finding in findings if finding.state is Health.BROKEN))
    if as_json:
        found = {"healthy": not broken, "findings": [asdict(finding) for finding in findings]}
        emit(
            {**found, "invariants": [{**asdict(one), **in_database(name)} for name, one in invariants]}
            if deep
            else found
        )
    else:
        print(f"\nBroken: {', '.join(broken)}." if broken else "\nNothing is broken.")
    return 1 if broken else 0


def _print(glyph: str, about: str, words: str, hint: str) -> None:
    print(f"{glyph} {about:14} {one_line(words, 1000)}", flush=True)
    for line in hint.splitlines():
        print(f"  {'':14} {one_line(line, 1000)}")
