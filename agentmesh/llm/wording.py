"""Read servers' refusals, in the words of OpenAI, OpenRouter, vLLM, SGLang, llama.cpp, Ollama and others.

For the same cause they send different status codes and error codes; the sentences are the more reliable sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_CONTEXT = _any(
    r"context_length_exceeded",
    r"exceed_context_size",
    r"maximum context length",
    r"(exceed\w*|larger than|longer than|overflows?|too large for)\b.{0,60}\bcontext (window|length|size|limit)",
    r"context (window|length|size|limit).{0,40}\bexceeded",
    r"when context the overflows",
    r"exceeded max context length",
    r"longer than the maximum model length",
    r"prompt is too long",
    r"prompt too long",
    r"maximum prompt length",
    r"input tokens? (count|exceed).{0,60}(exceeds|limit)",
    r"input token count .{0,40}exceeds",
    r"reduce the length of the (messages|prompt|input)",
    r"must be <= \d+.{0,40}max_new_tokens|max_new_tokens.{0,40}must be <=",
    r"too many tokens",
    r"request too large",
)
_TOO_LARGE = _any(r"request too large", r"\brequested:? \d", r"context_length_exceeded", r"exceed_context_size")
"""Said of one request alone. A limit per minute may be told in the other words of ``_CONTEXT``."""
_CONTEXT_SIZE = _any(
    r"(?:maximum context length|maximum model length|maximum prompt length|context length|context window|context size)"
    r"(?: (?:is|of)(?: only)?)? ?\(?(\d{3,})",
    r"with (\d{3,}) maximum context length",
    r'"n_ctx": ?(\d{3,})',
    r"tokens > (\d{3,}) maximum",
    r"maximum number of tokens allowed \((\d{3,})\)",
)
_REQUEST_SIZE = _any(
    r"(?:you requested|you sent|resulted in|request has|prompt (?:has|contains)(?: at least)?|input (?:has|is)"
    r"|request \(|prompt is too long: ?|\"n_prompt_tokens\": ?|number of input tokens is)(?: about)? ?\(?(\d{2,})",
    r"(\d{2,}) tokens? (?:in the messages|of the prompt|from the input)",
)
_UNKNOWN_MODEL = _any(
    r"model_not_found",
    r"\bmodel\b.{0,120}\b(not found|does not exist|doesn't exist|not exist|is not available|not supported by any)",
    r"\b(unknown|invalid|no such) model\b",
    r"not a valid model",
    r"no endpoints found for",
    r"try pulling it first",
)
_NO_TOOLS = _any(
    r"does not support (tools|tool use|function calling)",
    r"support tool use",
    r"tool use is not supported",
    r"tools param requires",
    r"requires --enable-auto-tool-choice",
)
_NO_CREDIT = _any(
    r"insufficient_quota",
    r"insufficient (credits|balance|funds)",
    r"credit balance is too low",
    r"requires more credits",
    r"billing_hard_limit|billing_not_active",
)
_NO_QUOTA = _any(r"exceeded your current quota")
_PASSES = _any(r"resource_exhausted", r"retryDelay", r"\bretry in \d")
_QUOTA_OF_A_DAY = _any(r"PerDay")
"""Part of the names that Gemini gives its quotas."""
_PAUSE = re.compile(
    r"(?:retryDelay\W{1,8}|\b(?:re)?try (?:again )?(?:in|after) )"
    r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|s|sec|seconds?)\b",
    re.IGNORECASE,
)
_BAD_KEY = _any(r"invalid_api_key", r"api key not valid", r"(incorrect|invalid) api key", r"no auth credentials")
_OVERLOADED = _any(r"overloaded", r"at capacity", r"no capacity", r"temporarily unavailable", r"server busy")
_RATE = _any(r"rate.?limit", r"too many requests")
_THROTTLED = _any(
    r"throttl(ing|ed)",
    r"(please|must|should) wait",
    r"wait (before|and|for|a few|\d)",
    r"(re)?try (again )?(later|shortly|soon|after|in (a |an )?(\d|few|moment|minute|second))",
)
_REFUSAL = _any(
    r"unsupported",
    r"not (currently )?support",
    r"n't support",
    r"unrecognized",
    r"unknown",
    r"unexpected",
    r"extra (inputs|fields)",
    r"not (permitted|allowed|implemented)",
    r"invalid (parameter|argument|field|key)",
    r"no such (parameter|field)",
)
_NO_STREAM = _any(r"stream(ing)?\W{1,3}(mode )?(is )?(not supported|unsupported)", r"not support stream(ing)?\b(?!_)")
_NO_GRAMMAR = _any(
    r"(fail\w*|error|unable|cannot|can't|could not|invalid|unsupported|not support\w*|n't support).{0,80}\bgrammar",
    r"\bgrammar\b.{0,80}(fail|error|invalid|unsupported|not (currently )?support|n't support|too complex)",
    r"json.?schema.{0,80}(fail|error|invalid|unsupported|not (currently )?support|n't support|conversion)",
    r"(guided|structured)[ _](decoding|outputs?).{0,80}(fail|invalid|unsupported|not (currently )?support|n't support)",
)
_NO_EMPTY_CONTENT = _any(
    r"\b(content|text)\b.{0,80}\b(non-?empty|not be (empty|blank)|is (empty|blank)|cannot be (empty|blank))",
    r"\b(non-?empty|empty|blank)\b.{0,40}\bcontent\b",
)
_SHORT_IDS = _any(
    r"\btool.?call.?ids?\b.{0,150}\blength (of )?9\b",
    r"\btool_use\w*\.(tool_use_)?id\b.{0,60}should match pattern",
)
_UNSIGNED = _any(r"missing an? \W?thought_?signature")
_UNDETAILED = _any(r"reasoning.details to be preserved")
_BAD_SIGNATURE = _any(
    r"corrupted thought.?signature",
    r"thought.?signature is (not valid|invalid)",
    r"invalid .?signature.? in .?thinking.? block",
)
_UNREASONED = _any(
    r"\breasoning_content\b.{0,60}\b(is missing|must be passed back|is required)",
    r"\b(missing|requires?) .?reasoning_content\b",
)
_BOUND_TOO_LARGE = _any(
    r"\bmax_(completion_|output_|new_)?tokens\b.{0,80}"
    r"(too large|too high|exceed|at most|must be|less than|<=|> ?\d|range|maximum)",
    r"at most \d+ (completion|output) tokens",
    r"\d in the completion\b",
)
_SIGHT = r"\b(image|vision|multi-?modal)"
_NO_IMAGES = _any(
    _SIGHT + r"\w*\b.{0,80}(unsupported|not (currently )?support|n't support|not (allowed|enabled)|cannot|can't)",
    r"at most 0 (image|multi-?modal)",
    r"(unsupported|not (currently )?support|n't support|cannot|can't|(not|n't) accept|no endpoints).{0,80}" + _SIGHT,
    r"not a (multi-?modal|vision) model",
    r"unknown variant .?image_url",
    r"mmproj",
    r"\bcontent\W{1,5}(value )?(must be|should be|is not|expected).{0,20}string",
    r"(expected|valid|must be).{0,30}string.{0,60}\bcontent\b|\bcontent\b.{0,60}valid string",
)
_BAD_IMAGE = _any(
    r"(could not|cannot|can't|failed to|unable to) (process|decode|load|read|parse|download)\w*"
    r" (the |an )?(input )?image",
    r"(invalid|corrupt\w*|malformed) (base64 )?(image|data url)",
    r"image_parse_error|invalid_image|invalid_base64",
    r"image.{0,50}\b(is not valid|is invalid|corrupt|too large|too small|exceeds|represent a valid image)",
    r"unsupported image (format|type)|image (format|media type).{0,30}not supported",
    r"too many images",
)
_DISTINCTIVE_LENGTH = 8
_MOST_DIGITS = 15
_NEVER_REFUSED = frozenset({"model", "messages", "tools", "stream"})


def is_context_overflow(text: str) -> bool:
    """Whether the server says that the conversation exceeds the model's context."""
    return bool(_CONTEXT.search(text))


