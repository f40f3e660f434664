"""What a scripted backend says, and at what cost: the script, its query string, and the reply to one job."""

import random
from collections.abc import Iterator
from itertools import cycle
from typing import Annotated, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from backends.base import SequenceJob
from backends.scripted.device import CURVE_PATTERN
from localinfer import decoding
from localinfer.errors import BadRequest, LocalInferError

DEFAULT_TEXT = """\
A model that runs on **your own machine** answers without asking anybody.

1. The prompt is read in chunks: that is the *prefill*.
2. Then come the tokens, one pass at a time: `decode`.

你好世界。こんにちは、世界。안녕하세요. Ça va? 🙂🚀

```python
print("The same seed gives the same text.")
```
"""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Count = Annotated[int, msgspec.Meta(ge=0)]
CurveText = Annotated[str, msgspec.Meta(pattern=CURVE_PATTERN)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
ErrorName = Annotated[
    str, msgspec.Meta(pattern=f"^({'|'.join(cls.__name__ for cls in LocalInferError.__subclasses__())})$")
]


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What to say and what it costs.

    The answer is ``think`` in ``<think>`` tags, if there is any, then ``text``, then the end of the turn; a job that
    ignores the end hears ``text`` again and again. ``pace_s`` is the cost of a pass that decodes, ``prefill_s`` of each
    fresh prompt token, of which a pass takes up to ``chunk``; ``load_s`` is the cost of loading.

    With a ``curve`` the script runs on a simulated device, and what is drafted is chosen as on a real one: a pass over
    n rows costs ``pace_s`` times the curve, ``cpu``, ``gpu``, ``flat`` or points such as ``1:1,2:1.8,8:4.5``. Prompt
    lookup reads the real tokens; where ``draft_s`` is given, a simulated draft model takes so long for a token. Without
    a curve a pass costs the same whatever it computes, and ``draft`` tokens are drafted for each. ``acceptance`` is the
    chance that a token of either is right, by its position alone. What is said never depends on any of this.

    Faults: ``fail_load`` names the error that loading raises. Once so many tokens were sampled, all sequences together,
    the next pass aborts the process (``die_after``), never returns (``hang_after``) or raises ``OutOfMemory``
    (``oom_after``). ``context`` (tokens per slot) and ``slots`` take precedence over the load options.
    """

    text: Annotated[str, msgspec.Meta(min_length=1)] = DEFAULT_TEXT
    think: str = ""
    pace_s: Seconds = 0.0
    prefill_s: Seconds = 0.0
    chunk: Positive = 256
    load_s: Seconds = 0.0
    acceptance: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    draft: Count = 0
    curve: CurveText | None = None
    draft_s: Seconds | None = None
    fail_load: ErrorName | None = None
    die_after: Count | None = None
    hang_after: Count | None = None
    oom_after: Count | None = None
    context: Annotated[int, msgspec.Meta(ge=2)] | None = None
    slots: Positive | None = None


def parse_script(query: str) -> Script:
    """The script that a query string such as ``text=Hello%20world&pace_s=0.01`` describes; empty: all defaults.

    Raises ``BadRequest`` whose ``param`` is the offending key.
    """
    types = get_type_hints(Script, include_extras=True)
    values = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict") if query else []
    except ValueError as error:
        raise BadRequest(
            f"The script “{query}” is not a query string.", "Write key=value&key=value.", param="model"
        ) from error
    for key, value in pairs:
        if key not in types:
            raise BadRequest(f"A script has no “{key}”.", f"It has: {', '.join(types)}.", param=key)
        try:
            values[key] = decoding.convert(value, types[key], strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The script's “{key}” cannot be “{value}”.", f"{error}.", param=key) from error
    return Script(**values)


def reply(script: Script, job: SequenceJob, end: int) -> Iterator[int]:
    """The tokens of the answer, ``end`` included unless the job ignores it.

    Above temperature 0 each word is drawn by (seed, token index) alone, so what else runs cannot change it.
    """
    if script.think:
        yield from f"<think>\n{script.think}\n</think>\n\n".encode()
    text = script.text.encode()
    if job.sampling.temperature <= 0:
        yield from cycle(text) if job.ignore_eos else text
    else:
        seed = random.getrandbits(32) if job.sampling.seed is None else job.sampling.seed
        words = text.split() or [text]
        index = 0
        while job.ignore_eos or index < len(text):
            word = random.Random(f"{seed} {index}").choice(words) + b" "
            yield from word
            index += len(word)
    yield end
