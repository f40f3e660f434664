"""Models shared by the tests of the llama.cpp backend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.llama_cpp.native import NativeModel
from tests.tiny_models import write_tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NativeModel]:
    """A model of some 410 tokens, byte-level BPE."""
    yield from _opened(write_tiny_model(tmp_path_factory.mktemp("models"), "llama"))


@pytest.fixture(scope="session")
def tiny_sentencepiece(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NativeModel]:
    """A model of some 410 tokens, SentencePiece."""
    yield from _opened(write_tiny_model(tmp_path_factory.mktemp("models"), "gemma3"))


@pytest.fixture(scope="session")
def starter(starter_model: Path) -> Iterator[NativeModel]:
    """The starter model: 49,152 tokens, byte-level BPE."""
    yield from _opened(starter_model)


def _opened(path: Path) -> Iterator[NativeModel]:
    model = NativeModel(str(path), gpu_layers=0, device="cpu", progress=lambda _: None)
    yield model
    model.close()
