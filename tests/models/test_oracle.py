"""Sizing without loading: what the library says of files, of their headers alone, and of files that lie."""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import psutil
import pytest
from gguf import GGUFReader, GGUFWriter

from localinfer import settings
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError, ModelFileInvalid, OutOfMemory
from localinfer.models import gguf, oracle
from localinfer.models.oracle import SizingChild, measure, sparse_copy
from localinfer.models.sizes import SizeRequest, Sizes
from tests.architectures import ARCHITECTURES, write_header
from tests.tiny_models import Architecture, write_tiny_model

QUICK_S = 20.0  # long enough for a busy machine; a child that hangs takes longer
HUNG = "did not say within"


@pytest.fixture(scope="module")
def child() -> Iterator[SizingChild]:
    with SizingChild() as sizing:
        yield sizing


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every synthesised header."""
    folder = tmp_path_factory.mktemp("headers")
    for name in ARCHITECTURES:
        write_header(folder, name)
    return folder


def request(*paths: Path, context: int = 4096, **fields: object) -> SizeRequest:
    return SizeRequest(paths=tuple(map(str, paths)), context=context, **fields)  # type: ignore[arg-type]


def header_bytes(path: Path) -> bytes:
    """The file up to the first tensor's data."""
    return path.read_bytes()[: gguf.check(path).header_bytes]


class TestHeaders:
    def test_the_starters_header_gives_the_sizes_of_the_file(
        self, child: SizingChild, starter_model: Path, tmp_path: Path
    ) -> None:
        head = header_bytes(starter_model)
        sparse = sparse_copy(head, starter_model.stat().st_size, tmp_path / "made")
        assert len(head) < 3_000_000
        assert sparse.stat().st_size == starter_model.stat().st_size
        for fields in ({}, {"slots": 4}, {"kv_type": "q8_0"}, {"gpu_layers": 0}, {"gpu_layers": 5, "unified": True}):
            found = child.measure(request(starter_model, **fields))
            assert found.exact
            assert child.measure(request(sparse, **fields)) == found
        found = child.measure(request(starter_model))
        assert found.layers == 30
        assert found.kv_bytes == 30 * 4096 * 2 * 3 * 64 * 2

    @pytest.mark.parametrize("architecture", get_args(Architecture))
    def test_a_tiny_models_header_gives_the_sizes_of_the_file(
        self, child: SizingChild, architecture: Architecture, tmp_path: Path
    ) -> None:
        path = write_tiny_model(tmp_path, architecture)
        sparse = sparse_copy(header_bytes(path), path.stat().st_size, tmp_path, "sparse.gguf")
        whole = child.measure(request(path, slots=3))
        assert child.measure(request(sparse, slots=3)) == whole
        assert (whole.kv_bytes > 0) == (architecture != "mamba")
        assert (whole.state_bytes > 0) == (architecture in ("mamba", "lfm2"))

    def test_shards_are_one_model(self, child: SizingChild, tmp_path: Path) -> None:
        path = write_tiny_model(tmp_path, "llama")
        shards = split(path, tmp_path / "shards")
        sparse = [
            sparse_copy(header_bytes(shard), shard.stat().st_size, tmp_path / "sparse", f"part {number}.gguf")
            for number, shard in enumerate(shards)
        ]
        found = child.measure(request(*shards))
        assert found == child.measure(request(path))
        assert child.measure(request(*sparse)) == found

    @pytest.mark.parametrize("name", ARCHITECTURES)
    def test_every_synthesised_header_is_sized(self, child: SizingChild, headers: Path, name: str) -> None:
        path = headers / f"{name}.gguf"
        assert path.stat().st_blocks * 512 < 200_000
        found = child.measure(request(path, context=512))
        assert found.exact
        (host,) = found.devices
        assert 0.99 < host.model_bytes / path.stat().st_size <= 1
        assert host.context_bytes == found.kv_bytes + found.state_bytes > 0
        assert 0 <= found.repacked_bytes <= host.model_bytes


