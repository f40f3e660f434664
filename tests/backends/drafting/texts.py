"""Texts of token ids, of kinds that drafting is good, bad and treacherous for. A pair is a prompt and its answer."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from backends.drafting import PromptLookup

Pair = tuple[list[int], list[int]]
VOCABULARY = 20_000


def noise(chance: random.Random, count: int) -> Pair:
    """Nothing repeats but by chance."""
    tokens = [chance.randrange(2000) for _ in range(count + 200)]
    return tokens[:200], tokens[200:]


def repeating(chance: random.Random, count: int) -> Pair:
    """The same words again and again."""
    period = [chance.randrange(VOCABULARY) for _ in range(chance.randint(1, 40))]
    return [*period, 5, 6, 7], (period * (count // len(period) + 1))[:count]


def edit(chance: random.Random, count: int) -> Pair:
    """A text that is copied with a change every twenty tokens: replaced, put in, or left out."""
    source = _prose(chance, count, words=4000)
    copy: list[int] = []
    for token in source:
        luck = chance.random()
        if luck < 0.02:
            copy.append(chance.randrange(VOCABULARY))
        elif luck < 0.04:
            copy += [token, *(chance.randrange(VOCABULARY) for _ in range(chance.randint(1, 4)))]
        elif luck > 0.05:
            copy.append(token)
    copy += _prose(chance, max(0, count - len(copy)), words=4000)
    return [*source, 1, 2, 3], copy[:count]


def chat(chance: random.Random, count: int) -> Pair:
    """Words as frequent as in prose, with phrases that come back with another ending."""
    tokens = _prose(chance, count + 300, words=1500)
    phrases = [_prose(chance, chance.randint(2, 5), words=1500) for _ in range(30)]
    text: list[int] = []
    while len(text) < count + 300:
        text += tokens[len(text) : len(text) + chance.randint(3, 12)] or [0]
        text += chance.choice(phrases)
    return text[:300], text[300 : 300 + count]


def wrong(chance: random.Random, count: int) -> Pair:
    """It always looks as if it would repeat itself and never does."""
    prompt = [chance.randrange(8) for _ in range(60)]
    return prompt, _against(chance, prompt, count)


def turning(chance: random.Random, count: int) -> Pair:
    """A copy for a hundred tokens, then always wrong."""
    source = _prose(chance, 100, words=4000)
    prompt = [*source, *(chance.randrange(8) for _ in range(60)), 9]
    return prompt, [*source, *_against(chance, [*prompt, *source], count - 100)]


def alternating(chance: random.Random, count: int) -> Pair:
    """By turns a copy and always wrong, forty tokens each."""
    prompt = _prose(chance, 600, words=4000)
    answer: list[int] = []
    while len(answer) < count:
        start = chance.randrange(500)
        answer += prompt[start : start + 40]
        answer += _against(chance, [*prompt, *answer], 40)
    return prompt, answer[:count]


TEXTS: Mapping[str, Callable[[random.Random, int], Pair]] = {
    "noise": noise,
    "repeating": repeating,
    "edit": edit,
    "chat": chat,
    "wrong": wrong,
    "turning": turning,
    "alternating": alternating,
}


def right_drafts(prompt: Sequence[int], answer: Sequence[int], most: int) -> list[int]:
    """Of each token of the answer but the first, how many of the tokens drafted in its place are right."""
    lookup = PromptLookup()
    lookup.begin(0, [*prompt, answer[0]], (), 0)
    counts = []
    for place in range(1, len(answer)):
        found = lookup.draft({0: range(most)})
        tokens = found[0].tokens if found else ()
        coming = answer[place:]
        counts.append(next((n for n, (a, b) in enumerate(zip(tokens, coming, strict=False)) if a != b), len(tokens)))
        lookup.extend(0, [answer[place]])
    return counts


def _prose(chance: random.Random, count: int, *, words: int) -> list[int]:
    """Words by Zipf's law."""
    return [min(int(words ** chance.random()), words) * 7 % VOCABULARY for _ in range(count)]


def _against(chance: random.Random, before: Sequence[int], count: int) -> list[int]:
    """Tokens that lookup is always wrong about, of pairs that occurred before wherever possible."""
    lookup = PromptLookup()
    lookup.begin(0, before, (), 0)
    followers: dict[int, set[int]] = {}
    for first, second in pairwise(before):
        followers.setdefault(first, set()).add(second)
    said = []
    last = before[-1]
    for _ in range(count):
        found = lookup.draft({0: range(1)})
        foreseen = found[0].tokens[0] if found else -1
        token = chance.choice(sorted(followers.get(last, set()) - {foreseen}) or [(foreseen + 1) % 8])
        followers.setdefault(last, set()).add(token)
        lookup.extend(0, [token])
        said.append(token)
        last = token
    return said


def endless(tokens: Sequence[int]) -> Iterator[int]:
    """The tokens, then ids that occur nowhere else."""
    yield from tokens
    yield from range(VOCABULARY, VOCABULARY * 2)
