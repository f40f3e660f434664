"""Models in several files: all parts there, in order, of one model."""

import struct
from pathlib import Path

import pytest

from localinfer.errors import ModelFileInvalid
from localinfer.models import gguf
from tests.models.gguf_files import LLAMA, STRING, U32, file, pair, tensor, text

U16 = 2


def part(number: int, count: int, *, tensors: int = 1, total: int | None = None) -> bytes:
    """Part ``number``, counted from 1, with tensors of its own."""
    about = [LLAMA] if number == 1 else []
    about += [pair("split.no", U16, struct.pack("<H", number - 1)), pair("split.count", U16, struct.pack("<H", count))]
    if total is not None:
        about.append(pair("split.tensors.count", U32, struct.pack("<I", total)))
    return file(about, [tensor(f"blk.{number}.{index}") for index in range(tensors)])


def save(folder: Path, *contents: bytes) -> list[Path]:
    paths = []
    for number, content in enumerate(contents, start=1):
        paths.append(folder / f"m-{number:05}-of-{len(contents):05}.gguf")
        paths[-1].write_bytes(content)
    return paths


def test_the_headers_of_all_parts(tmp_path: Path) -> None:
    paths = save(tmp_path, part(1, 3, total=3), part(2, 3), part(3, 3))
    headers = gguf.check_all(paths)
    assert [header.split_no for header in headers] == [0, 1, 2]
    assert headers == tuple(gguf.check(path) for path in paths)


def test_a_first_part_without_tensors(tmp_path: Path) -> None:
    assert len(gguf.check_all(save(tmp_path, part(1, 2, tensors=0, total=1), part(2, 2)))) == 2


def test_one_file_that_is_whole(tmp_path: Path) -> None:
    assert len(gguf.check_all(save(tmp_path, file([LLAMA])))) == 1


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ([part(1, 3)], r"m-00001-of-00001\.gguf is of a model that is split into 3 files: parts 2, 3 are missing"),
        ([part(1, 3), part(3, 3)], "part 2 is missing"),
        ([part(1, 9)], "parts 2, 3, 4, 5, 6 and 3 more are missing"),
        ([part(2, 2), part(1, 2)], "is part 2 of 2 and stands in the place of part 1"),
        (
            [part(1, 3), part(3, 3), part(2, 3)],
            r"m-00002-of-00003\.gguf is part 3 of 3 and stands in the place of part 2",
        ),
        ([part(1, 2), part(1, 2)], "are both part 1 of 2"),
        ([part(1, 2), part(2, 3)], "split into 3, .* from one split into 2"),
        ([part(1, 2), file([LLAMA])], "is a whole model"),
        ([part(1, 2, total=5), part(2, 2)], "hold 2 of 5 tensors"),
        ([part(1, 2) + part(2, 2)], "the 2 parts of a split model were put together with cat"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, contents: list[bytes], said: str) -> None:
    with pytest.raises(ModelFileInvalid, match=said) as caught:
        gguf.check_all(save(tmp_path, *contents))
    assert caught.value.hint


def test_parts_that_hold_the_same_tensor(tmp_path: Path) -> None:
    other = part(2, 2).replace(text("blk.2.0"), text("blk.1.0"))
    with pytest.raises(ModelFileInvalid, match=r"both hold the tensor “blk\.1\.0”"):
        gguf.check_all(save(tmp_path, part(1, 2), other))


def test_what_stands_behind_a_whole_model_is_not_looked_at(tmp_path: Path) -> None:
    whole = file([LLAMA, pair("general.name", STRING, text("x"))])
    (path,) = save(tmp_path, whole + whole)
    assert gguf.check(path).name == "x"
