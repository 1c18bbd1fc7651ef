#!/bin/sh
# Write requirements/*.txt. uv is used here only: it resolves for all platforms at once; pip then installs what it wrote.
set -eu
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
.venv/bin/python -m venv "$tools"
"$tools/bin/pip" install --quiet uv

compile() {
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
        --custom-compile-command 'make lock' pyproject.toml "$@"
}
compile --output-file requirements/run.txt
compile --extra dev --constraint requirements/run.txt --output-file requirements/dev.txt
"$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
    --custom-compile-command 'make lock' --group package --constraint requirements/dev.txt --output-file requirements/package.txt
"$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
    --custom-compile-command 'make lock' --group site --output-file requirements/site.txt
