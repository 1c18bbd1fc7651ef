"""``agentmesh doctor``: what works and what does not, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

import click

from agentmesh.cli.named import NAMED
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit, in_database
from agentmesh.domain.errors import AgentmeshError, UsageError
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.cli.finding import Finding
    from agentmesh.config.settings import Settings
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
    from agentmesh.cli.finding import Health

    if model is not None:
        from agentmesh.cli.server_check import check_server

        if deep:
            raise UsageError("--model asks a model server, --deep looks at the database's rows.", hint="Give one.")
        return check_server(place, model, as_json=as_json)
    findings = []
    invariants: list[tuple[str, Invariant]] = []
    for finding in chain(all_checks(place), _deep(place, invariants) if deep else ()):
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


def _deep(place: PlaceOptions, invariants: list[tuple[str, Invariant]]) -> Iterator[Finding]:
    """Yield findings about the rows and trees of each database, and collect the invariants with its name."""
    from agentmesh.cli.checks import naming

    for settings in place.settings().each_database():
        found: list[Invariant] = []
        yield from naming(settings, chain(_rows(place, settings, found), _trees(place, settings)))
        invariants += [(settings.name_among_several, one) for one in found]


def _rows(place: PlaceOptions, settings: Settings, invariants: list[Invariant]) -> Iterator[Finding]:
    """Yield a finding for each invariant, and collect them in ``invariants``."""
    from agentmesh.cli import deep_check
    from agentmesh.cli.finding import Finding, Health

    try:
        invariants += deep_check.look(place, settings)
    except AgentmeshError as error:
        yield Finding(Health.BROKEN, "rows", f"they cannot be checked: {error.message}", error.hint)
    for one in invariants:
        state = Health.BROKEN if one.breaches else Health.OK
        yield Finding(state, "rows", f"{one.meaning} ({one.name})", deep_check.rows(one))


def _trees(place: PlaceOptions, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each difference between rows and directories; one that says so if there is none."""
    from agentmesh.cli import deep_check
    from agentmesh.cli.finding import Finding, Health
    from agentmesh.workspace.results import Fault

    try:
        found = deep_check.files(place, settings)
    except AgentmeshError as error:
        yield Finding(Health.BROKEN, "trees", f"they cannot be checked: {error.message}", error.hint)
        return
    for one in found:
        hint = "`agentmesh workspaces --repair` " + one.remedy if one.remedy else one.advice
        # A directory that no row knows may be that of another database with the same data folder.
        state = Health.NOTE if one.fault is Fault.NO_ROW else Health.BROKEN
        yield Finding(state, "trees", one.words, hint)
    if not found:
        yield Finding(Health.OK, "trees", "rows, directories and snapshots of this host agree (I27)")


def _print(glyph: str, about: str, words: str, hint: str) -> None:
    print(f"{glyph} {about:14} {one_line(words, 1000)}", flush=True)
    for line in hint.splitlines():
        print(f"  {'':14} {one_line(line, 1000)}")
