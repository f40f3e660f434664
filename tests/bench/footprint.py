"""What localinfer itself costs: start, first token from the command line, CPU of the application, memory of the worker.

    uv run python -m tests.bench.footprint MODEL

The starter model is fetched by the first ``localinfer run`` where it is missing. Memory is read from ``/proc`` (Linux).
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.clients import Job, generate
from tests.bench.common import Row, at_most, parser, table
from tests.bench.native import llama_server
from tests.bench.ours import Ours, worker
from tests.bench.prompts import token_ids

LOCALINFER = Path(sys.executable).with_name("localinfer")
RUN = ("run", "--max-tokens", "1", "--no-stats", "hi")
HELPS, RUNS = 10, 5
CONTEXT, PROMPT, OUTPUT = 4096, 2_000, 256
MB = 1_000_000
OVERHEAD_MB = 250
HELP_S, FIRST_TOKEN_S, CPU_MS = at_most(0.3), at_most(1.5), at_most(0.2)


def help_s() -> float:
    """Wall time of ``localinfer --help``."""
    started = time.perf_counter()
    subprocess.run([LOCALINFER, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def run_s() -> tuple[float, float]:
    """``localinfer run`` with the starter model, from process start: the first byte of the answer, and the end."""
    started = time.perf_counter()
    with subprocess.Popen([LOCALINFER, *RUN], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        os.read(process.stdout.fileno(), 1)
        first = time.perf_counter() - started
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"localinfer run ended with exit code {process.returncode}")
    return first, time.perf_counter() - started


def cpu_ms_per_token(side: Ours, pair: int) -> float:
    """CPU time of this process, which is the application, for each token that the worker generates."""
    before = time.process_time()
    trace = generate(side, Job(token_ids(64, f"cpu {pair}"), OUTPUT))
    return (time.process_time() - before) * 1e3 / trace.tokens


def resident_bytes(pid: int) -> int:
    """Anonymous and file-backed resident memory of a process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))


def measure(model: Path, pairs: int) -> list[Row]:
    """Start, first token, CPU per token, memory."""
    helps = tuple(help_s() for _ in range(HELPS))
    run_s()  # fetches the model where it is missing
    firsts, walls = zip(*(run_s() for _ in range(RUNS)), strict=True)
    work = Job(token_ids(PROMPT, "memory"), OUTPUT)
    with worker(model, slots=1, context=CONTEXT) as side:
        cpu = tuple(cpu_ms_per_token(side, pair) for pair in range(pairs))
        generate(side, work)
        memory = resident_bytes(side.pid) / MB
        needed = (side.info.weights_bytes + side.info.kv_bytes) / MB
    with llama_server(model, slots=1, context=CONTEXT) as server:
        generate(server, work)
        peer_memory = resident_bytes(server.pid) / MB
    return [
        Row("localinfer --help, s", HELP_S, helps),
        Row("localinfer run: process start to first byte, s", FIRST_TOKEN_S, firsts),
        Row("localinfer run: process start to end, s", None, walls),
        Row("CPU of the application, ms per token", CPU_MS, cpu),
        Row(
            f"worker memory, MB (weights and KV cache: {needed:,.0f})",
            at_most(round(needed + OVERHEAD_MB)),
            (memory,),
            (peer_memory,),
        ),
    ]


def main() -> None:
    given = parser(__doc__).parse_args()
    print(table(measure(given.model, given.pairs)))


if __name__ == "__main__":
    main()
