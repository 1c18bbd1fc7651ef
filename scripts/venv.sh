#!/bin/sh
# Make .venv with the Python that is there and install what requirements/dev.txt pins. Does nothing when that is done.
# When pyproject.toml alone is another one, only our own package is installed anew: what runs in .venv goes on.
set -eu
cd "$(dirname "$0")/.."
[ -e agentmesh/tui ] || ln -s ../tui agentmesh/tui  # an unpacked sdist has no links; decision 0029

# The path is part of it: a copied checkout must not go on with the environment of the original.
locked="$PWD $(cksum < requirements/dev.txt)"
wanted="$locked $(cksum < pyproject.toml)"
installed=$(cat .venv/installed 2>/dev/null || true)
if [ -x .venv/bin/python ] && [ "$installed" = "$wanted" ]; then
    exit 0
fi
case $installed in
    "$locked "*)
        if .venv/bin/python -m pip --version >/dev/null 2>&1; then
            .venv/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation -e .
            echo "$wanted" > .venv/installed
            exit 0
        fi ;;
esac

python=""
for name in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
        python=$name
        break
    fi
done
if [ -z "$python" ]; then
    echo "agentmesh needs Python 3.11 to 3.14, and there is none on PATH; make PYTHON=/path/to/python3 names one." >&2
    exit 1
fi

echo "Making .venv with $("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])') ..." >&2
if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv --clear .venv
    pip=".venv/bin/python -m pip"
elif "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear --without-pip .venv
    pip="$python -m pip --python .venv"
else
    echo "agentmesh: $python has no ensurepip and no pip; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
fi

pip="$pip --disable-pip-version-check --quiet"
$pip install --require-hashes --only-binary :all: -r requirements/dev.txt
$pip install --no-deps --no-build-isolation -e .
echo "$wanted" > .venv/installed
