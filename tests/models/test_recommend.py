"""Which model each recorded machine gets, with what, and in which words."""

from pathlib import Path

import pytest

from localinfer.advice import Advice
from localinfer.machine import Choice, bandwidth, choose, look
from localinfer.models.catalog import catalog
from localinfer.models.recommend import FLOOR_TPS, bits, recommend, variants
from tests.machine.recorded import NAMES, Recorded
from tests.models.machines import cpu_only, cuda, machine

# Machine and build; backend, device, model and quantization, verdict; words of the two sentences that explain it.
EXPECTED = [
    ("rtx-3060", "cuda", "llama.cpp", "CUDA0", "gemma-4-12b", "Q4_0", "full", "CUDA on the RTX 3060"),
    ("rtx-3060", "cpu", "llama.cpp", "cpu", "qwen3.6-35b-a3b", "UD-Q4_K_M", "cpu", "run localinfer setup-gpu"),
    ("rtx-4090", "cuda", "llama.cpp", "CUDA0", "qwen3.8-27b", "Q6_K", "full", "memory of its own"),
    ("rtx-4060-laptop", "cuda", "llama.cpp", "CUDA0", "qwen3.5-9b", "Q4_K_M", "full", "unlike the integrated GPU"),
    ("gtx-1050-ti", "cuda 12", "llama.cpp", "CUDA0", "gemma-4-e4b", "Q4_0", "full", "CUDA on the GTX 1050 Ti"),
    ("gtx-1050-ti", "cuda 13", "llama.cpp", "cpu", "lfm2.5-8b-a1b", "Q6_K", "cpu", "has no code for the GTX 1050 Ti"),
    ("two-gpus", "cuda", "llama.cpp", "CUDA0", "qwen3.8-27b", "Q6_K", "full", "the largest of 2 GPUs"),
    ("wsl2", "cuda", "llama.cpp", "CUDA0", "qwen3.5-4b", "Q6_K", "full", "CUDA on the RTX 3070"),
    ("m1-8gb", "mlx", "mlx", "Metal", "qwen3.5-2b", "4bit", "full", "MLX on the Apple M1"),
    ("m1-8gb", "metal", "llama.cpp", "MTL0", "qwen3.5-2b", "Q6_K", "full", "there is no build of MLX"),
    ("m4-pro-24gb", "mlx", "mlx", "Metal", "gemma-4-12b", "Q4_0", "full", "made for Apple Silicon"),
    ("m3-max-64gb", "mlx", "mlx", "Metal", "qwen3.8-27b", "4bit", "full", "MLX on the Apple M3 Max"),
    ("vm-cgroup-v2", "cpu", "llama.cpp", "cpu", "qwen3.5-2b", "Q6_K", "cpu", "there is no GPU"),
    ("vm-cgroup-v1", "cpu", "llama.cpp", "cpu", "lfm2.5-1.2b", "Q4_K_M", "cpu", "there is no GPU"),
    ("driver-mismatch", "cuda", "llama.cpp", "cpu", "qwen3.6-35b-a3b", "UD-Q4_K_M", "cpu", "does not answer"),
    ("error-999-after-sleep", "cuda", "llama.cpp", "cpu", "lfm2.5-8b-a1b", "Q6_K", "cpu", "error 999"),
    ("rx-7900-xtx", "vulkan", "llama.cpp", "Vulkan0", "qwen3.8-27b", "Q6_K", "full", "Vulkan on the Radeon RX 7900"),
]


