"""Which models see, and what servers say about images."""

from __future__ import annotations

import pytest

from agentmesh.llm import vision, wording

REFUSALS = (
    "Failed to deserialize the JSON body into the target type: unknown variant `image_url`, expected `text`",
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    "No endpoints found that support image input",
    "Invalid content type. image_url is only supported by certain models.: model does not support images",
    "At most 0 image(s) may be provided in one prompt.",
    "This model does not support vision",
    "'messages.1.content' : value must be a string",
    "meta-llama is not a multimodal model",
)
BROKEN = (
    "Could not process image",
    "You uploaded an unsupported image. Please make sure your image is below 20 MB: invalid image",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "Failed to load image: cannot identify image file",
    "The image data you provided does not represent a valid image.",
)
OTHERS = ("Rate limit reached", "max_tokens is too large", "This model's maximum context length is 8192 tokens.")


@pytest.mark.parametrize("said", REFUSALS)
def test_a_refusal_of_images_is_known(said: str):
    assert wording.refuses_images(said)
    assert not wording.is_bad_image(said)


@pytest.mark.parametrize("said", BROKEN)
def test_a_broken_image_is_known(said: str):
    assert wording.is_bad_image(said)


@pytest.mark.parametrize("said", OTHERS)
def test_other_refusals_are_not_about_images(said: str):
    assert not wording.refuses_images(said)
    assert not wording.is_bad_image(said)


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("gpt-4o-mini", True),
        ("openai/gpt-5.1", True),
        ("anthropic/claude-sonnet-4.5", True),
        ("google/gemini-2.5-pro", True),
        ("qwen2.5vl:7b", True),
        ("llama3.2-vision", True),
        ("glm-4.5v", True),
        ("o3", True),
        ("o3-mini", False),
        ("gpt-3.5-turbo", False),
        ("deepseek-chat", False),
        ("llama3.1:8b", False),
        ("my-finetune", None),
    ],
)
def test_names_tell(model: str, sees: bool | None):
    assert vision.sees(model) is sees
