"""The second turn of a chat, against llama-server.

    uv run python -m tests.bench.turns MODEL

The first turn has about 2,000 tokens. What the second turn costs until its first token is compared with what the same
conversation costs an engine that has not seen it.
"""

from pathlib import Path

import msgspec

from localinfer.types import Message
from tests.bench.clients import Job, Side, generate
from tests.bench.common import Row, at_most, compare, parser, row, table
from tests.bench.prompts import words

CONTEXT = 4096
FIRST, REPLY, SECOND = 2_000, 32, 12
SHARE = at_most(0.1)


class Turns(msgspec.Struct, frozen=True):
    """TTFT of a conversation of two turns, unseen and continued, and the tokens prefilled to continue it."""

    cold_s: float
    second_s: float
    fresh_tokens: int

    @property
    def share(self) -> float:
        """Second turn ÷ cold."""
        return self.second_s / self.cold_s


def converse(side: Side, pair: int) -> Turns:
    """A whole conversation that nobody has seen, then another one turn by turn."""
    cold = generate(side, Job(conversation(f"{pair} cold", reply=words(REPLY, "reply")), 1))
    first = generate(side, Job(conversation(f"{pair} warm"), REPLY))
    second = generate(side, Job(conversation(f"{pair} warm", reply=first.text), 1))
    return Turns(cold.ttft_s, second.ttft_s, second.fresh_tokens)


def conversation(seed: str, *, reply: str | None = None) -> tuple[Message, ...]:
    """The first question and, after a reply, the second."""
    first = Message(role="user", content=words(FIRST, seed))
    if reply is None:
        return (first,)
    return first, Message(role="assistant", content=reply), Message(role="user", content=words(SECOND, f"{seed} 2"))


def measure(model: Path, pairs: int) -> list[Row]:
    """TTFT of the second turn, also as a share of the cold one."""
    taken = compare(model, converse, slots=1, context=CONTEXT, pairs=pairs)
    head = f"second turn after {FIRST:,} tokens"
    return [
        row(f"{head}: TTFT ÷ cold", SHARE, taken, lambda turns: turns.share),
        row(f"{head}: TTFT, s", None, taken, lambda turns: turns.second_s),
        row(f"{head}: fresh prompt tokens", None, taken, lambda turns: turns.fresh_tokens),
    ]


def main() -> None:
    given = parser(__doc__).parse_args()
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
