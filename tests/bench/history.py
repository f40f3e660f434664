"""Conversations by the hundred thousand: what a search, the list, a message and a growing reply take, and the memory.

    uv run python -m tests.bench.history [--conversations 100000] [--file FILE]

The conversations are made first, which takes some minutes and about 1 GB of disk; with ``--file`` they are kept there
and used again. Every query runs on connections that have read nothing yet, then three times more: both are shown.
"""

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from localinfer.history import index, rows
from localinfer.history.database import Database
from localinfer.history.store import History
from localinfer.history.values import Parameters

QUERIES = {
    "rare word": "zyxomma4711",
    "rare word, frequent word": "the zyxomma4711",
    "frequent word": "the",
    "two frequent words": "the of",
    "word in many titles": "how",
    "prefix of one letter": "s",
    "prefix of two letters": "co",
    "prefix of four letters": "comp",
    "frequent word, prefix": "the c",
    "phrase": '"of the"',
    "phrase that is rare": '"the zyxomma4711"',
    "two frequent words in the rarer order": '"of a the"',
    "one Chinese character": "世",
    "two Chinese characters": "世界",
    "Chinese phrase": "世界的语言",
    "nothing": "qqqqqqqq xxxxxxxx",
}
HEAD = "the of and to a in is it you that he was for on are with as his they at be this from i have or by one had not"
STEMS = "comp cont inter pre trans sub auto data serv func code path line text sort tree graph node list hash"
ENDS = "ute ain act ess form ject mate base ice tion r way s ual ed s ic al ing able"
CHINESE = (
    "世界的语言是人们在这里有中国一个我不了和他到说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事"
)
TURN_WORDS = (25, 130, 40, 110)  # of the four turns of a conversation


def vocabulary(random: np.random.Generator) -> list[str]:
    """Words, the most frequent first."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    made = ["".join(letters[random.geometric(0.12, random.integers(3, 10)) % 26]) for _ in range(20_000)]
    known = [stem + end for stem in STEMS.split() for end in ENDS.split()]
    return [*HEAD.split(), *known, *made]


def sentences(random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Sentences of ten words, English and Chinese."""
    words = np.array(vocabulary(random))
    picks = np.minimum(random.zipf(1.2, (30_000, 10)) - 1, len(words) - 1)
    english = [" ".join(words[row]).capitalize() + "." for row in picks]
    characters = np.array(list(CHINESE))
    chinese = ["".join(characters[row]) + "。" for row in random.zipf(1.3, (5_000, 14)) % len(CHINESE)]
    return english, chinese


def turns(count: int) -> Iterator[tuple[int, str]]:
    """``count`` conversations: their number and the text of a turn."""
    random = np.random.default_rng(7)
    english, chinese = sentences(random)
    for number in range(1, count + 1):
        source = chinese if number % 5 == 0 else english
        for words in TURN_WORDS:
            text = " ".join(source[pick] for pick in random.integers(0, len(source), words // 10 + 1))
            yield number, f"{text} zyxomma{number}" if words == TURN_WORDS[0] else text


def fill(path: Path, count: int) -> None:
    """Make the conversations."""
    database = Database(path)
    now = time.time() - count
    pending = turns(count)
    for start in range(1, count + 1, 2_000):
        with database.write() as db:
            for number in range(start, min(start + 2_000, count + 1)):
                _conversation(db, number, now + number, [next(pending)[1] for _ in TURN_WORDS])
    database.close()


def _conversation(db: "object", number: int, at_s: float, texts: list[str]) -> None:
    import sqlite3

    assert isinstance(db, sqlite3.Connection)
    title = f"How {texts[0][:50]}" if number % 3 == 0 else texts[0][:50]
    db.execute(
        "INSERT INTO conversations (id, title, created_s, changed_s, model, head, parameters) VALUES (?,?,?,?,?,?,?)",
        (number, title, at_s, at_s, "demo", number * 4, rows.encode(Parameters())),
    )
    index.put_title(db, number, title)
    for place, text in enumerate(texts):
        id = number * 4 - 3 + place
        db.execute(
            "INSERT INTO turns (id, conversation, parent, role, created_s, state, model, content, reasoning, "
            "attachments) VALUES (?, ?, ?, ?, ?, 'whole', '', ?, '', '[]')",
            (id, number, id - 1 if place else None, ("user", "assistant")[place % 2], at_s, text),
        )
        index.put_turn(db, id, text)


def timed_ms(call: Callable[[], object]) -> float:
    """How long ``call`` takes."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e3


def measure(path: Path) -> Iterator[tuple[str, float, float]]:
    """What was measured: first, and the median of three more, in milliseconds."""

    def row(name: str, call: Callable[[], object]) -> tuple[str, float, float]:
        first = timed_ms(call)
        return name, first, statistics.median(timed_ms(call) for _ in range(3))

    for name, query in QUERIES.items():
        with History(path) as history:
            found = len(history.search(query))
            history.close()
        with History(path) as history:
            yield row(f"search: {name} ({found} found)", lambda: history.search(query))  # noqa: B023  used at once
    with History(path) as history:
        yield row("the first 100 of the list", lambda: history.conversations(100))
        yield row("100 in the middle of the list", lambda: history.conversations(100, 50_000))
        conversation = history.start()
        yield row("a message", lambda: history.add(conversation.id, "user", "the of and " * 20, parent=None))
        reply = history.add(conversation.id, "assistant", "", parent=None, state="growing")
        yield row("a reply of 40 kB grows", lambda: history.grow(reply.id, "of the growing kind " * 2_000))
        yield row("a reply of 15 kB is finished", lambda: history.finish(reply.id, "of the finished kind " * 700))
        waits = [
            timed_ms(lambda: history.add(conversation.id, "user", "the of " * 40, parent=None)) for _ in range(500)
        ]
        yield "a message, the slowest of 500 (and the median)", max(waits), statistics.median(waits)
        history.delete(conversation.id)
    yield row("opening", lambda: History(path).close())


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--conversations", type=int, default=100_000)
    given.add_argument("--file", type=Path)
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "history.db"
        if not path.exists():
            started = time.perf_counter()
            fill(path, options.conversations)
            print(f"made in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        print(f"{path.stat().st_size / 1e6:,.0f} MB on disk\n")
        print(f"{'ms':<60} {'first':>8} {'again':>8}")
        for name, first, again in measure(path):
            print(f"{name:<60} {first:8.1f} {again:8.1f}", flush=True)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        print(f"\n{'most memory of this process, MB':<60} {peak / 1e6:8.0f}")


if __name__ == "__main__":
    main()
