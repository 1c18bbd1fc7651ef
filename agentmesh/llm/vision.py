"""Which models see images, as their names tell."""

from __future__ import annotations

import re
from typing import Final

_SEES: Final = re.compile(
    r"vision|multimodal|omni|[-_.]vl\b|\bvl[-_]|\dvl?\b|vl\d"
    r"|gpt-4o|gpt-4\.[1-9]|gpt-4-turbo|gpt-[5-9]|\bo1\b|\bo3\b|\bo4\b|chatgpt"
    r"|claude|gemini|gemma-?(3|4)|llama-?4|grok-[4-9]|pixtral|mistral-(small-3\.[1-9]|medium|large-3)"
    r"|llava|bakllava|moondream|minicpm-v|internvl|molmo|idefics|smolvlm|kimi-k2\.5|nova-(lite|pro|premier)"
)
_BLIND: Final = re.compile(
    r"gpt-3\.5|\bo1-mini|\bo1-preview|\bo3-mini|gpt-oss|gpt-4-\d{4}|\bgpt-4$|claude-(2|instant)"
    r"|deepseek-(chat|reasoner|coder|v3|r1)|codestral|devstral|mixtral|codellama|starcoder|whisper|embed"
    r"|llama-?(2|3\.?1|3\.?3)|llama3(?!\.2-vision)|qwen2\.5-coder|qwen3-coder|gemma-?3[-:]?(1b|270m)|phi-?[23](?!.*vision)"
)


def sees(model: str) -> bool | None:
    """Return whether a model of this name sees images; None if the name does not tell."""
    name = model.lower()
    if _BLIND.search(name):
        return False
    return True if _SEES.search(name) else None
