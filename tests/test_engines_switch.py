"""One engine takes the place of another: what is freed, what a failure leaves, how a load is stopped."""

import threading
from pathlib import Path

import msgspec
import pytest

from localinfer.advice import Advice
from localinfer.engines import Engines, Opened
from localinfer.errors import DoesNotFit, LocalInferError, ModelFileInvalid, Offline, WorkerDied
from localinfer.models.plan import HOST
from localinfer.models.progress import FetchProgress, Stopped, stoppable
from localinfer.types import Done, LoadOptions
from tests.engines import ask
from tests.models.conftest import hub
from tests.models.hub_server import HubServer
from tests.models.machines import GIB, cpu_only, cuda, machine
from tests.tiny_models import write_tiny_model

__all__ = ["hub"]

SCRIPTED = LoadOptions(backend="scripted", model="", name="")
LLAMA = LoadOptions(backend="llama.cpp", model="", name="", context=512, threads=1)


def reply(engine: Opened) -> str:
    events = list(engine.submit(ask(max_tokens=4)))
    assert isinstance(events[-1], Done)
    return engine.status().state


def on(gpu_gib: float | None) -> Advice:
    """Advice about a machine made up; its GPU is not there really."""
    advice = Advice(measure=False)
    advice.__dict__["machine"] = machine(32, cuda(gpu_gib)) if gpu_gib else cpu_only(32)
    return advice


def test_a_real_model_takes_the_place_of_a_scripted_one_and_back(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path, "llama")
    engines = Engines()
    try:
        assert engines.current is None
        first = engines.switch(engines.prepare("text=one", SCRIPTED))
        assert reply(first) == "ready"
        heard: list[float] = []

        second = engines.switch(engines.prepare(str(model), LLAMA), heard.append)

        assert engines.current is second
        assert first.status().state == "closed"
        assert reply(second) == "ready"
        assert second.options.context == 512
        assert engines.prospect is not None
        assert engines.prospect.name == "llama"
        assert engines.previous is not None
        third = engines.switch(engines.previous)
        assert second.status().state == "closed"
        assert reply(third) == "ready"
    finally:
        engines.close()
    assert engines.current is None
    assert third.status().state == "closed"


def test_a_prospect_says_what_it_frees(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path, "llama")
    engines = Engines()
    try:
        assert engines.frees == ""
        assert engines.freed == {}
        prospect = engines.prepare(str(model), LLAMA)
        assert prospect.frees == ""
        engine = engines.switch(prospect)
        assert engine.placing is not None
        plan = engine.placing.plan

        again = engines.prepare(str(model), LLAMA)

        assert again.frees.startswith("frees ")
        assert again.frees.endswith(" of llama")
        weights = sum(term.size_bytes for term in plan.terms if term.kind == "weights" and term.device == HOST)
        assert again.placing is not None
        freed = again.placing.plan.devices[-1].freed_bytes
        assert 0 < freed <= plan.devices[-1].needed_bytes - weights  # the file's pages count as free anyway
        assert freed <= 1.2 * (engine.status().rss_bytes or 0)
        assert again.placing.free_before_bytes is None  # another model lay there: nothing to learn from
    finally:
        engines.close()


def test_what_the_loaded_model_gives_back_decides_whether_the_next_one_fits(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path, "llama")
    big = msgspec.structs.replace(LLAMA, require_gpu=True)
    full = Engines(lambda: on(0.25))  # the card is full
    with pytest.raises(DoesNotFit):
        full.prepare(str(model), big)

    class Loaded(Engines):
        freed = {"CUDA0": 4 * GIB}  # noqa: RUF012  by the model that is loaded

    prospect = Loaded(lambda: on(0.25)).prepare(str(model), big)
    assert prospect.placing is not None
    assert prospect.placing.plan.verdict == "full"


def test_a_model_that_cannot_be_loaded_leaves_the_way_back(tmp_path: Path) -> None:
    model = write_tiny_model(tmp_path, "llama")
    engines = Engines()
    try:
        old = engines.switch(engines.prepare("text=one", SCRIPTED))
        prospect = engines.prepare(str(model), LLAMA)
        model.unlink()
        with pytest.raises(LocalInferError) as caught:
            engines.switch(prospect)
        assert "scripted was unloaded for it, and can be loaded again" in caught.value.hint
        assert engines.current is None
        assert old.status().state == "closed"
        assert engines.previous is not None
        assert reply(engines.switch(engines.previous)) == "ready"
    finally:
        engines.close()


def test_what_is_not_a_model_or_not_here_changes_nothing(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"<html>")
    engines = Engines()
    try:
        first = engines.switch(engines.prepare("text=one", SCRIPTED))
        with pytest.raises(ModelFileInvalid):
            engines.prepare(str(wrong), LLAMA)
        with pytest.raises(Offline):
            engines.prepare("qwen3-8b:Q4_K_M", LLAMA)
        assert engines.current is first
        assert reply(first) == "ready"
    finally:
        engines.close()


def test_a_load_can_be_stopped(tmp_path: Path) -> None:
    engines = Engines()
    try:
        cancelled = threading.Event()
        heard = threading.Event()

        def hear(fraction: float) -> None:
            heard.set()

        prospect = engines.prepare("load_s=30", SCRIPTED)
        failed: list[BaseException] = []

        def load() -> None:
            try:
                engines.switch(prospect, stoppable(hear, cancelled))
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=load)
        thread.start()
        assert heard.wait(20)
        cancelled.set()
        thread.join(20)
        assert not thread.is_alive()
        assert isinstance(failed[0], Stopped)
        assert engines.current is None
    finally:
        engines.close()


def test_closing_ends_a_load_that_is_under_way() -> None:
    engines = Engines()
    heard = threading.Event()
    failed: list[BaseException] = []

    def load() -> None:
        try:
            engines.switch(engines.prepare("load_s=30", SCRIPTED), lambda _: heard.set())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    assert heard.wait(20)
    engines.close()
    thread.join(20)
    assert not thread.is_alive()
    assert isinstance(failed[0], WorkerDied)
    with pytest.raises(WorkerDied):
        engines.switch(engines.prepare("text=late", SCRIPTED))


def test_a_fetch_can_be_stopped_and_taken_up_again(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    data = write_tiny_model(tmp_path, "llama").read_bytes()
    hub.offer("owner/tiny-GGUF", {"tiny-Q8_0.gguf": data})
    hub.hold_at = len(data) // 2
    engines, cancelled = Engines(), threading.Event()

    def report(progress: FetchProgress) -> None:
        if hub.held.is_set():
            cancelled.set()

    with pytest.raises(Stopped):
        engines.fetch("owner/tiny-GGUF:Q8_0", offline=False, progress=report, cancelled=cancelled)
    hub.go_on()

    ref = engines.fetch("owner/tiny-GGUF:Q8_0", offline=False, progress=lambda _: None, cancelled=threading.Event())

    assert ref.path.read_bytes() == data
    assert engines.prepare(ref, LLAMA).name == "owner/tiny-GGUF:Q8_0"
