"""What is asked of the child that scores a text with a model, and what it answers.

Values only. A text is cut into chunks of ``context`` tokens. Of each the first half is context alone, and the rest, the
last token excepted, predict the next: those positions are scored, as llama.cpp's own perplexity tool does.
"""

from localinfer.types import Fault, LoadOptions, Value


class ReadText(Value, frozen=True, tag=True):
    """Ask: the tokens of ``text``, by the vocabulary of the model at ``path``, whose weights are not loaded."""

    path: str
    parts: tuple[str, ...]
    text: str


class TextRead(Value, frozen=True, tag=True):
    """Answer. ``vocabulary`` is a digest of the texts of all tokens; two models may be compared if it is equal.
    ``vocabulary_size`` counts them. A begin-of-sequence token is first in ``tokens`` if the model wants one."""

    vocabulary: str
    vocabulary_size: int
    tokens: tuple[int, ...]


class ScoreText(Value, frozen=True, tag=True):
    """Ask: score ``tokens``, whole chunks of ``context``. ``file`` holds log-probabilities as 32-bit floats, a row of
    the vocabulary for each scored position: the ``reference`` model fills it, others are held against it. ``timed``:
    measure the speed too."""

    options: LoadOptions
    tokens: tuple[int, ...]
    context: int
    file: str
    reference: bool = False
    timed: bool = False


class ChunkScored(Value, frozen=True, tag=True):
    """Answer, for each chunk: of each scored position the negative log-probability of the next token, and against the
    reference its KL divergence and whether the likeliest token is the same."""

    losses: tuple[float, ...]
    kls: tuple[float, ...] = ()
    same_top: tuple[bool, ...] = ()


class TextScored(Value, frozen=True, tag=True):
    """Answer, after the last chunk. ``prefill_tps`` is of one prompt as long as a chunk, at most 512 tokens,
    ``decode_tps`` of tokens after it."""

    description: str
    quantization: str
    placement: str
    threads: int
    prefill_tps: float | None = None
    decode_tps: float | None = None


class Unscored(Value, frozen=True, tag=True):
    """Answer: why it was not done."""

    error: Fault


Ask = ReadText | ScoreText
Answer = TextRead | ChunkScored | TextScored | Unscored


def scored(context: int) -> range:
    """The positions of a chunk whose next token is scored."""
    return range(context // 2, context - 1)
