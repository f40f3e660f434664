"""Every benchmark, one table.

    LOCALINFER_NATIVE_TOOLS=FOLDER uv run python -m tests.bench MODEL

Takes about an hour with a 0.5B model on two cores. Nothing else should run on the machine meanwhile.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench import concurrent, drawing, footprint, intrusion, screen, shared, single, turns
from tests.bench.common import Row, parser, table

BENCHMARKS: dict[str, Callable[[Path, int], list[Row]]] = {
    "single": single.measure,
    "single, busy": partial(single.measure, busy=True),
    "concurrent": concurrent.measure,
    "shared": shared.measure,
    "intrusion": intrusion.measure,
    "turns": turns.measure,
    "footprint": footprint.measure,
    "screen": lambda _model, _pairs: screen.measure(),
    "drawing": drawing.measure,
}


def main() -> None:
    given = parser(__doc__).parse_args()
    rows: list[Row] = []
    for name, measure in BENCHMARKS.items():
        print(name, file=sys.stderr, flush=True)
        rows += measure(given.model, given.pairs)
    print(table(rows))


if __name__ == "__main__":
    main()
