"""Runs the scripted backend on a simulated device, in no time, and says what speculation won against plain decoding.

What is scored is work: what passes cost on the device's curve, without the noise and the drifts that the policy sees.
"""

import random
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from backends.base import DraftingChanged, Sampled, SequenceJob
from backends.drafting import PassCosts
from backends.scripted import Script, ScriptedBackend
from backends.scripted.device import Device
from localinfer.types import LoadOptions, Sampling, Speculation
from tests.backends.drafting.texts import Pair, endless

PACE_S = 0.02
FIRST = 64  # tokens after which nothing may be lost
CURVES = {
    "0.5B on two cores": "cpu",
    "1.5B on two cores": "1:1,2:1.7,3:2.3,4:2.8,6:4.1,8:6.3,12:8.5,16:8,32:12.5",
    "135M on two cores": "1:1,2:1.73,3:2.19,4:2.65,6:3.83,8:4.46,12:6.31,16:8.16,32:15.9",
    "card": "gpu",
    "flat": "flat",
    "stepped": "1:1,4:1.1,5:2,8:2.1,9:3.2,16:3.4,17:6,32:6.5,33:12,64:13",
    "a row costs a pass": "1:1,2:2",
}


class VirtualClock:
    """Time passes as it is spent, ``noise`` more or less of it at random, ``drift(seconds)`` times as slowly."""

    def __init__(self, noise: float = 0.0, drift: Callable[[float], float] = lambda _: 1.0, seed: int = 0) -> None:
        self._now = 0.0
        self.work_s = 0.0
        self._noise = noise
        self._drift = drift
        self._chance = random.Random(seed)

    def now(self) -> float:
        return self._now

    def spend(self, seconds: float) -> None:
        self.work_s += seconds
        self._now += seconds * self._drift(self.work_s) * (1 + self._noise * self._chance.uniform(-1, 1))


class Outcome(msgspec.Struct, frozen=True):
    """``gain`` is speed ÷ plain speed, ``later`` the same after the first tokens; ``drafts`` has (tokens said before
    it, drafted, accepted) of each draft of the first sequence, ``news`` (tokens said before it, why nothing is
    drafted)."""

    gain: float
    later: float
    drafts: Sequence[tuple[int, int, int]]
    news: Sequence[tuple[int, str]]


def simulate(
    pairs: Sequence[Pair],
    curve: str,
    *,
    drafter: Literal["auto", "lookup", "model"] = "lookup",
    draft: float | None = None,
    acceptance: float = 0.0,
    clock: VirtualClock | None = None,
    costs: PassCosts | None = None,
) -> Outcome:
    """Say the answers of ``pairs`` at the same time. ``draft`` is what a drafted token takes, in plain passes."""
    clock = clock or VirtualClock()
    script = Script(
        pace_s=PACE_S, curve=curve, draft_s=None if draft is None else draft * PACE_S, acceptance=acceptance
    )
    options = LoadOptions(backend="scripted", model="", name="", slots=len(pairs))
    device = Device(PACE_S, curve, clock)
    backend = ScriptedBackend(script, options, clock=clock, say=lambda job: endless(pairs[job.id][1]), costs=costs)
    for number, (prompt, answer) in enumerate(pairs):
        backend.submit(
            SequenceJob(
                id=number,
                tokens=prompt,
                sampling=Sampling(temperature=0),
                max_tokens=len(answer),
                ignore_eos=True,
                speculation=Speculation(drafter=drafter),
            )
        )
    said = [[] for _ in pairs]  # type: list[list[int]]
    drafts, news = [], []
    plain_s = spent_s = early_plain_s = early_s = 0.0
    count = 0
    while events := backend.step():
        sampled = [event for event in events if isinstance(event, Sampled)]
        tokens = sum(len(event.tokens) for event in sampled)
        news += [(len(said[0]), event.off) for event in events if isinstance(event, DraftingChanged) and not event.id]
        drafts += [(len(said[0]), event.drafted, event.accepted) for event in sampled if event.drafted and not event.id]
        for event in sampled:
            said[event.id] += event.tokens
        if not all(said) or not clock.work_s:  # somebody reads its prompt
            begun_s = clock.work_s
            continue
        work_s = clock.work_s - begun_s
        begun_s = clock.work_s
        plain_s += device.seconds(len(sampled)) * tokens / len(sampled)
        spent_s += work_s
        count += tokens
        if count < FIRST * len(pairs):
            early_plain_s, early_s = plain_s, spent_s
    assert said == [answer for _, answer in pairs]
    later = (plain_s - early_plain_s) / (spent_s - early_s)
    return Outcome(plain_s / spent_s, later, drafts, news)