class TestGrowth:
    """What a context takes grows as it should."""

    def ask(self, child: SizingChild, path: Path, **fields: object) -> Sizes:
        return child.measure(request(path, **fields))  # type: ignore[arg-type]

    def test_with_context_slots_and_type(self, child: SizingChild, headers: Path) -> None:
        path = headers / "llama-8b.gguf"
        one = self.ask(child, path)
        assert self.ask(child, path, context=8192).kv_bytes == 2 * one.kv_bytes
        assert self.ask(child, path, context=4000).kv_bytes == one.kv_bytes, "cells come in steps of 256"
        assert self.ask(child, path, slots=3).kv_bytes == 3 * one.kv_bytes
        assert self.ask(child, path, slots=3, unified=True).kv_bytes == 3 * one.kv_bytes
        assert self.ask(child, path, kv_type="q8_0").kv_bytes * 32 == one.kv_bytes * 17
        assert self.ask(child, path, kv_type="q4_0").kv_bytes * 32 == one.kv_bytes * 9
        assert self.ask(child, path, context=8192).devices[0].compute_bytes > one.devices[0].compute_bytes
        assert self.ask(child, path, micro_batch=128).devices[0].compute_bytes < one.devices[0].compute_bytes
        rows = self.ask(child, path, outputs=64).devices[0].compute_bytes - one.devices[0].compute_bytes
        assert rows >= 63 * ARCHITECTURES["llama-8b"].vocabulary * 4

    def test_of_a_hybrid_only_the_cache_follows_the_context(self, child: SizingChild, headers: Path) -> None:
        path = headers / "qwen35.gguf"
        one = self.ask(child, path)
        more = self.ask(child, path, context=8192, slots=2, kv_type="q8_0")
        # Published for Qwen3.5 9B: 32 KiB a token, 50.25 MiB a slot.
        assert (one.kv_bytes, one.state_bytes) == (32 * 1024 * 4096, int(50.25 * 2**20))
        assert (more.kv_bytes, more.state_bytes) == (one.kv_bytes * 4 * 17 // 32, 2 * one.state_bytes)

    def test_a_window_keeps_few_tokens(self, child: SizingChild, headers: Path) -> None:
        path = headers / "gemma3.gguf"
        assert self.ask(child, path, context=65_536).kv_bytes < 10 * self.ask(child, path).kv_bytes


def damaged(kind: str, folder: Path) -> Path:
    """A file that is wrong in one way."""
    whole = write_tiny_model(folder, "llama")
    data = bytearray(whole.read_bytes())
    path = folder / f"{kind}.gguf"
    match kind:
        case "missing":
            return folder / "nothing.gguf"
        case "folder":
            path.mkdir()
            return path
        case "empty":
            data.clear()
        case "garbage":
            data[:] = random.Random(1).randbytes(100_000)
        case "header cut off":
            del data[2000:]
        case "tensors cut off":
            del data[-10_000:]
        case "too many tensors":
            data[8:16] = (1 << 60).to_bytes(8, "little")
        case "too many keys":
            data[16:24] = (1 << 60).to_bytes(8, "little")
        case "endless name":
            data[24:32] = (1 << 62).to_bytes(8, "little")
        case "no layers" | "absurd layers" | "no heads":
            key = b"llama.block_count" if "layers" in kind else b"llama.attention.head_count"
            at = data.index(key) + len(key) + 4
            data[at : at + 4] = (0 if kind.startswith("no") else 4_000_000_000).to_bytes(4, "little")
    path.write_bytes(data)
    return path


class TestBadInput:
    @pytest.mark.parametrize(
        "kind",
        [
            *("missing", "folder", "empty", "garbage", "header cut off", "tensors cut off", "too many tensors"),
            *("too many keys", "endless name", "no layers", "absurd layers", "no heads"),
        ],
    )
    def test_a_bad_file_is_a_typed_error(self, child: SizingChild, kind: str, tmp_path: Path) -> None:
        with pytest.raises((ModelFileInvalid, OutOfMemory, BackendUnavailable)) as caught:
            child.measure(request(damaged(kind, tmp_path)), timeout_s=QUICK_S)
        assert HUNG not in caught.value.message
        assert caught.value.hint
        assert child.measure(request(write_tiny_model(tmp_path, "llama"))).exact, "the next one is answered"

    def test_random_bytes_in_the_header_never_hang(self, child: SizingChild, tmp_path: Path) -> None:
        whole = write_tiny_model(tmp_path, "gemma3").read_bytes()
        path = tmp_path / "changed.gguf"
        for seed in range(12):
            rng, data = random.Random(seed), bytearray(whole)
            for _ in range(4):
                data[rng.randrange(24, 1500)] = rng.randrange(256)
            path.write_bytes(data)
            try:
                child.measure(request(path), timeout_s=QUICK_S)
            except LocalInferError as error:
                assert HUNG not in error.message  # noqa: PT017 - most seeds raise, not all

    @pytest.mark.parametrize(
        "fields",
        [
            {"kv_type": "q3"},
            {"context": 0},
            {"context": 1 << 31},
            {"context": 1 << 20, "slots": 4096},
            {"slots": 0},
            {"micro_batch": 0},
            {"outputs": -1},
            {"device": "CUDA7"},
        ],
    )
    def test_an_impossible_request_is_refused(
        self, child: SizingChild, fields: dict[str, object], tmp_path: Path
    ) -> None:
        with pytest.raises(BadRequest):
            child.measure(request(write_tiny_model(tmp_path, "llama"), **fields))  # type: ignore[arg-type]

    def test_a_type_the_heads_do_not_allow_is_refused(self, child: SizingChild, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="q8_0") as caught:
            child.measure(request(write_tiny_model(tmp_path, "llama"), kv_type="q8_0"))
        assert caught.value.param == "kv"

    def test_no_files_and_names_that_are_not_unicode(self, child: SizingChild, tmp_path: Path) -> None:
        with pytest.raises(BadRequest):
            child.measure(request())
        with pytest.raises(ModelFileInvalid):
            measure(request(tmp_path / "\udcff.gguf"))

    @pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set in Linux only")
    def test_states_larger_than_the_memory_are_a_typed_error(self, headers: Path, starter_model: Path) -> None:
        """The library takes memory for recurrent states even when it only sizes: the child has a limit."""
        before = set(psutil.Process().children())
        with SizingChild() as sizing:
            assert sizing.measure(request(starter_model)).exact
            (process,) = set(psutil.Process().children()) - before
            soft, hard = process.rlimit(psutil.RLIMIT_DATA)
            assert 0 < soft < 1 << 46, "there is a limit"
            process.rlimit(psutil.RLIMIT_DATA, (process.memory_info().data + (1 << 29), hard))
            with pytest.raises(OutOfMemory):
                sizing.measure(request(headers / "nemotron_h.gguf", slots=16))
            assert sizing.measure(request(headers / "nemotron_h.gguf")).exact

    def test_a_child_that_does_not_answer_is_ended(self, starter_model: Path) -> None:
        with SizingChild() as sizing:
            with pytest.raises(BackendUnavailable, match=HUNG):
                sizing.measure(request(starter_model), timeout_s=0.001)
            assert sizing.measure(request(starter_model)).exact

    def test_a_crash_names_the_file_and_the_log(self, child: SizingChild, tmp_path: Path) -> None:
        with pytest.raises(ModelFileInvalid, match=r"no layers\.gguf makes llama\.cpp crash") as caught:
            child.measure(request(damaged("no layers", tmp_path)))
        assert "sizing-" in caught.value.hint


class TestMemory:
    """Answers are kept between runs."""

    def kept(self) -> list[Path]:
        return sorted((settings.state_dir() / "sizes").iterdir())

    def test_an_answer_is_asked_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write_tiny_model(tmp_path, "llama")
        first = measure(request(path))
        with monkeypatch.context() as patch:
            patch.setattr(oracle, "CHILD", "tests.no_such_module")
            assert measure(request(path)) == first
            with pytest.raises(LocalInferError):
                measure(request(path, slots=2))
        assert len(self.kept()) == 1

    def test_another_file_under_the_same_name_is_asked_anew(self, tmp_path: Path) -> None:
        path = write_tiny_model(tmp_path, "llama")
        first = measure(request(path))
        write_tiny_model(tmp_path, "gemma3").replace(path)
        assert measure(request(path)) != first

    def test_a_header_is_known_by_its_hash(self, tmp_path: Path) -> None:
        path = write_tiny_model(tmp_path, "llama")
        first = measure(request(path), header_hash="abc")
        path.unlink()
        assert measure(request(path), header_hash="abc") == first
        with pytest.raises(ModelFileInvalid):
            measure(request(path), header_hash="abd")

    def test_what_was_kept_and_cannot_be_read_is_asked_again(self, tmp_path: Path) -> None:
        path = write_tiny_model(tmp_path, "llama")
        first = measure(request(path))
        (kept,) = self.kept()
        kept.write_bytes(b"{")
        assert measure(request(path)) == first
        assert msgspec.json.decode(kept.read_bytes(), type=Sizes) == first

    def test_only_so_many_are_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(oracle, "KEPT", 2)
        path = write_tiny_model(tmp_path, "llama")
        for context in (256, 512, 768):
            measure(request(path, context=context))
        assert len(self.kept()) == 2

    def test_a_folder_that_cannot_be_written_is_no_failure(self, tmp_path: Path) -> None:
        settings.make_folder(settings.state_dir()).joinpath("sizes").write_text("in the way")
        assert measure(request(write_tiny_model(tmp_path, "llama"))).exact


def split(path: Path, folder: Path) -> list[Path]:
    """The model in two shards, as llama.cpp names and marks them."""
    folder.mkdir()
    reader = GGUFReader(path)
    half = len(reader.tensors) // 2
    shards = []
    for number, tensors in enumerate((reader.tensors[:half], reader.tensors[half:])):
        shard = folder / f"tiny-{number + 1:05}-of-00002.gguf"
        writer = GGUFWriter(shard, "llama")
        if number == 0:
            for name, field in reader.fields.items():
                if not name.startswith(("GGUF.", "general.architecture")):
                    kinds = field.types
                    writer.add_key_value(
                        name, field.contents(), kinds[0], sub_type=kinds[-1] if len(kinds) > 1 else None
                    )
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        shards.append(shard)
    return shards