def is_of_one_request(text: str) -> bool:
    """Whether a refusal for length speaks of this request, and not of how much a caller may send in a minute."""
    return bool(_TOO_LARGE.search(text)) or context_size(text) is not None or request_size(text) is not None


def context_size(text: str) -> int | None:
    """Return the context size in tokens that the server names in a refusal."""
    return _number(_CONTEXT_SIZE.search(text))


def request_size(text: str) -> int | None:
    """Return the number of tokens of the refused request, as counted by the server."""
    return _number(_REQUEST_SIZE.search(text))


def _number(found: re.Match[str] | None) -> int | None:
    """Return the number of a match, None if it has more digits than any count of tokens."""
    digits = next(filter(None, found.groups()), "") if found else ""
    return int(digits) if 0 < len(digits) <= _MOST_DIGITS else None


def is_bound_too_large(text: str) -> bool:
    """Whether the server refuses the length limit of the answer; for some servers the context is the reason."""
    return bool(_BOUND_TOO_LARGE.search(text))


def is_unknown_model(text: str) -> bool:
    """Whether the server says that it has no such model."""
    return bool(_UNKNOWN_MODEL.search(text))


def lacks_tools(text: str) -> bool:
    """Whether the server says that the model, as it is served, cannot call tools."""
    return bool(_NO_TOOLS.search(text))


