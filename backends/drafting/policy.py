"""How many drafted tokens each sequence has checked in the next pass.

A pass that checks k drafted tokens of a sequence yields the k' of them that turn out right, and one token more, which
the model says itself. With ``survival[j]`` the probability that the first j + 1 are right, it yields on average

    E(k) = 1 + survival[0] + ... + survival[k - 1]   tokens

and takes C(k) seconds, as measured on this device for that many rows (``costs``), the drafting included. Time saved is
worth more tokens the faster tokens come, so with r the tokens per second reached lately (never below those of plain
decoding) the best lengths are those that maximise

    Σ E_i(k_i) − r · C(k_1, k_2, ...)

over all sequences of the pass at once: the condition for the highest tokens per second over many passes (Dinkelbach
1967; a pass alone would stop too early where drafts are good). k = 0 is a choice like the others and costs a plain
pass, so drafting ends by itself where it does not pay; a draft has to promise a little more than nothing, because what
is estimated is never exact. Where C has a step, the argmax goes up to its edge: those rows are free.
"""

from collections.abc import Callable, Sequence

from backends.drafting.drafts import Draft

# Of several sequences those that draft do so with one length, because backends compute equal lengths together.
LENGTHS = (1, 2, 3, 4, 5, 7, 9, 12, 15, 20, 31, 47, 63)
MARGIN = 0.03  # tokens


def best_length(
    survival: Sequence[float],
    curve_s: Sequence[float],
    rate: float,
    limit_s: float,
    *,
    extra_s: float = 0.0,
    fixed_s: float = 0.0,
) -> int:
    """The drafted tokens to check of the only sequence of a pass.

    ``curve_s[n]`` are the seconds of a pass over n rows, none of which may take longer than ``limit_s``; ``rate`` is
    tokens per second; ``extra_s`` is what each drafted token takes besides, ``fixed_s`` what drafting at all does.
    """
    best, length = MARGIN - rate * curve_s[1], 0
    expected = 0.0
    for count, alive in enumerate(survival[: len(curve_s) - 2], 1):
        if curve_s[count + 1] > limit_s:
            break
        expected += alive
        value = expected - rate * (curve_s[count + 1] + extra_s * count + fixed_s)
        if value > best:
            best, length = value, count
    return length


def best_lengths(
    drafts: Sequence[Draft],
    seconds: Callable[[Sequence[int]], float],
    rate: float,
    limit_s: float,
    *,
    rows: int,
) -> list[int]:
    """The drafted tokens to check of each sequence of a pass, ``rows`` in all at most.

    ``seconds`` are those of a pass with such lengths, at most ``limit_s``; ``rate`` is tokens per second of all
    sequences together.
    """
    none = [0] * len(drafts)
    best, lengths = MARGIN - rate * seconds(none), none
    longest = max((len(draft.tokens) for draft in drafts), default=0)
    for length in LENGTHS:
        if length > longest:
            break
        worth = [sum(draft.survival[:length]) for draft in drafts]
        chosen = none
        # The surest first; whoever is added must be worth the rows it adds.
        for index in sorted(range(len(drafts)), key=worth.__getitem__, reverse=True):
            tried = list(chosen)
            tried[index] = min(length, len(drafts[index].tokens))
            if not tried[index] or sum(tried) > rows:
                continue
            spent_s = seconds(tried)
            if spent_s > limit_s:
                break
            chosen = tried
            value = sum(worth[other] for other in range(len(drafts)) if tried[other]) - rate * spent_s
            if value > best:
                best, lengths = value, tried
    return lengths


def prices(curve_s: Sequence[float], rate: float, token_s: float, most: int) -> list[float]:
    """The survival from which each further token is worth drafting and checking, for drafters whose tokens cost
    ``token_s`` each: r · (token + C(k + 1) − C(k))."""
    most = min(most, len(curve_s) - 2)
    return [rate * (token_s + max(0.0, curve_s[k + 2] - curve_s[k + 1])) for k in range(most)]
