"""What pip's end means, from recorded output; that it is ended with everything it started; what it is run with."""

import os
import shlex
import sys
from pathlib import Path

import psutil
import pytest

from localinfer.errors import BackendUnavailable, DownloadFailed, LocalInferError, Offline, OutOfMemory
from localinfer.gpu_build import pip

COLLECTING = "Collecting llama-cpp-python==0.3.36\n"
NOT_BUILT = """  ninja: build stopped: subcommand failed.
  error: subprocess-exited-with-error
  × Building wheel for llama-cpp-python (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> No available output.
  Building wheel for llama-cpp-python (pyproject.toml): finished with status 'error'
  ERROR: Failed building wheel for llama-cpp-python
Failed to build llama-cpp-python
error: failed-wheel-build-for-install
"""
CMAKE = """  -- Configuring done
  CMake Error at vendor/llama.cpp/ggml/src/ggml-cuda/CMakeLists.txt:178 (target_link_libraries):
    Target "ggml-cuda" links to:

      CUDA::cublas

    but the target was not found.  Possible reasons include:
"""
RECORDED: list[tuple[str, type[LocalInferError], str]] = [
    (CMAKE + NOT_BUILT, BackendUnavailable, '(target_link_libraries): Target "ggml-cuda" links to: CUDA::cublas but'),
    ('  ggml-cuda.cu(12): error: identifier "x" is undefined\n' + NOT_BUILT, BackendUnavailable, '"x" is undefined'),
    ("  nvcc fatal   : Unsupported gpu architecture 'compute_61'\n" + NOT_BUILT, BackendUnavailable, "compute_61"),
    (
        "  host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13\n" + NOT_BUILT,
        BackendUnavailable,
        "unsupported GNU version",
    ),
    ("  /usr/bin/ld: cannot find -lcuda: No such file or directory\n" + NOT_BUILT, BackendUnavailable, "-lcuda"),
    ("  C:\\x.cpp(3): error C2065: 'y': undeclared\n" + NOT_BUILT, BackendUnavailable, "error C2065"),
    ("  c++: fatal error: Killed signal terminated program cc1plus\n" + NOT_BUILT, OutOfMemory, "Memory ran out"),
    (NOT_BUILT, BackendUnavailable, "pip could not install llama.cpp: "),
    (
        COLLECTING
        + "error: incomplete-download\n× Download failed after 6 attempts because not enough bytes were received\n",
        DownloadFailed,
        "broke off",
    ),
    (
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n",
        DownloadFailed,
        "arrived damaged",
    ),
    (
        COLLECTING + "ERROR: HTTP error 404 while getting https://wheels.example/x.whl\n",
        DownloadFailed,
        "HTTP error 404 while getting https://wheels.example/x.whl",
    ),
    (
        "ERROR: x-0.3.36-py3-none-manylinux_2_39_x86_64.whl is not a supported wheel on this platform.\n",
        DownloadFailed,
        "not a supported wheel",
    ),
    (
        COLLECTING + "error: connection-failed\n× Failed to connect to 127.0.0.1\n╰─> [Errno 111] Connection refused\n",
        Offline,
        "cannot be reached",
    ),
    ("/usr/bin/python: No module named pip\n", BackendUnavailable, "no pip"),
    ("", BackendUnavailable, "it said nothing"),
    ("ERROR: \x1b]0;owned\x07 odd\n", BackendUnavailable, "owned"),
]


def run(program: str, tmp_path: Path, environment: dict[str, str] | None = None) -> list[str]:
    """Run a Python program in the place of pip; what ``progress`` heard."""
    seen: list[str] = []
    pip.run([sys.executable, "-c", program], environment or {}, tmp_path, tmp_path / "pip.log", seen.append)
    return seen


@pytest.mark.parametrize(("said", "kind", "words"), RECORDED)
def test_a_failure_is_said_in_a_line_with_a_log(
    said: str, kind: type[LocalInferError], words: str, tmp_path: Path
) -> None:
    with pytest.raises(LocalInferError) as caught:
        run(f"import sys; sys.stdout.buffer.write({said.encode()!r}); sys.exit(1)", tmp_path)
    error = caught.value
    assert type(error) is kind
    assert words in error.message, error.message
    assert error.message.isprintable()
    assert len(error.message) < 400
    if "no pip" not in error.message:
        assert str(tmp_path / "pip.log") in error.hint
        assert (tmp_path / "pip.log").read_text().split() == said.split()


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
        "Disk quota exceeded",
    ],
)
def test_a_full_disk_is_the_systems_own_error(said: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        run(f"import sys; print({said!r}); sys.exit(1)", tmp_path)


def test_progress_hears_bytes_and_lines_and_hears_again_while_nothing_happens(tmp_path: Path) -> None:
    program = """
        import os, sys
        print("Collecting x", flush=True)
        print("Progress 1500000 of 3000000", flush=True)
        sys.stdin.read()
    """
    seen = run("\n".join(line.strip() for line in program.splitlines()), tmp_path)
    assert seen[0] == "Collecting x"
    assert "2 of 3 MB" in seen
    assert "Progress" not in (tmp_path / "pip.log").read_text()


def test_what_commands_a_terminal_is_taken_out_of_progress(tmp_path: Path) -> None:
    assert all(line.isprintable() for line in run(r"print('\x1b]0;owned\x07 compiling')", tmp_path))


def test_temporary_files_go_where_they_are_told_to_and_the_persons_targets_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    names = ("TMPDIR", "TEMP", "PIP_TARGET", "PIP_INDEX_URL", "CMAKE_ARGS")
    program = f"import os; [print(name, os.environ.get(name), flush=True) for name in {names}]"
    run(program, tmp_path, {"CMAKE_ARGS": "-DX=on"})
    told = dict(line.split() for line in (tmp_path / "pip.log").read_text().splitlines())
    assert told == {
        "TMPDIR": str(tmp_path),
        "TEMP": str(tmp_path),
        "PIP_TARGET": "None",
        "PIP_INDEX_URL": "https://mirror.example/simple",
        "CMAKE_ARGS": "-DX=on",
    }


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="cannot be run"):
        pip.run([str(tmp_path / "python")], {}, tmp_path, tmp_path / "pip.log", lambda _: None)


@pytest.mark.skipif(os.name == "nt", reason="the compiler is a shell script")
def test_leaving_early_ends_every_compiler(tmp_path: Path) -> None:
    script = "sleep 1000 & setsid sleep 1000 & echo $$ $(jobs -p); wait"
    program = f"import subprocess; subprocess.run(['bash', '-c', {shlex.quote(script)!r}[1:-1]])"
    pids: list[int] = []

    def stop(line: str) -> None:
        if line[0].isdecimal():
            pids.extend(map(int, line.split()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pip.run([sys.executable, "-c", program], {}, tmp_path, tmp_path / "pip.log", stop)
    assert len(pids) == 3
    assert not [pid for pid in pids if psutil.pid_exists(pid)]
    assert psutil.Process().children() == []
