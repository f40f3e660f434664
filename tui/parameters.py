"""The parameters of a conversation as texts that a person edits: labels, meanings, and the way there and back.

An empty text is the default. What is allowed is known by ``localinfer.generation.check`` and the types of the values;
no limit is repeated here.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from localinfer import decoding, settings
from localinfer.errors import BadRequest
from localinfer.generation import check
from localinfer.history.values import Parameters
from localinfer.types import GenerationRequest, Message, Sampling, Speculation, Value

Group = Literal["answer", "sampling", "speculation", "model", "more"]
RELOADS = ("context", "kv_type", "threads", "draft")
DRAFTERS = {"auto": "auto", "lookup": "prompt lookup only", "model": "draft model only", "off": "off"}


class ModelFacts(Value, frozen=True):
    """What is known of the loaded model: its ``context``, ``threads`` and ``kv_type`` in force, the context it was
    trained for, and the one that memory has room for by its plan; ``draft`` is its draft model's name."""

    name: str = ""
    context: int | None = None
    trained_context: int | None = None
    max_context: int | None = None
    threads: int | None = None
    kv_type: str = ""
    draft: str = ""


class Field(Value, frozen=True):
    """One parameter. ``otherwise`` says what holds when it is left empty, where the default itself does not say it."""

    name: str
    label: str
    meaning: str
    group: Group
    otherwise: str = ""


def _field(group: Group, name: str, label: str, meaning: str, otherwise: str = "") -> Field:
    return Field(name=name, label=label, meaning=meaning, group=group, otherwise=otherwise)


FIELDS: tuple[Field, ...] = (
    _field("answer", "system", "System prompt", "What the model is told before everything else."),
    _field("answer", "max_tokens", "Longest reply", "Tokens after which a reply is cut.", "until the model stops"),
    _field("sampling", "temperature", "Temperature", "Higher is more varied, 0 always takes the likeliest token."),
    _field("sampling", "top_p", "Top P", "Keep the likeliest tokens that together have this probability. 1 is off."),
    _field("sampling", "top_k", "Top K", "Keep this many of the likeliest tokens. 0 is off."),
    _field("sampling", "min_p", "Min P", "Drop tokens less likely than this share of the likeliest. 0 is off."),
    _field(
        "sampling", "repeat_penalty", "Repeat penalty", "Above 1, what was said lately becomes less likely. 1 is off."
    ),
    _field("sampling", "seed", "Seed", "The same seed, the same reply.", "another one each time"),
    _field("speculation", "drafter", "Drafts", "What drafts tokens that the model only checks. Replies stay the same."),
    _field("speculation", "most", "Longest draft", "Tokens drafted for one pass. Fewer are, where more do not pay."),
    _field(
        "model", "draft", "Draft model", "A small model of the same vocabulary, off for none.", "the one that suits"
    ),
    _field("model", "context", "Context", "Tokens that the model can see at once. More needs more memory."),
    _field("model", "kv_type", "KV cache", "Precision of the KV cache. Smaller types save memory, at a loss."),
    _field("model", "threads", "Threads", "Processor threads.", "as many as are free"),
    _field("more", "typical_p", "Typical P", "Keep tokens of typical information, of this probability. 1 is off."),
    _field("more", "presence_penalty", "Presence penalty", "Makes every token that occurred less likely. 0 is off."),
    _field("more", "frequency_penalty", "Frequency penalty", "Grows with how often a token occurred. 0 is off."),
    _field("more", "penalty_last_n", "Penalty window", "Tokens that penalties look back on. -1 is the whole context."),
    _field("more", "dry_multiplier", "DRY multiplier", "Strength against repeated sequences. 0 is off."),
    _field("more", "dry_base", "DRY base", "How steeply the DRY penalty grows with the length of a repetition."),
    _field("more", "dry_allowed_length", "DRY allowed length", "Repetitions up to this many tokens cost nothing."),
    _field("more", "dry_last_n", "DRY window", "Tokens that DRY looks back on. -1 is the whole context."),
    _field("more", "dry_sequence_breakers", "DRY breakers", "Texts that end a repetition, as a JSON list."),
    _field("more", "xtc_probability", "XTC probability", "Chance to leave out the likeliest tokens. 0 is off."),
    _field("more", "xtc_threshold", "XTC threshold", "Only tokens more likely than this are left out."),
    _field(
        "more", "mirostat", "Mirostat", "1 or 2 steers the surprise of the text, in place of top and min. 0 is off."
    ),
    _field("more", "mirostat_tau", "Mirostat tau", "The surprise that Mirostat steers for."),
    _field("more", "mirostat_eta", "Mirostat eta", "How fast Mirostat steers."),
    _field("more", "logit_bias", "Logit bias", 'Added to the logits of token ids, as JSON: {"123": -5}.', "none"),
    _field("more", "top_logprobs", "Logprobs", "Ask for the probabilities of this many alternatives.", "not asked for"),
)
_NESTED: dict[str, type[msgspec.Struct]] = {"sampling": Sampling, "speculation": Speculation}
_KINDS: dict[str, Any] = {
    field.name: field.type for nested in _NESTED.values() for field in msgspec.structs.fields(nested)
} | {
    "system": str,
    "max_tokens": int | None,
    "draft": str | None,
    "context": settings.Positive | None,
    "kv_type": str | None,
    "threads": settings.Positive | None,
}
_JSON = {"dry_sequence_breakers", "logit_bias"}
_GROUPED = re.compile(r"-?\d{1,3}([, ]\d{3})+")


