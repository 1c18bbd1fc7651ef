"""The openai SDK as ``agentmesh.llm.sdk`` imports it: every name is there, and what nobody asks for is not loaded.

Each test has a process of its own, because a module is imported once.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "len([name for name in sys.modules if name.startswith('openai.types.')])"


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_our_client_loads_few_of_the_sdks_types() -> None:
    ours = int(_run(f"import sys, agentmesh.llm.wire; print({LOADED})"))
    whole = int(_run(f"import sys, openai; print({LOADED})"))
    assert ours < whole / 3


@pytest.mark.slow
def test_every_name_of_the_types_is_the_same_as_after_a_plain_import() -> None:
    names = (
        "from importlib import import_module\n"
        "for package in ('openai', 'openai.types', 'openai.types.chat', 'openai.types.responses'):\n"
        "    module = import_module(package)\n"
        "    getattr(module, '__all__', None)\n"
        "    print(package, hasattr(module, 'no_such_name'))\n"
        "    exec(f'from {package} import *')\n"
        "    print(sorted(name for name in dir(module) if not name.startswith('_')))\n"
        "from openai.types.chat import ChatCompletion\n"
        "print(ChatCompletion.model_fields.keys(), ChatCompletion.model_json_schema())\n"
    )
    assert _run(f"import agentmesh.llm.sdk\n{names}") == _run(f"import openai\n{names}")


@pytest.mark.slow
def test_threads_that_ask_at_once_all_get_the_name() -> None:
    code = (
        "import agentmesh.llm.sdk, openai, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "start = threading.Barrier(8)\n"
        "def ask(n):\n"
        "    start.wait()\n"
        "    return openai.types.responses.Response if n % 2 else openai.types.Batch\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(sorted({found.__name__ for found in pool.map(ask, range(8))}))\n"
    )
    assert _run(code) == "['Batch', 'Response']"


def test_a_program_that_has_imported_the_sdk_keeps_it() -> None:
    code = "import sys, openai; before = dict(sys.modules); import agentmesh.llm.sdk as sdk\n"
    code += "print(sdk.openai is openai, all(sys.modules[name] is module for name, module in before.items()))\n"
    code += "print('agentmesh' in repr(sys.meta_path))"
    assert _run(code).split() == ["True", "True", "False"]
