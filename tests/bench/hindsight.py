"""What prompt lookup could have gained at most: the policy that knows the text beforehand.

With the costs C(n) of a pass over n rows, and a_t the number of tokens of the lookup's draft after t tokens that the
text goes on with, the least time from there to the end of n tokens is

    V(t) = min over k of C(1 + k) + V(t + 1 + min(k, a_t)),   V(t) = 0 for t ≥ n

over draft lengths k. No longer draft than a_t can be the best one unless a step of C makes more rows cheaper.
"""

from collections.abc import Sequence

import msgspec

from backends.drafting import PromptLookup


class Best(msgspec.Struct, frozen=True):
    """The cheapest passes that yield a text: how long they take, and the tokens drafted for each."""

    seconds: float
    lengths: tuple[int, ...]


def agreeing(prompt: Sequence[int], text: Sequence[int], most: int) -> list[int]:
    """For each place of ``text`` after its first token: how many of the tokens that prompt lookup drafts there, at most
    ``most``, are those of the text."""
    lookup = PromptLookup()
    lookup.begin(0, [*prompt, text[0]], (), 0)
    agree = []
    for place in range(1, len(text)):
        draft = lookup.draft({0: [0.0] * most}).get(0)
        coming = text[place:]
        drafted = draft.tokens[: len(coming)] if draft else ()
        wrong = (index for index, token in enumerate(drafted) if token != coming[index])
        agree.append(next(wrong, len(drafted)))
        lookup.extend(0, [text[place]])
    return agree


def best(curve_s: Sequence[float], agree: Sequence[int]) -> Best:
    """The best with hindsight: ``curve_s[n]`` are the seconds of a pass over n rows, ``agree`` is a_t."""
    count = len(agree)
    least = [0.0] * (count + 1)
    chosen = [0] * count
    for place in range(count - 1, -1, -1):
        options = (
            (curve_s[1 + length] + least[min(count, place + 1 + min(length, agree[place]))], length)
            for length in range(len(curve_s) - 1)
        )
        least[place], chosen[place] = min(options)
    place = 0
    lengths = []
    while place < count:
        lengths.append(chosen[place])
        place += 1 + min(chosen[place], agree[place])
    return Best(least[0], tuple(lengths))
