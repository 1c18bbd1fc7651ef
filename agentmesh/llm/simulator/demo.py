"""The demo's model: a script that forks, sends, waits, kills and uses tools in the current directory.

Stateless: each answer follows from the request alone. The root plays ``demo_root``, the children that it forks play
``demo_jobs``, and ``demo_phrases`` answers everything else.
"""

from __future__ import annotations

from dataclasses import replace

from agentmesh.llm.simulator.demo_jobs import job_of, play_job
from agentmesh.llm.simulator.demo_phrases import SUMMARY_REQUEST, play_phrase, play_summary
from agentmesh.llm.simulator.demo_root import is_demo_prompt, play_root
from agentmesh.llm.simulator.reply import Responder, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView, read_mail

DEMO_MODEL = "demo"
"""Model name of the demo's script."""
DEMO_PROMPT = (
    "Show me a demo: fork helpers, let them look at this directory, wait for them, and sum up what they found."
)
"""The task that ``agentmesh demo`` gives to the root."""

_FIRST_BYTE = 0.15
_PER_CHUNK = 0.02


def demo_responder(pace: float = 1.0) -> Responder:
    """Return the demo's script; ``pace`` stretches its pauses, 0 removes them."""

    def respond(view: ChatRequestView) -> ScriptedReply:
        return replace(_play(view), first_byte_delay=_FIRST_BYTE * pace, chunk_delay=_PER_CHUNK * pace)

    return respond


def _play(view: ChatRequestView) -> ScriptedReply:
    own = list(view.own_inputs())
    last_index, last_text = own[-1] if own else (-1, "")
    if SUMMARY_REQUEST in last_text:
        return play_summary(view)
    mail = read_mail(last_text)
    if view.fork is not None and (mail or last_index == view.fork.index) and (job := job_of(view.fork)):
        return play_job(job, view, view.fork, mail)
    # The user's last message decides; mail that has arrived since is part of the same demo.
    said = [(index, text) for index, text in own if not read_mail(text)]
    if said and is_demo_prompt(said[-1][1]) and (reply := play_root(view, said[-1][0])) is not None:
        return reply
    return play_phrase(view, last_index, last_text, mail)
