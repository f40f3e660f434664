"""Quantizing real models with the real library, and all that must leave no file behind."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from gguf import GGUFReader

from localinfer import quantizing
from localinfer.errors import BadRequest, ModelFileInvalid, NotEnoughDisk, StorageUnavailable
from localinfer.lock import try_exclusive
from localinfer.models import gguf, store
from localinfer.models.conversion import Tensors
from localinfer.models.store import ModelRef
from localinfer.quantizing import Quantized, default_target, quantize
from tests.cli.commands import COMMAND, environment
from tests.models.test_oracle import split
from tests.tiny_models import write_tiny_model

posix = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return write_tiny_model(folder, "llama").rename(folder / "tiny-F32.gguf")


def make(source: Path, quantization: str, target: Path | None = None, *, force: bool = False) -> Quantized:
    return quantize(store.resolve(str(source)), quantization, target, progress=lambda _: None, force=force)


def only(folder: Path, *names: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


class TestWhatIsMade:
    def test_a_smaller_file_of_the_same_tensors(self, tiny: Path) -> None:
        seen: list[Tensors] = []
        made = quantize(store.resolve(str(tiny)), "q8_0", None, progress=seen.append)
        assert (made.quantization, made.path) == ("Q8_0", tiny.with_name("tiny-Q8_0.gguf"))
        assert "Q8_0" in made.description
        assert made.before_bytes == tiny.stat().st_size
        assert made.after_bytes == made.path.stat().st_size < tiny.stat().st_size / 2
        assert 8.5 <= made.bits_per_weight < 9
        old, new = gguf.check(tiny), gguf.check(made.path)
        assert {one.name: one.shape for one in new.tensors} == {one.name: one.shape for one in old.tensors}
        assert {one.type for one in new.tensors} == {"F32", "Q8_0"}
        assert [one.done for one in seen] == list(range(1, old.tensor_count + 1))
        assert {one.total for one in seen} == {old.tensor_count}
        only(tiny.parent, tiny.name, made.path.name)

    def test_the_weights_are_nearly_the_same(self, tiny: Path) -> None:
        made = make(tiny, "F16")
        old, new = ({one.name: one.data for one in GGUFReader(path).tensors} for path in (tiny, made.path))
        assert old.keys() == new.keys()
        assert all(abs(new[name] - old[name]).max() < 0.01 for name in old)

    def test_a_split_model_becomes_one_file(self, tiny: Path, tmp_path: Path) -> None:
        shards = split(tiny, tmp_path / "shards")
        made = make(shards[0], "F16")
        assert made.path.name == "tiny-F16.gguf"
        header = gguf.check(made.path)
        assert (header.split_count, header.tensor_count) == (1, gguf.check(tiny).tensor_count)

    def test_types_that_a_shape_cannot_hold_are_told(self, tiny: Path) -> None:
        """Rows of 64 are no whole blocks of 256."""
        made = make(tiny, "Q4_K")
        assert made.quantization == "Q4_K_M"
        assert any("cannot hold" in notice for notice in made.notices)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("a-F16.gguf", "a-Q4_K_M.gguf"),
            ("A.q8_0.gguf", "A.Q4_K_M.gguf"),
            ("Q2_K-of-x-fp16.gguf", "Q2_K-of-x-Q4_K_M.gguf"),
            ("plain.gguf", "plain-Q4_K_M.gguf"),
            ("a-F16-00001-of-00003.gguf", "a-Q4_K_M.gguf"),
        ],
    )
    def test_the_name_says_the_new_quantization(self, name: str, expected: str, tmp_path: Path) -> None:
        stem = name.removesuffix(".gguf").removesuffix("-00001-of-00003")
        assert default_target(ModelRef(name=stem, paths=(tmp_path / name,)), "Q4_K_M") == tmp_path / expected

    def test_what_lies_in_a_cache_goes_to_the_current_folder(self, tmp_path: Path) -> None:
        ref = ModelRef(name="owner/repo:F16", paths=(tmp_path / "a-F16.gguf",))
        assert default_target(ref, "Q8_0") == Path.cwd() / "a-Q8_0.gguf"


class TestRefusals:
    def test_an_unknown_type_is_told_the_known_ones(self, tiny: Path) -> None:
        with pytest.raises(BadRequest, match="Q9_X") as refused:
            make(tiny, "Q9_X")
        for name in ("Q2_K", "Q4_K_M", "Q8_0", "F16", "BF16", "F32", "IQ4_XS"):
            assert name in refused.value.hint

    def test_what_needs_an_importance_matrix(self, starter_model: Path, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="importance matrix"):
            make(starter_model, "IQ2_XS", tmp_path / "out.gguf")
        only(tmp_path)

    def test_making_it_no_better(self, tiny: Path) -> None:
        small = make(tiny, "Q4_0").path
        with pytest.raises(BadRequest, match="no better") as refused:
            make(small, "Q8_0")
        assert "--force" in refused.value.hint
        made = make(small, "Q8_0", force=True)
        assert any("no better" in notice for notice in made.notices)

    def test_quantizing_twice_is_done_and_told(self, tiny: Path) -> None:
        made = make(make(tiny, "Q8_0").path, "Q4_0")
        assert any("add up" in notice for notice in made.notices)

    def test_a_file_is_replaced_only_by_force(self, tiny: Path) -> None:
        target = tiny.with_name("mine.gguf")
        target.write_text("mine")
        with pytest.raises(BadRequest, match="is there already"):
            make(tiny, "Q8_0", target)
        assert target.read_text() == "mine"
        make(tiny, "Q8_0", target, force=True)
        assert gguf.check(target).tensor_count
        only(tiny.parent, tiny.name, "mine.gguf")

    @pytest.mark.parametrize("force", [False, True])
    def test_never_over_itself(self, tiny: Path, force: bool) -> None:
        link = tiny.with_name("link.gguf")
        link.symlink_to(tiny)
        before = tiny.read_bytes()
        for target in (tiny, link):
            with pytest.raises(BadRequest, match="made of"):
                make(tiny, "F32", target, force=force)
        assert tiny.read_bytes() == before

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a file system with pipes")
    def test_what_is_no_file_is_never_replaced(self, tiny: Path) -> None:
        pipe = tiny.with_name("pipe.gguf")
        os.mkfifo(pipe)
        with pytest.raises(BadRequest, match="not a file"):
            make(tiny, "Q8_0", pipe, force=True)
        assert pipe.is_fifo()

    def test_a_folder_that_is_not_there(self, tiny: Path) -> None:
        with pytest.raises(BadRequest, match="no folder"):
            make(tiny, "Q8_0", tiny.parent / "none" / "a.gguf")
        with pytest.raises(BadRequest, match="is a folder"):
            make(tiny, "Q8_0", tiny.parent, force=True)

    def test_a_folder_that_takes_nothing(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(path: Path) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "touch", refuse)
        with pytest.raises(StorageUnavailable, match="Permission denied"):
            make(tiny, "Q8_0")

    def test_too_little_disk_is_seen_before(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(quantizing, "_MARGIN_BYTES", 1 << 60)
        with pytest.raises(NotEnoughDisk) as refused:
            make(tiny, "Q8_0")
        assert refused.value.needed_bytes
        only(tiny.parent, tiny.name)

    def test_another_that_writes_the_same_file(self, tiny: Path, home: Path) -> None:
        make(tiny, "Q8_0")
        (lock,) = (home / "state").glob("quantize-*.lock")
        with try_exclusive(lock), pytest.raises(BadRequest, match="Another localinfer"):
            make(tiny, "Q8_0", force=True)

    def test_a_file_that_is_no_model(self, tiny: Path) -> None:
        bad = tiny.with_name("bad.gguf")
        bad.write_bytes(tiny.read_bytes()[:5000])
        with pytest.raises(ModelFileInvalid):
            make(bad, "Q8_0")


class TestNothingHalf:
    def test_an_exception_ends_it(self, tiny: Path) -> None:
        def stop(_: Tensors) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            quantize(store.resolve(str(tiny)), "Q8_0", None, progress=stop)
        only(tiny.parent, tiny.name)

    def test_what_was_written_wrong_is_not_kept(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(quantizing, "_SIZE_ERROR", -10.0)
        with pytest.raises(ModelFileInvalid, match="bytes of weights"):
            make(tiny, "Q8_0")
        only(tiny.parent, tiny.name)

    @posix
    def test_a_child_that_dies(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(quantizing, "CHILD", "tests.children")
        monkeypatch.setenv("CHILD", f"signal {int(signal.SIGABRT)}")
        with pytest.raises(ModelFileInvalid, match="SIGABRT"):
            make(tiny, "Q8_0")
        only(tiny.parent, tiny.name)

    @posix
    def test_a_disk_that_others_fill_meanwhile(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file may not grow beyond a limit, which the library sees as a disk that takes no more."""
        import resource

        usage, asked = shutil.disk_usage(tiny), []

        def shrinking(path: Path) -> object:
            asked.append(path)
            return usage if len(asked) == 1 else usage._replace(free=0)

        monkeypatch.setattr(shutil, "disk_usage", shrinking)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(NotEnoughDisk):
                make(tiny, "Q8_0")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        only(tiny.parent, tiny.name)

    @posix
    def test_a_killed_application_leaves_nothing(self, starter_model: Path, tmp_path: Path) -> None:
        command = [*COMMAND, "quantize", str(starter_model), "F32", str(tmp_path / "out.gguf"), "--force"]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        part = tmp_path / ".out.gguf.part"
        wait(lambda: part.exists() and part.stat().st_size > 1_000_000)
        children = psutil.Process(process.pid).children()
        process.kill()
        process.wait()
        wait(lambda: not any(child.is_running() for child in children))
        assert list(tmp_path.iterdir()) == []


def wait(state: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.005)