def is_out_of_credit(text: str) -> bool:
    """Whether the account has no credit left, so that no retry helps.

    If OpenAI says "You exceeded your current quota", the credit is used up. Gemini also says it after too many requests
    in a minute, and asks to wait. It may ask so even if the quota for a day is used up: then waiting does not help.
    """
    if _NO_CREDIT.search(text):
        return True
    passes = _PASSES.search(text) and not _QUOTA_OF_A_DAY.search(text)
    return bool(_NO_QUOTA.search(text)) and not passes


def is_bad_key(text: str) -> bool:
    """Whether the server does not accept the API key."""
    return bool(_BAD_KEY.search(text))


def is_overloaded(text: str) -> bool:
    """Whether the server is overloaded."""
    return bool(_OVERLOADED.search(text))


def is_rate_limited(text: str) -> bool:
    """Whether the caller sends too many requests."""
    return bool(_RATE.search(text))


def is_throttled(text: str) -> bool:
    """Whether the server asks to wait, so that the same request is answered later."""
    return bool(_THROTTLED.search(text))


def pause(text: str) -> float | None:
    """Return the seconds that the server asks to wait in its text."""
    found = _PAUSE.search(text)
    return float(found["number"]) / (1000 if found["unit"].lower() == "ms" else 1) if found else None


def refuses_empty_content(text: str) -> bool:
    """Whether the server requires null, or no field at all, for a message without text."""
    return bool(_NO_EMPTY_CONTENT.search(text))


def wants_short_ids(text: str) -> bool:
    """Whether the server takes only ids of calls in a form of its own."""
    return bool(_SHORT_IDS.search(text))


def wants_signature(text: str) -> bool:
    """Whether the server says that an earlier call lacks the signature of the thoughts before it."""
    return bool(_UNSIGNED.search(text))


def wants_details(text: str) -> bool:
    """Whether OpenRouter says that an earlier call lacks the details of the thoughts before it."""
    return bool(_UNDETAILED.search(text))


def refuses_signature(text: str) -> bool:
    """Whether the server says that it did not make the signature of an earlier call or of thoughts."""
    return bool(_BAD_SIGNATURE.search(text))


def wants_reasoning(text: str) -> bool:
    """Whether the server says that an earlier answer lacks its reasoning."""
    return bool(_UNREASONED.search(text))


def refuses_field(text: str, field: str) -> bool:
    """Whether the server does not know a field of a message. A short name counts only beside a message's place."""
    if not _REFUSAL.search(text):
        return False
    name = rf"(?<!\w){re.escape(field)}(?!\w)"
    pattern = name if "_" in field else rf"\bmessages\b.{{0,120}}?{name}|{name}.{{0,20}}\bmessages\b"
    return bool(re.search(pattern, text, re.DOTALL))


def refuses_grammar(text: str) -> bool:
    """Whether the server cannot make or use the grammar that an answer must keep to."""
    return bool(_NO_GRAMMAR.search(text))


def refuses_images(text: str) -> bool:
    """Whether the server says that the model cannot see, or wants text where a request has parts."""
    return bool(_NO_IMAGES.search(text))


def is_bad_image(text: str) -> bool:
    """Whether the server says that it cannot read an image of a request, or that there are too many."""
    return bool(_BAD_IMAGE.search(text))


def refused_parameter(text: str, named: str, sent: Iterable[str]) -> str:
    """Return the one of the parameters ``sent`` that the server refuses, or an empty string.

    ``named`` is the error's own ``param`` field. A short name counts only in quotes: it may occur by chance.
    """
    if not _REFUSAL.search(text):
        return ""
    names = sorted(set(sent), key=len, reverse=True)
    first = re.split(r"[.\[]", named, maxsplit=1)[0]
    for name in names:
        if name in _NEVER_REFUSED:
            continue
        if name == first:
            return name
        bare = "_" in name or len(name) >= _DISTINCTIVE_LENGTH
        if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)" if bare else rf"[\"'`]{re.escape(name)}[\"'`]", text):
            return name
    return "stream" if "stream" in names and (first == "stream" or _NO_STREAM.search(text)) else ""
