"""The dialog that picks a model: with its context size and its prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from agentmesh.domain.figures import count
from agentmesh.tui.widgets.chooser import Choice, Chooser

if TYPE_CHECKING:
    from agentmesh.app.models import OfferedModel
    from agentmesh.tui.commands.calls import ModelList


def model_chooser(models: ModelList) -> Chooser[str]:
    """Return the list of models, the agent's own highlighted."""
    title = f"Models, prices in USD per million tokens; now {models.current}"
    return Chooser(title, [_choice(model) for model in models.offered], highlighted=models.current)


def _choice(model: OfferedModel) -> Choice[str]:
    facts = [f"{count(model.context_window)} context"] if model.context_window else []
    if model.input_usd is not None and model.output_usd is not None:
        facts.append(f"${model.input_usd:,.2f} in, ${model.output_usd:,.2f} out")
    return Choice(model.name, model.name, Content(""), " · ".join(facts))
