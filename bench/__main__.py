"""Measures everything and writes bench/RESULTS.md and bench/results.json."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench import (
    appending,
    bloat,
    chaos,
    durable,
    fan_in,
    forking,
    idle,
    killing,
    loaded,
    local_model,
    long_mailbox,
    orchestration,
    prefixes,
    programs,
    report,
    resident,
    scale,
    scale_context,
    scale_growth,
    sending,
    servers,
    start,
    stepping,
    streaming,
    takeover,
    trees,
    tui,
    tui_board,
    waking,
    walls,
    workers,
    year,
)
from bench.harness import Bench
from bench.machine import facts
from bench.peers.environments import seconds_spent
from bench.place import Place


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are measured together."""

    run: Callable[[Bench], None]
    seconds: int
    """What its ordinary form may take on two cores that nobody else uses."""


GROUPS: Final[Mapping[str, Group]] = {
    "waking": Group(waking.run, 25),
    "sending": Group(sending.run, 24),
    "durable": Group(durable.run, 41),
    "appending": Group(appending.run, 8),
    "long_mailbox": Group(long_mailbox.run, 39),
    "fan_in": Group(fan_in.run, 9),
    "loaded": Group(loaded.run, 13),
    "idle": Group(idle.run, 34),
    "resident": Group(resident.run, 5),
    "start": Group(start.run, 11),
    "forking": Group(forking.run, 1),
    "killing": Group(killing.run, 2),
    "prefixes": Group(prefixes.run, 12),
    "walls": Group(walls.run, 4),
    "trees": Group(trees.run, 12),
    "takeover": Group(takeover.run, 10),
    "orchestration": Group(orchestration.run, 40),
    "stepping": Group(stepping.run, 8),
    "servers": Group(servers.run, 13),
    "programs": Group(programs.run, 15),
    "streaming": Group(streaming.run, 19),
    "tui": Group(tui.run, 112),
    "board": Group(tui_board.run, 16),
    "chaos": Group(chaos.run, 64),
    "growth": Group(scale_growth.run, 6),
    "context": Group(scale_context.run, 4),
    "scale": Group(scale.run, 14),
    "workers": Group(workers.run, 29),
    "year": Group(year.run, 4),
    "bloat": Group(bloat.run, 0),
    "local_model": Group(local_model.run, 0),
}
LIMIT: Final = 600
"""Seconds that an ordinary run of all groups may take."""
_FORMS: Final = (
    "Without --quick or --full it is the ordinary, short form: every group and every target, at most three "
    f"repetitions, in at most {LIMIT // 60} minutes on two cores that nobody else uses. The long form has up to five "
    "repetitions, more samples in each, and the sizes that take long: 200 children, 10,000 waiting and 100,000 idle "
    "agents, 50,000 messages one by one, a repository of 100,000 files, a snapshot held for a minute, profiles."
)


def main() -> int:
    """Run the groups asked for; return 1 when a target was missed or a group failed; peers may be absent."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, epilog=_FORMS)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all without")
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quick", action="store_true", help="tiny sizes, one repetition: shows only that it runs")
    how_much.add_argument("--full", action="store_true", help="the long form; takes as long as it takes")
    parser.add_argument("--any-load", action="store_true", help="void no repetition on a machine that others use")
    parser.add_argument("--disk", type=Path, metavar="FOLDER", help="where the server's data goes")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, metavar="FOLDER", help="where the results go"
    )
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server and the workers end too
    began = time.monotonic()
    with Place(options.disk) as place:
        machine = facts(place.url, place.folder)
        bench = Bench(place, quick=options.quick, full=options.full, any_load=options.any_load)
        took = {}
        for name in options.groups or GROUPS:
            since, made = time.monotonic(), seconds_spent()
            try:
                GROUPS[name].run(bench)
            except Exception as error:  # noqa: BLE001  one group that fails must not cost the others
                traceback.print_exc()
                bench.failed(name, f"the group {name}", f"{type(error).__name__}: {error}")
            took[name] = time.monotonic() - since - (seconds_spent() - made)
        whole = time.monotonic() - began - seconds_spent()
        if not (options.groups or options.quick or options.full):
            bench.took(whole, LIMIT)
    parts = ", ".join(f"{name} {seconds:.0f} of {GROUPS[name].seconds}" for name, seconds in took.items())
    machine["took"] = (
        f"{whole:.0f} s, not counting the making of peers' environments; each group, and what it may take in an"
        f" ordinary run: {parts}"
    )
    missed = report.write(options.out, machine, bench, options.quick, options.any_load)
    print(options.out / "RESULTS.md")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
