"""``localinfer run``: one prompt, one answer on standard output, one line of figures on standard error."""

import json
import sys
from collections.abc import Sequence

from localinfer.cli import afterwards, console, figures
from localinfer.cli.loading import speculation
from localinfer.engines import Opened, open_engine
from localinfer.errors import BadRequest, LocalInferError
from localinfer.generation import MAX_CHARACTERS, check
from localinfer.models.catalog import catalog
from localinfer.types import Done, GenerationRequest, Loading, LoadOptions, Message, Reasoning, Sampling, Text


def run(
    words: Sequence[str],
    *,
    system: str | None,
    sampling: Sampling,
    max_tokens: int | None,
    options: LoadOptions,
    offline: bool,
    as_json: bool,
    stats: bool,
    force: bool = False,
    draft: str = "auto",
) -> None:
    """Answer one prompt. Raises ``LocalInferError``."""
    reference, prompt = _model_and_prompt(words, options.backend)
    messages = [Message(role="user", content=prompt)]
    if system:
        messages.insert(0, Message(role="system", content=system))
    request = GenerationRequest(
        messages=tuple(messages), sampling=sampling, max_tokens=max_tokens, speculation=speculation(draft)
    )
    check(request)  # before anything is fetched or loaded
    with (
        console.fetching(reference or catalog().starter.name) as progress,
        open_engine(reference, options, offline=offline, progress=progress, force=force, draft=draft) as engine,
    ):
        _stream(engine, request, as_json=as_json, stats=stats, asked=draft not in ("auto", "off"))


def _stream(engine: Opened, request: GenerationRequest, *, as_json: bool, stats: bool, asked: bool) -> None:
    loading = console.LoadLine()
    show_thoughts = sys.stderr.isatty()
    generation = engine.submit(request)
    last = "\n"
    thinking = False
    try:
        for event in generation:
            match event:
                case Loading():
                    loading.show(event.progress)
                case Text() if event.text:
                    loading.clear()
                    if thinking:
                        console.write_dim("\n\n")
                        thinking = False
                    console.write(event.text)
                    last = event.text
                case Reasoning() if event.text and show_thoughts:
                    loading.clear()
                    console.write_dim(event.text)
                    thinking = True
                case Done():
                    loading.clear()
                case _:
                    pass
    except (KeyboardInterrupt, LocalInferError):
        loading.clear()
        if not last.endswith("\n"):
            console.write("\n")
        raise
    if not last.endswith("\n"):
        console.write("\n")
    status = engine.status()
    for notice in afterwards.notices(status.model):
        console.styled_note(notice)
    line = afterwards.line(engine, generation.metrics, asked=asked)
    if as_json:
        console.write(json.dumps(figures.json_object(generation.metrics, status), ensure_ascii=False) + "\n")
    elif stats:
        console.styled_note(line)


def _model_and_prompt(words: Sequence[str], backend: str) -> tuple[str | None, str]:
    if len(words) > 2:
        raise BadRequest(
            f"There are {len(words)} arguments instead of a model and a prompt.",
            "Put the prompt in quotes: localinfer run “Why is the sky blue?”",
            param="prompt",
        )
    first, *rest = words
    piped = _piped()
    if rest:
        reference, prompt = first, rest[0]
    elif piped and (backend == "scripted" or first.endswith(".gguf") or catalog().get(first) is not None):
        reference, prompt = first, ""
    else:
        reference, prompt = None, first
    prompt = "\n\n".join(part for part in (prompt, piped) if part.strip())
    if not prompt:
        raise BadRequest(
            "The prompt is empty.", "Write what to answer: localinfer run “Why is the sky blue?”", param="prompt"
        )
    return reference, prompt


def _piped() -> str:
    """What is piped in, without the last newline; "" at a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    data = sys.stdin.buffer.read(MAX_CHARACTERS * 4 + 1)
    if len(data) > MAX_CHARACTERS * 4:
        raise BadRequest(
            f"Standard input is longer than {MAX_CHARACTERS * 4:,} bytes.", "No context holds so much.", param="prompt"
        )
    try:
        return data.decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"Standard input is not valid UTF-8: byte {data[error.start]:#04x} at position {error.start:,}.",
            "Convert it first, for example with “iconv -t utf-8”.",
            param="prompt",
        ) from error
