"""Our perplexity and KL divergence beside those of ``llama-perplexity``, on the same text and files."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from localinfer import comparing, quantizing
from localinfer.advice import Advice
from localinfer.models import store
from localinfer.types import LoadOptions
from tests.bench.native import tool

CONTEXT, CHUNKS = 256, 8

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(not os.environ.get("LOCALINFER_NATIVE_TOOLS"), reason="LOCALINFER_NATIVE_TOOLS is not set"),
]


def test_the_figures_agree(starter_model: Path, tmp_path: Path) -> None:
    source = store.resolve(str(starter_model))
    small = quantizing.quantize(source, "Q2_K", tmp_path / "small.gguf", progress=lambda _: None).path
    options = LoadOptions(backend="llama.cpp", model="", name="", context=CONTEXT)
    subjects = [
        comparing.subject(str(path), options, Advice(measure=False), offline=True, progress=lambda _: None)
        for path in (starter_model, small)
    ]
    text = comparing.read_text(None)
    found = comparing.compare(subjects, text, name="", context=CONTEXT, chunks=CHUNKS, progress=lambda _: None)
    ours, far = found.models[1].perplexity, found.models[1].divergence
    assert far is not None

    base = tmp_path / "base"
    first = _said(starter_model, "-f", str(comparing.SAMPLE), "--kl-divergence-base", str(base))
    said = _said(small, "--kl-divergence", "--kl-divergence-base", str(base))
    theirs = _figure(r"Final estimate: PPL = ([\d.]+)", first)
    print(f"perplexity {found.models[0].perplexity.value:.4f} and theirs {theirs:.4f}")
    assert found.models[0].perplexity.value == pytest.approx(theirs, rel=0.01)
    for name, mine, pattern, tolerance in (
        ("perplexity", ours.value, r"Mean PPL\(Q\)\s*:\s*([\d.]+)", 0.01),
        ("its error", ours.error, r"Mean PPL\(Q\)\s*:\s*[\d.]+ ±\s*([\d.]+)", 0.01),
        ("KL mean", far.mean, r"Mean\s+KLD:\s*([\d.]+)", 0.01),
        ("KL P50", far.p50, r"Median\s+KLD:\s*([\d.]+)", 0.01),
        ("KL P90", far.p90, r"90.0%\s+KLD:\s*([\d.]+)", 0.01),
        ("KL P99", far.p99, r"99.0%\s+KLD:\s*([\d.]+)", 0.01),
        ("KL max", far.largest, r"Maximum KLD:\s*([\d.]+)", 0.01),
        ("same top", 100 * far.same_top, r"Same top p:\s*([\d.]+)", 0.01),
    ):
        theirs = _figure(pattern, said)
        print(f"{name} {mine:.4f} and theirs {theirs:.4f}")
        assert mine == pytest.approx(theirs, rel=tolerance), name


def _said(model: Path, *arguments: str) -> str:
    command = [tool("llama-perplexity"), "-m", str(model), "-c", str(CONTEXT), "--chunks", str(CHUNKS), *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode("utf-8", "replace")


def _figure(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    assert match, text[-2000:]
    return float(match[1])
