"""Measures everything and writes bench/RESULTS.md and bench/results.json."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bench import (
    appending,
    chaos,
    durable,
    fan_in,
    forking,
    idle,
    killing,
    loaded,
    long_mailbox,
    orchestration,
    report,
    resident,
    scale,
    scale_context,
    scale_growth,
    sending,
    start,
    streaming,
    takeover,
    tui,
    waking,
    workers,
)
from bench.harness import Bench
from bench.machine import facts
from bench.place import Place

GROUPS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "waking": waking.run,
    "sending": sending.run,
    "durable": durable.run,
    "appending": appending.run,
    "long_mailbox": long_mailbox.run,
    "fan_in": fan_in.run,
    "loaded": loaded.run,
    "idle": idle.run,
    "resident": resident.run,
    "start": start.run,
    "forking": forking.run,
    "killing": killing.run,
    "takeover": takeover.run,
    "orchestration": orchestration.run,
    "streaming": streaming.run,
    "tui": tui.run,
    "chaos": chaos.run,
    "growth": scale_growth.run,
    "context": scale_context.run,
    "scale": scale.run,
    "workers": workers.run,
}


def main() -> int:
    """Run the groups asked for; return 1 when a target was missed or a group failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; all without")
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quick", action="store_true", help="tiny sizes, one repetition: to see that it runs")
    how_much.add_argument("--full", action="store_true", help="the largest sizes too; takes as long as it takes")
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
            since = time.monotonic()
            try:
                GROUPS[name](bench)
            except Exception as error:  # noqa: BLE001  one group that fails must not cost the others
                traceback.print_exc()
                bench.failed(name, f"the group {name}", f"{type(error).__name__}: {error}")
            took[name] = time.monotonic() - since
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in took.items())
    machine["took"] = f"{time.monotonic() - began:.0f} s: {parts}"
    missed = report.write(options.out, machine, bench, options.quick, options.any_load)
    print(options.out / "RESULTS.md")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
