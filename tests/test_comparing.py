"""Comparing real models, each in a real child, and what must not be compared."""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from localinfer import comparing, quantizing
from localinfer.advice import Advice
from localinfer.comparing import Compared, Comparison, Step, Subject, compare, read_text, subject
from localinfer.divergence import kl, log_probabilities, perplexity
from localinfer.errors import BadRequest, ModelFileInvalid, NotEnoughDisk
from localinfer.models import scoring, store
from localinfer.types import LoadOptions
from tests.models.test_oracle import split
from tests.tiny_models import SAMPLE, Architecture, write_tiny_model

CONTEXT = 32
TEXT = SAMPLE * 3


def opened(path: Path, context: int = CONTEXT) -> Subject:
    options = LoadOptions(backend="llama.cpp", model="", name="", context=context, threads=1)
    return subject(str(path), options, Advice(measure=False), offline=True, progress=lambda _: None)


def compared(*paths: Path, text: str = TEXT, context: int = CONTEXT, chunks: int | None = 4) -> Comparison:
    subjects = [opened(path, context) for path in paths]
    return compare(subjects, text, name="text", context=context, chunks=chunks, progress=lambda _: None)


def made(source: Path, quantization: str, target: Path) -> Path:
    return quantizing.quantize(
        store.resolve(str(source)), quantization, target, progress=lambda _: None, force=True
    ).path


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models"), "llama")


@pytest.fixture(scope="module")
def ladder(starter_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compared]:
    """The starter, which is Q4_1, as F16 and as what can be made of that, all against the F16 file."""
    folder = tmp_path_factory.mktemp("ladder")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALINFER_HOME", str(folder / "home"))
        f16 = made(starter_model, "F16", folder / "F16.gguf")
        paths = [f16, *(made(f16, name, folder / f"{name}.gguf") for name in ("Q8_0", "Q2_K")), starter_model]
        found = compared(*paths, text=read_text(None), context=128, chunks=2)
    for path in paths[:-1]:
        path.unlink()
    return {one.quantization: one for one in found.models}


class TestTheStarter:
    """The F16 file is made of the Q4_1 one and holds the same weights, so Q4_1 is *not* a step of the ladder from F16
    down: it differs from F16 by the arithmetic of the kernels alone, about as much as Q8_0 does."""

    def test_each_step_down_is_farther_from_the_first(self, ladder: dict[str, Compared]) -> None:
        upper, lower = ladder["Q8_0"].divergence, ladder["Q2_K"].divergence
        assert upper is not None
        assert lower is not None
        assert 0 < upper.mean < 0.1 * lower.mean
        assert 0 < upper.p99 < lower.p50
        assert upper.same_top > lower.same_top

    def test_the_same_weights_in_another_form_are_next_to_nothing_away(self, ladder: dict[str, Compared]) -> None:
        same, worst = ladder["Q4_1"].divergence, ladder["Q2_K"].divergence
        assert same is not None
        assert worst is not None
        assert same.mean < 0.02
        assert same.mean < 0.1 * worst.mean
        assert ladder["Q4_1"].perplexity.value == pytest.approx(ladder["F16"].perplexity.value, rel=0.03)

    def test_the_worst_is_more_perplexed(self, ladder: dict[str, Compared]) -> None:
        assert ladder["Q2_K"].perplexity.value > 1.1 * ladder["F16"].perplexity.value

    def test_what_is_saved_is_beside_it(self, ladder: dict[str, Compared]) -> None:
        sizes = [ladder[name].size_bytes for name in ("F16", "Q8_0", "Q2_K")]
        memory = [ladder[name].memory_bytes for name in ("F16", "Q8_0", "Q2_K")]
        assert sizes == sorted(sizes, reverse=True)
        assert memory == sorted(memory, reverse=True)
        for one in ladder.values():
            assert (one.placement, one.threads) == ("CPU", 1)
            assert one.prefill_tps is not None
            assert one.decode_tps is not None
            assert min(one.prefill_tps, one.decode_tps) > 0


