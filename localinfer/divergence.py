"""How far one model's predictions are from a text, and from another model's: the formulas, on arrays.

It knows logits and token ids, and nothing of models or files. All logarithms are natural.

    log-probability    ln p(t) = z_t − ln Σ_v exp z_v                    (z: the logits of one position)
    perplexity         exp(−mean ln p(next token)), standard error: perplexity × deviation ÷ √(n − 1)
    KL divergence      KL(A‖B) = Σ_v p_A(v) · (ln p_A(v) − ln p_B(v)), of one position
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from localinfer.types import Value

Floats = npt.NDArray[np.float32]


class Perplexity(Value, frozen=True):
    """Perplexity of a text and its standard error."""

    value: float
    error: float


class Divergence(Value, frozen=True):
    """KL divergence over the positions of a text, in nats, and the share of positions with the same likeliest token."""

    mean: float
    p50: float
    p90: float
    p99: float
    largest: float
    same_top: float


def log_probabilities(logits: Floats) -> Floats:
    """Log-probability of every token at one position; shape (n_vocab,) both."""
    shifted: Floats = logits - logits.max()
    return shifted - np.float32(math.log(float(np.exp(shifted).sum(dtype=np.float64))))


def kl(reference: Floats, other: Floats) -> float:
    """KL(reference‖other) of one position, from log-probabilities. A token that has no chance in the reference counts
    nothing."""
    weight = np.exp(reference)
    with np.errstate(invalid="ignore"):  # infinity less infinity, where the weight is 0
        terms = weight * (reference - other)
    return max(0.0, float(terms[weight > 0].sum(dtype=np.float64)))


def perplexity(losses: Sequence[float]) -> Perplexity:
    """Of the negative log-probabilities of all scored tokens, at least two."""
    array = np.asarray(losses, np.float64)
    value = math.exp(float(array.mean()))
    return Perplexity(value=value, error=value * float(array.std()) / math.sqrt(len(array) - 1))


def divergence(kls: Sequence[float], same: Sequence[bool]) -> Divergence:
    """Over all scored positions; percentiles are interpolated."""
    array = np.asarray(kls, np.float64)
    p50, p90, p99 = (float(value) for value in np.percentile(array, (50, 90, 99)))
    return Divergence(
        mean=float(array.mean()),
        p50=p50,
        p90=p90,
        p99=p99,
        largest=float(array.max()),
        same_top=float(np.mean(same)),
    )
