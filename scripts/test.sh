#!/bin/sh
# Run the tests; what fails in the company of all others is run again, alone and one at a time, twice at most.
#
# Hundreds of these tests start processes, terminals and servers, and a machine that does several things at once can
# make one of them late. A test that passes alone is named at the end as one to look at: it hides nothing, and it
# does not stop a change that has nothing to do with it. More than ten failures are no accident and are not run again.
# usage: scripts/test.sh PYTEST-ARGUMENTS...
set -u
cd "$(dirname "$0")/.."

failed=$(mktemp)
trap 'rm -f "$failed"' EXIT

.venv/bin/pytest --override-ini=cache_dir=.pytest_cache "$@"
code=$?
[ "$code" -eq 1 ] || exit "$code"

.venv/bin/python - "$failed" <<'PYTHON' || exit 1
import json, pathlib, sys
names = json.loads(pathlib.Path(".pytest_cache/v/cache/lastfailed").read_text())
pathlib.Path(sys.argv[1]).write_text("\n".join(names))
sys.exit(not 0 < len(names) <= 10)
PYTHON

for attempt in 1 2; do
    echo "These failed and are run again, alone ($attempt of at most 2):"
    sed 's/^/    /' "$failed"
    echo
    if .venv/bin/pytest --override-ini=cache_dir=.pytest_cache --last-failed --last-failed-no-failures=none -p no:xdist; then
        echo "LOOK AT THEM: they failed in the company of all others and pass alone:"
        sed 's/^/    /' "$failed"
        echo
        exit 0
    fi
done
exit 1