@pytest.fixture(autouse=True)
def known_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings do not say how fast memory is: dual-channel DDR4."""
    monkeypatch.setattr(bandwidth, "of_memory", lambda cpu, measure: 45e9)


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: f"{row[0]}, {row[1]}")
def test_each_recorded_machine_gets_what_suits_it(row: tuple[str, ...]) -> None:
    name, build, backend, device, model, quantization, verdict, words = row
    sources = Recorded(name)
    here = look(sources, [sources.builds[build]])
    choice = choose(here)

    pick = recommend(
        catalog().models,
        here,
        device=next(one for one in here.devices if one.id == choice.device),
        backend=choice.backend,
    )

    assert pick is not None
    assert (choice.backend, choice.device) == (backend, device)
    assert (pick.spec.id, pick.variant.name, pick.plan.verdict) == (model, quantization, verdict)
    assert words in choice.reason
    assert pick.sentence.startswith(f"{pick.spec.name} ({quantization}, ")
    assert "to spare" in pick.sentence


def test_every_recorded_machine_is_there() -> None:
    assert {row[0] for row in EXPECTED} >= set(NAMES) - {"strix-halo-128gb"}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_recommended_lacks_memory(name: str) -> None:
    """Zero false promises: of all that could be taken, every plan that fits leaves its margins."""
    sources = Recorded(name)
    for build in sources.builds.values():
        here = look(sources, [build])
        pick = recommend(catalog().models, here, device=here.devices[0])
        assert pick is None or all(load.spare_bytes >= 0 for load in pick.plan.devices)


def test_where_nothing_fits_there_is_no_recommendation() -> None:
    here = cpu_only(0.2)
    assert recommend(catalog().models, here, device=here.devices[-1]) is None


def test_on_a_slow_machine_the_best_that_loads_is_taken() -> None:
    here = cpu_only(16, bandwidth=2e8)
    pick = recommend(catalog().models, here, device=here.devices[-1])
    assert pick is not None
    assert "at all" in pick.sentence


def test_a_card_that_is_too_small_for_all_takes_what_fits_it_whole() -> None:
    here = machine(64, cuda(3))
    pick = recommend(catalog().models, here, device=here.devices[0])
    assert pick is not None
    assert pick.plan.verdict == "full"


@pytest.mark.parametrize("name", NAMES)
def test_advice_is_steady_while_speeds_and_free_memory_waver(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is measured, within a fifth: once it has settled, it stays, and it only ever went to better models."""
    sources = Recorded(name)
    (build, *_) = sources.builds.values()
    before: tuple[str, str] | None = None
    ranks = []
    for factor in (1.0, 0.8, 1.2, 0.85, 1.1, 0.8, 1.2, 0.9):
        monkeypatch.setattr(bandwidth, "of_memory", lambda cpu, measure, factor=factor: factor * 45e9)
        here = look(sources, [build])
        device = next(one for one in here.devices if one.id == choose(here).device)
        pick = recommend(catalog().models, here, device=device, before=before)
        assert pick is not None
        before = (pick.spec.id, pick.variant.name)
        ranks.append((pick.spec.rank, before))
    assert [rank for rank, _ in ranks] == sorted(rank for rank, _ in ranks)
    assert len({what for _, what in ranks[2:]}) == 1


def test_what_was_recommended_goes_when_it_is_clearly_too_slow_or_no_longer_fits() -> None:
    here = cpu_only(16)
    device = here.devices[-1]
    first = recommend(catalog().models, here, device=device)
    assert first is not None
    before = (first.spec.id, first.variant.name)
    for slow in (cpu_only(16, bandwidth=1.5e10), cpu_only(2)):
        now = recommend(catalog().models, slow, device=slow.devices[-1], before=before)
        assert now is not None
        assert now.spec.rank < first.spec.rank
    assert recommend(catalog().models, here, device=device, before=("gone", "Q4_0")) == first


def test_the_advice_of_this_machine_is_remembered(home: Path) -> None:
    advice = Advice(measure=False)
    advice.__dict__ |= {"machine": cpu_only(16), "choice": Choice(backend="llama.cpp", device="cpu", reason="")}
    first = advice.recommended()
    assert first is not None
    steady = first.plan.decode_tps
    assert steady is not None
    slower = Advice(measure=False)
    bandwidth = 0.8 * FLOOR_TPS / steady.middle * (cpu_only(16).devices[-1].bandwidth or 0)
    slower.__dict__ |= advice.__dict__ | {"machine": cpu_only(16, bandwidth=bandwidth)}
    now = slower.recommended()
    assert now is not None
    assert (now.spec, now.variant) == (first.spec, first.variant)
    (home / "state" / "recommended.json").unlink()
    other = slower.recommended()
    assert other is not None
    assert other.spec != first.spec, "it is the memory that keeps it"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("Q4_K_M", 4), ("UD-Q3_K_XL", 3), ("IQ2_XXS", 2), ("Q8_0", 8), ("MXFP4", 4), ("4bit", 4), ("8bit", 8)),
        *(("BF16", 16), ("F16", 16), ("F32", 32), ("something", 4), ("Q6_K", 6), ("MXFP4-Q8", 4)),
    ],
)
def test_bits_of_a_name(name: str, expected: int) -> None:
    assert bits(name) == expected


def test_two_bits_are_never_offered_and_three_only_of_large_models() -> None:
    for spec in catalog().models:
        for variant in variants(spec, "llama.cpp"):
            assert bits(variant.name) >= (3 if spec.parameters >= 24e9 else 4)