def texts(parameters: Parameters) -> dict[str, str]:
    """``parameters`` as they are edited: empty where they are the default."""
    return {
        field.name: "" if value == default(field.name) else _written(value)
        for field in FIELDS
        for value in (_value(parameters, field.name),)
    }


def default(name: str) -> object:
    """The default of a parameter."""
    return _value(Parameters(), name)


def placeholder(field: Field, facts: ModelFacts) -> str:
    """What holds when ``field`` is left empty, in words."""
    if field.name == "context" and facts.context is not None:
        return f"{facts.context:,} · as it is loaded"
    if field.name == "context":
        return "as set, or what the model and the memory allow"
    if field.name == "threads" and facts.threads is not None:
        return f"{facts.threads} now · {field.otherwise}"
    if field.name == "system":
        return "none"
    if field.name == "draft" and facts.name:
        return f"{facts.draft or 'none'} now · {field.otherwise}"
    return field.otherwise or _written(default(field.name))


def problems(texts: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with which of ``texts``, in a sentence each."""
    found = {}
    for name, text in texts.items():
        try:
            _parse(name, text)
        except BadRequest as error:
            found[name] = _labelled(name, text, error.message)
    return found


def cautions(texts: Mapping[str, str], facts: ModelFacts) -> dict[str, str]:
    """What can be tried and may well disappoint, by field, in a sentence each."""
    try:
        context = _parse("context", texts.get("context", ""))
    except BadRequest:
        return {}
    if not isinstance(context, int):
        return {}
    if facts.max_context and context > facts.max_context:
        return {"context": f"By its plan, memory has room for {facts.max_context:,} tokens."}
    if facts.trained_context and context > facts.trained_context:
        trained = facts.trained_context
        return {"context": f"The model was trained for {trained:,} tokens; beyond them it answers worse."}
    return {}


def parameters(texts: Mapping[str, str]) -> Parameters:
    """The parameters that ``texts`` say. Raises ``BadRequest``."""
    values = {name: _parse(name, text) for name, text in texts.items()}
    for nested, kind in _NESTED.items():
        inner = {name: values.pop(name) for name in list(values) if name in kind.__struct_fields__}
        values[nested] = msgspec.structs.replace(kind(), **inner)
    return msgspec.structs.replace(Parameters(), **values)


def sampling_texts(sampling: Sampling) -> dict[str, str]:
    """``sampling`` as it is edited."""
    every = texts(Parameters(sampling=sampling))
    return {name: text for name, text in every.items() if name in Sampling.__struct_fields__}


def _value(parameters: Parameters, name: str) -> object:
    nested = next((nested for nested, kind in _NESTED.items() if name in kind.__struct_fields__), None)
    return getattr(getattr(parameters, nested) if nested else parameters, name)


def _written(value: object) -> str:
    match value:
        case str():
            return value
        case float():
            short = f"{value:.10g}"
            return short if float(short) == value else repr(value)
        case None:
            return ""
        case int():
            return str(value)
    return msgspec.json.encode(value).decode()


def _parse(name: str, text: str) -> object:
    if name == "system":
        check(GenerationRequest(messages=(Message(role="system", content=text),)))
        return text
    text = text.strip()
    if not text:
        return default(name)
    kind = _KINDS[name]
    try:
        if name in _JSON:
            value = decoding.json(text.encode("utf-8", "replace"), kind)
        else:
            plain = re.sub("[, ]", "", text) if _GROUPED.fullmatch(text) else text
            value = decoding.convert(plain, kind, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BadRequest(_refusal(name, text, error), "Correct it, or leave it empty.", param=name) from error
    _check(name, value)
    return value


def _check(name: str, value: Any) -> None:
    if name == "max_tokens":
        check(GenerationRequest(prompt="-", max_tokens=value))
    elif name == "kv_type" and value not in settings.KV_TYPES:
        raise BadRequest(f"There is no KV cache type “{value}”.", "Choose another.", param=name)
    elif name in Speculation.__struct_fields__:
        check(GenerationRequest(prompt="-", speculation=msgspec.structs.replace(Speculation(), **{name: value})))
    elif name in Sampling.__struct_fields__:
        sampling = msgspec.structs.replace(Sampling(), **{name: value})
        check(GenerationRequest(prompt="-", sampling=sampling))


def _labelled(name: str, text: str, message: str) -> str:
    """``message`` with the field's own label, and with what was typed where it names the value."""
    if not message.startswith(f"{name} "):
        return message
    label = next(field.label for field in FIELDS if field.name == name)
    said, found, _ = message.removeprefix(name).partition(", not ")
    return f"{label}{said}, not {_short(text.strip())}." if found else label + said


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _refusal(name: str, text: str, error: Exception) -> str:
    if name == "dry_sequence_breakers":
        return f"This is not a JSON list of texts: {error}."
    if name == "drafter":
        return f"Nothing drafts that is called “{_short(text)}”."
    if name == "logit_bias":
        return f"This is not JSON that gives token ids a number: {error}."
    if name in ("context", "threads"):
        return f"{name} must be a whole number of 1 or more, not {_short(text)}."
    whole = "a whole number" if "int" in str(_KINDS[name]) else "a number"
    return f"{name} must be {whole}, not {_short(text)}."