class TestFigures:
    @pytest.mark.parametrize("architecture", ["llama", "gemma3", "mamba", "lfm2"])
    def test_a_model_is_no_distance_from_itself(self, architecture: Architecture, tmp_path: Path) -> None:
        """So one chunk leaves nothing behind in the next, whatever kind of memory the model has."""
        path = write_tiny_model(tmp_path, architecture)
        first, second = compared(path, path).models
        assert first.divergence is None
        assert second.divergence is not None
        assert (second.divergence.largest, second.divergence.same_top) == (0, 1)
        assert second.perplexity == first.perplexity
        assert first.name != second.name

    def test_they_are_those_of_a_plain_pass(self, tiny: Path, tmp_path: Path) -> None:
        """Every position of every chunk by a pass of its own, with the reference's figures kept in memory."""
        other = made(tiny, "Q4_0", tmp_path / "other.gguf")
        found = compared(tiny, other, chunks=2).models
        (a, losses), (b, other_losses) = (by_single_passes(path, chunks=2) for path in (tiny, other))
        assert found[0].perplexity.value == pytest.approx(perplexity(losses).value, rel=1e-3)
        assert found[1].perplexity.value == pytest.approx(perplexity(other_losses).value, rel=1e-3)
        far = found[1].divergence
        assert far is not None
        assert far.mean == pytest.approx(np.mean([kl(one, two) for one, two in zip(a, b, strict=True)]), rel=2e-2)

    def test_taking_turns_with_pieces_changes_nothing(self, tiny: Path, tmp_path: Path, home: Path) -> None:
        other = made(tiny, "Q8_0", tmp_path / "other.gguf")
        subjects = [opened(tiny), opened(other)]
        seen: list[Step] = []
        found = []
        for most in (comparing._FILE_BYTES, 1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(comparing, "_FILE_BYTES", most)
                found.append(compare(subjects, TEXT, name="", context=CONTEXT, chunks=3, progress=seen.append))
        whole, pieces = ([(one.perplexity, one.divergence) for one in each.models] for each in found)
        assert pieces == whole
        assert [step.done for step in seen] == [0, 1, 2, 3, 3, 4, 5, 6, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]
        assert [step.name for step in seen[:8]] == ["llama"] * 4 + ["other"] * 4
        assert not list((home / "state").glob("compare-*"))

    def test_a_split_model(self, tiny: Path, tmp_path: Path) -> None:
        first, second = compared(tiny, split(tiny, tmp_path / "shards")[0], chunks=2).models
        assert second.divergence is not None
        assert second.divergence.largest == 0
        assert second.size_bytes == pytest.approx(first.size_bytes, rel=0.1)

    def test_counts(self, tiny: Path) -> None:
        found = compared(tiny, tiny, chunks=2)
        assert (found.context, found.chunks, found.scored_tokens) == (CONTEXT, 2, 2 * (CONTEXT // 2 - 1))
        everything = compared(tiny, tiny, chunks=None)
        assert everything.chunks > 4


def by_single_passes(path: Path, chunks: int) -> tuple[list[npt.NDArray[np.float32]], list[float]]:
    """Log-probabilities and losses of all scored positions, one token a pass."""
    from backends.llama_cpp.native import ContextOptions, NativeContext, NativeModel
    from backends.llama_cpp.tokenizer import LlamaTokenizer

    model = NativeModel(str(path), gpu_layers=0, device="cpu", progress=lambda _: None)
    options = ContextOptions(cells=256, sequences=1, outputs=1, batch=1, threads=1, kv_type="f16", unified=False)
    context = NativeContext(model, options)
    tokens = LlamaTokenizer(model).encode(TEXT, special=False)
    rows, losses = [], []
    for start in range(0, chunks * CONTEXT, CONTEXT):
        context.clear(0)
        for position in range(CONTEXT - 1):
            context.batch.clear()
            context.batch.add(0, position, tokens[start + position])
            context.decode()
            if position >= CONTEXT // 2:
                rows.append(log_probabilities(context.logits(0).copy()))
                losses.append(-float(rows[-1][tokens[start + position + 1]]))
    context.close()
    model.close()
    return rows, losses


class TestRefusals:
    def test_other_vocabularies(self, tiny: Path, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="different vocabularies") as refused:
            compared(tiny, write_tiny_model(tmp_path, "gemma3"))
        assert "perplexities" in refused.value.message

    @pytest.mark.parametrize("text", ["", "One sentence."])
    def test_a_text_that_is_too_short(self, tiny: Path, text: str) -> None:
        with pytest.raises(BadRequest, match="too short"):
            compared(tiny, tiny, text=text)

    def test_too_little_disk(self, tiny: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
        subjects = [opened(tiny), opened(tiny)]
        usage = shutil.disk_usage(tiny)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(NotEnoughDisk):
            compare(subjects, TEXT, name="", context=CONTEXT, chunks=2, progress=lambda _: None)
        assert not list((home / "state").glob("compare-*"))

    @pytest.mark.skipif(os.name == "nt", reason="signals are POSIX")
    def test_a_child_that_dies(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(scoring, "CHILD", "tests.children")
        monkeypatch.setenv("CHILD", f"signal {int(signal.SIGABRT)}")
        with pytest.raises(ModelFileInvalid, match="SIGABRT"):
            compared(tiny, tiny)

    def test_an_interrupted_one_leaves_nothing(self, tiny: Path, home: Path) -> None:
        def stop(_: Step) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            compare([opened(tiny), opened(tiny)], TEXT, name="", context=CONTEXT, chunks=2, progress=stop)
        assert not list((home / "state").glob("compare-*"))

    def test_what_a_killed_one_left_goes_with_the_next(self, tiny: Path, home: Path) -> None:
        left = home / "state" / f"compare-{2**22 + 1}-abc"  # beyond the numbers of processes
        left.mkdir(parents=True)
        mine = home / "state" / f"compare-{os.getpid()}-abc"
        mine.mkdir()
        compared(tiny, tiny, chunks=2)
        assert (left.exists(), mine.exists()) == (False, True)


class TestTexts:
    def test_ours_is_long_enough(self, starter_model: Path) -> None:
        from localinfer.models.scores import ReadText

        with scoring.ScoringChild("starter") as child:
            read = child.read(ReadText(path=str(starter_model), parts=(), text=read_text(None)))
        assert len(read.tokens) >= 4000
        assert read.vocabulary_size == 49_152

    @pytest.mark.parametrize(
        ("data", "words"), [(None, "cannot be read"), (b"\xff\xfe\x00", "not text in UTF-8"), (b"a\x00b", "not text")]
    )
    def test_what_is_no_text(self, data: bytes | None, words: str, tmp_path: Path) -> None:
        path = tmp_path / "text"
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(BadRequest, match=words):
            read_text(path)

    def test_a_folder_and_a_giant(self, tmp_path: Path) -> None:
        with pytest.raises(BadRequest, match="cannot be read"):
            read_text(tmp_path)
        giant = tmp_path / "giant"
        with giant.open("wb") as file:
            file.truncate(1 << 30)
        with pytest.raises(BadRequest, match="larger"):
            read_text(giant)

    def test_a_byte_order_mark_is_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "text"
        path.write_bytes("\ufeffTide".encode())
        assert read_text(path) == "Tide"
