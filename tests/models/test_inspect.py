"""Headers read in a child: the same findings, and nothing a file does to the child reaches the application."""

import os
import struct
import sys
import time
from pathlib import Path

import pytest

from localinfer.errors import ModelFileInvalid, ModelNotFound
from localinfer.models import gguf, inspect
from tests.models.gguf_files import ARRAY, LLAMA, STRING, file, pair, text, write
from tests.models.test_shards import part, save


def test_says_what_a_look_in_this_process_says(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf")
    assert inspect.inspect([path]) == (gguf.check(path),)


def test_all_parts_of_a_model(tmp_path: Path) -> None:
    paths = save(tmp_path, part(1, 2), part(2, 2))
    assert inspect.inspect(paths) == gguf.check_all(paths)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff\xfe.gguf")
    try:
        write(path)
    except OSError:
        pytest.skip("this file system has only names that are text")
    assert inspect.inspect([path])[0].architecture == "llama"


def test_errors_come_through(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"nothing\.gguf") as missing:
        inspect.inspect([tmp_path / "nothing.gguf"])
    assert missing.value.hint
    (tmp_path / "page.gguf").write_bytes(b"<html>")
    with pytest.raises(ModelFileInvalid, match="this is a web page"):
        inspect.inspect([tmp_path / "page.gguf"])
    with pytest.raises(ModelFileInvalid, match="part 2 is missing"):
        inspect.inspect(save(tmp_path, part(1, 2)))


def test_a_file_that_takes_too_long(tmp_path: Path) -> None:
    """Eight million texts in a file that is mostly a hole."""
    path = tmp_path / "endless.gguf"
    path.write_bytes(file([LLAMA, pair("x", ARRAY, struct.pack("<IQ", STRING, (1 << 23) - 1))], [], count=0))
    os.truncate(path, 1 << 32)
    start = time.perf_counter()
    with pytest.raises(ModelFileInvalid, match=r"endless\.gguf .* within 0\.2 seconds"):
        inspect.inspect([path], timeout_s=0.2)
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_file_that_takes_too_much_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.gguf"
    path.write_bytes(file([LLAMA, *(pair(f"x{n}", STRING, text(bytes(1 << 20))) for n in range(15))]))
    assert len(inspect.inspect([path])) == 1
    with pytest.raises(ModelFileInvalid, match=r"big\.gguf .* did not survive: it exited with code 1"):
        inspect.inspect([path], memory_bytes=1 << 20)


def test_the_child_leaves_nothing_but_its_log(tmp_path: Path, home: Path) -> None:
    inspect.inspect([write(tmp_path / "model.gguf")])
    assert [path.name.partition("-")[0] for path in home.rglob("*") if path.is_file()] == ["inspect"]
