"""Asking the installed build of llama.cpp what it is and sees, in a child that may die of it.

A build that can use no GPU says the same until it is replaced: its answer is kept.
"""

import contextlib
import hashlib
import tempfile
import threading
from pathlib import Path

from localinfer import kept, settings
from localinfer.errors import BackendUnavailable
from localinfer.machine import Build
from localinfer.models.oracle import library_identity
from localinfer.process import Child

PROBE = "backends.llama_cpp.probe"
PROBE_TIMEOUT_S = 60.0


def known_build() -> Build:
    """As ``probe``, from memory where that is as good."""
    name = hashlib.sha256("\n".join(library_identity()).encode()).hexdigest()[:20]
    place = settings.state_dir() / f"build-{name}.json"
    known = kept.load(place, Build, None)
    if known is not None:
        return known
    build = probe()
    if not build.gpu_offload:
        for old in place.parent.glob("build-*.json"):
            with contextlib.suppress(OSError):
                old.unlink(missing_ok=True)
        kept.save(place, build)
    return build


def probe() -> Build:
    """Ask the build. Raises ``BackendUnavailable``, ``StorageUnavailable``."""
    late = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        child: Child[Build] = Child(PROBE, Build, Path(folder) / "probe.log")

        def give_up() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(PROBE_TIMEOUT_S, give_up)
        timer.start()
        try:
            build = next(child.reports(), None)
            death = child.death()
        finally:
            timer.cancel()
            child.kill()
    if build is not None:
        return build
    if late.is_set():
        raise BackendUnavailable(
            f"llama.cpp did not answer within {PROBE_TIMEOUT_S:.0f} s.",
            "A GPU driver may hang: restart the machine. If that does not help, install llama.cpp again:",
        )
    last = death.log_tail[-1] if death.log_tail else ""
    reason = last.partition("BackendUnavailable: ")[2] or f"{death.cause}. {last}".strip()
    raise BackendUnavailable(f"llama.cpp cannot be used: {reason}", "Install it again:")
