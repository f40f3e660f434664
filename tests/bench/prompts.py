"""Prompts of a known length that no cache has seen: each seed gives another one, the same on every machine."""

import random

from tests.bench.clients import Job

FIRST_ID, LAST_ID = 1_000, 30_000  # ordinary tokens in every vocabulary in use, clear of control tokens at either end
WORDS = """\
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work number night point home water room mother area money story fact
month lot right study book eye job word business issue side kind head house service friend father
"""


def token_ids(count: int, seed: str) -> tuple[int, ...]:
    """``count`` random ordinary token ids."""
    return tuple(random.Random(seed).choices(range(FIRST_ID, LAST_ID), k=count))


def words(count: int, seed: str) -> str:
    """``count`` random common words: about one token each in any vocabulary."""
    return " ".join(random.Random(seed).choices(WORDS.split(), k=count))


WARM_UP = Job(token_ids(64, "warm-up"), 8)
