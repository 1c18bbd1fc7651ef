from __future__ import annotations

import subprocess
import sys


def test_the_client_is_imported_on_a_thread_and_an_import_that_fails_ends_nothing() -> None:
    code = (
        "import sys, threading\n"
        "from agentmesh.llm.import_ahead import THREAD, import_ahead\n"
        "print('openai' in sys.modules)\n"
        "def ended():\n"
        "    import_ahead()\n"
        "    for thread in threading.enumerate():\n"
        "        if thread.name == THREAD: thread.join()\n"
        "sys.modules['openai'] = None\n"
        "ended()\n"
        "del sys.modules['openai']\n"
        "print('agentmesh.llm.wire' in sys.modules)\n"
        "ended()\n"
        "print('agentmesh.llm.wire' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["False", "False", "True"], "")


def test_the_client_is_imported_without_aiohttp_which_others_may_import_meanwhile() -> None:
    code = (
        "import sys, threading\n"
        "import aiohttp.hdrs\n"  # installed, or this test says nothing
        "for name in [name for name in sys.modules if name.split('.')[0] == 'aiohttp']: del sys.modules[name]\n"
        "from agentmesh.llm import import_ahead as ahead\n"
        "with ahead._without('aiohttp'):\n"
        "    other = threading.Thread(target=__import__, args=('aiohttp',))\n"
        "    other.start()\n"
        "    other.join()\n"
        "    print('aiohttp' in sys.modules)\n"
        "for name in [name for name in sys.modules if name.split('.')[0] == 'aiohttp']: del sys.modules[name]\n"
        "ahead.import_ahead()\n"
        "[thread.join() for thread in threading.enumerate() if thread.name == ahead.THREAD]\n"
        "print('agentmesh.llm.wire' in sys.modules, 'aiohttp' in sys.modules)\n"
        "import aiohttp\n"
        "print('agentmesh' in repr(sys.meta_path))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["True", "True", "False", "False"], "")
