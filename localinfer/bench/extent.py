"""How much is measured: what a person waits for, against how sure the figures are."""

from typing import Literal

from localinfer.types import Value


class Extent(Value, frozen=True):
    """``shapes`` are pairs of prompt and answer tokens; each is measured up to ``rounds`` times, the rounds taking
    turns so that a drift of the machine meets all of them alike. After two rounds, no further one is begun when a part
    has taken ``part_s``. A shape whose repetition would take longer than ``longest_s`` is left out.

    In a round of a level each client has ``per_client`` requests (at least ``least_requests`` together) of up to
    ``answer_tokens``. ``drafted_prompts`` of each workload run with every drafter, ``drafted_tokens`` each.
    """

    name: Literal["quick", "usual", "full"]
    shapes: tuple[tuple[int, int], ...]
    rounds: int
    part_s: float
    longest_s: float
    per_client: int
    least_requests: int
    answer_tokens: int
    drafted_prompts: int
    drafted_tokens: int

    @property
    def longest_shape(self) -> int:
        """Tokens of the longest shape, prompt and answer."""
        return max(isl + osl for isl, osl in self.shapes)


QUICK = Extent(
    name="quick",
    shapes=((128, 32), (512, 32)),
    rounds=3,
    part_s=6.0,
    longest_s=10.0,
    per_client=1,
    least_requests=4,
    answer_tokens=32,
    drafted_prompts=1,
    drafted_tokens=64,
)
USUAL = Extent(
    name="usual",
    shapes=((128, 128), (512, 128), (2048, 128)),
    rounds=5,
    part_s=40.0,
    longest_s=60.0,
    per_client=2,
    least_requests=4,
    answer_tokens=64,
    drafted_prompts=2,
    drafted_tokens=128,
)
FULL = Extent(
    name="full",
    shapes=((128, 128), (512, 256), (2048, 256), (4096, 256), (8192, 256)),
    rounds=10,
    part_s=600.0,
    longest_s=600.0,
    per_client=4,
    least_requests=12,
    answer_tokens=256,
    drafted_prompts=6,
    drafted_tokens=256,
)
