"""How many drafted tokens each sequence has checked in the next pass.

A pass that checks k drafted tokens of a sequence yields the k' of them that turn out right, and one token more, which
the model says itself. With ``survival[j]`` the probability that the first j + 1 are right, it yields on average

    E(k) = 1 + survival[0] + ... + survival[k - 1]   tokens

and takes C(k) seconds, as measured on this device for that many rows (``costs``), the drafting included. Chosen are the
lengths that maximise the expected tokens per second,

    Σ E_i(k_i) / C(k_1, k_2, ...)

over all sequences of the pass at once. k = 0 is a choice like the others and costs a plain pass, so drafting ends by
itself where it does not pay; a draft has to promise a little more than nothing, because what is estimated is never
exact. Where C has a step, the best length goes up to its edge: those rows are free.

A token that costs time to draft too is worth it as long as it can raise that quotient: with r the quotient of the
lengths expected beforehand, while its survival is at least r times what it and those after it take on average to draft
and check, up to the length at which that is least (where C has a step, a token alone may not pay and a few do).
"""

from collections.abc import Callable, Sequence

import msgspec

from backends.drafting.drafts import Draft

# Of several sequences those that draft do so with one length, because backends compute equal lengths together.
LENGTHS = (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 31, 47, 63)
MARGIN = 0.02  # of the speed of a plain pass
MARGIN_TOGETHER = 0.25  # the same for several sequences: what their passes take is known less well


class Choice(msgspec.Struct, frozen=True):
    """Drafted tokens to check of each sequence, and the tokens per second that they are expected to yield."""

    lengths: Sequence[int]
    rate: float


def best_length(
    survival: Sequence[float],
    curve_s: Sequence[float],
    limit_s: float,
    *,
    extra_s: float = 0.0,
    fixed_s: float = 0.0,
    others: int = 0,
) -> Choice:
    """The drafted tokens to check of one sequence of a pass, ``others`` having none.

    ``curve_s[n]`` are the seconds of a pass with n rows of it. ``extra_s`` is what each drafted token takes besides,
    ``fixed_s`` what drafting at all does; all together may not take longer than ``limit_s``.
    """
    plain = (1 + others) / curve_s[1]
    best, length = (1 + MARGIN) * plain, 0
    expected = 1.0 + others
    for count, alive in enumerate(survival[: len(curve_s) - 2], 1):
        spent_s = curve_s[count + 1] + extra_s * count + fixed_s
        if spent_s > limit_s:
            break
        expected += alive
        if expected / spent_s > best:
            best, length = expected / spent_s, count
    return Choice((length,), best if length else plain)


def best_lengths(
    drafts: Sequence[Draft],
    seconds: Callable[[Sequence[int]], float],
    limit_s: float,
    *,
    rows: int,
) -> Choice:
    """The drafted tokens to check of each sequence of a pass, ``rows`` in all at most.

    ``seconds`` are those of a pass with such lengths, at most ``limit_s``.
    """
    sequences = len(drafts)
    lengths = [0] * sequences
    plain = sequences / seconds(lengths)
    best = (1 + MARGIN_TOGETHER) * plain
    longest = max((len(draft.tokens) for draft in drafts), default=0)
    for length in LENGTHS:
        if length > longest:
            break
        worth = [sum(draft.survival[:length]) for draft in drafts]
        tried = [0] * sequences
        expected = float(sequences)
        # The surest first, and nobody whose tokens would hardly come.
        for index in sorted(range(sequences), key=worth.__getitem__, reverse=True):
            count = min(length, len(drafts[index].tokens))
            if not count or sum(tried) + count > rows:
                continue
            tried[index] = count
            expected += worth[index]
            spent_s = seconds(tried)
            if spent_s > limit_s:
                break
            if expected / spent_s > best:
                best, lengths = expected / spent_s, list(tried)
    return Choice(lengths, best if any(lengths) else plain)


def prices(curve_s: Sequence[float], rate: float, token_s: float, most: int) -> list[float]:
    """The survival from which each further token is worth drafting and checking, for drafters whose tokens cost
    ``token_s`` each: of token k, the least r · (token + (C(j) − C(k)) / (j − k)) over all j > k."""
    checks = curve_s[1 : min(most, len(curve_s) - 2) + 2]
    steepness = [
        min((after - before) / count for count, after in enumerate(checks[index + 1 :], 1))
        for index, before in enumerate(checks[:-1])
    ]
    return [rate * (token_s + max(0.0, each)) for each in steepness]
