from __future__ import annotations

import subprocess
import sys


def test_the_client_is_imported_on_a_thread_and_an_import_that_fails_ends_nothing() -> None:
    code = (
        "import sys, threading\n"
        "from agentmesh.llm.ahead import THREAD, import_ahead\n"
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
