"""The index of prebuilt wheels, over real HTTP: which wheel is chosen, and what is said of an index that fails."""

import pytest
from packaging.tags import sys_tags

from localinfer.errors import DownloadFailed, Offline
from localinfer.gpu_build.index import find
from tests.gpu_build.site import LLAMA, Site

VERSION = "0.3.36"
NEWEST_TAG = next(iter(sys_tags()))
CUDA = ((12, 4), (12, 3), (12, 1))


def page(cuda: str) -> str:
    return f"/whl/cu{cuda}/{LLAMA}/"


def links(*targets: str) -> bytes:
    """A page as upstream's script writes it."""
    body = "".join(f'    <a href="{target}">{target}</a>\n    <br>\n' for target in targets)
    return f"<!DOCTYPE html>\n<html>\n  <body>\n    <h1>Links for {LLAMA}</h1>\n{body}  </body>\n</html>\n".encode()


def asked(site: Site) -> list[str]:
    return [path.split("/")[2] for path in site.requests]


def test_the_first_version_that_has_the_wheel_is_taken(site: Site) -> None:
    site.prebuilt("123", f"llama_cpp_python-{VERSION}-py3-none-any.whl", b"")
    site.prebuilt("121", f"llama_cpp_python-{VERSION}-py3-none-any.whl", b"")
    wheel = find(VERSION, CUDA, site.wheels)
    assert wheel is not None
    assert wheel.cuda == (12, 3)
    assert wheel.url == f"{site.url}/releases/cu123/{wheel.file}"
    assert asked(site) == ["cu124", "cu123"]


@pytest.mark.parametrize(
    "file",
    [
        f"llama_cpp_python-{VERSION}-{NEWEST_TAG}.whl",
        f"llama_cpp_python-{VERSION}-py3-none-{NEWEST_TAG.platform}.whl",
        f"llama_cpp_python-{VERSION}+cu124-py3-none-any.whl",
        f"llama_cpp_python-{VERSION}-py2.py3-none-any.whl",
    ],
)
def test_wheels_that_run_here(site: Site, file: str) -> None:
    site.prebuilt("124", file, b"")
    wheel = find(VERSION, CUDA, site.wheels)
    assert wheel is not None
    assert wheel.file == file


@pytest.mark.parametrize(
    "file",
    [
        "llama_cpp_python-0.3.35-py3-none-any.whl",
        "llama_cpp_python-0.3.4-py3-none-any.whl",
        f"llama_cpp_python-{VERSION}rc1-py3-none-any.whl",
        f"llama_cpp_python-{VERSION}-cp27-cp27m-win32.whl",
        f"llama_cpp_python-{VERSION}-py3-none-manylinux_9_99_x86_64.whl",
        f"llama_cpp_python-{VERSION}.tar.gz",
        f"llama_cpp_python-{VERSION}.whl",
        "%1B]0;owned%07.whl",
    ],
)
def test_files_that_do_not(site: Site, file: str) -> None:
    site.pages[page("124")] = links(f"/releases/{file}")
    assert find(VERSION, CUDA, site.wheels) is None


def test_links_of_every_kind(site: Site) -> None:
    name = f"llama_cpp_python-{VERSION}-py3-none-any.whl"
    site.pages[page("124")] = links("mailto:x", "//[", f"ftp://x/{name}", f"file:///etc/{name}", "")
    assert find(VERSION, CUDA[:1], site.wheels) is None
    site.pages[page("124")] = links(f"../../v{VERSION}/{name}#sha256=ab&amp;x=1")
    wheel = find(VERSION, CUDA, site.wheels)
    assert wheel is not None
    assert wheel.url == f"{site.url}/whl/v{VERSION}/{name}#sha256=ab&x=1"
    assert wheel.file == name


def test_a_page_of_nonsense_has_no_wheels(site: Site) -> None:
    site.pages[page("124")] = bytes(range(256)) * 100
    assert find(VERSION, CUDA, site.wheels) is None


@pytest.mark.parametrize("status", [403, 500, 503])
def test_an_index_that_answers_with_an_error(site: Site, status: int) -> None:
    site.status[page("124")] = status
    with pytest.raises(DownloadFailed, match=str(status)):
        find(VERSION, CUDA, site.wheels)


def test_an_index_that_cannot_be_reached_is_asked_once() -> None:
    with pytest.raises(Offline, match="cannot be reached") as caught:
        find(VERSION, CUDA, "http://127.0.0.1:1/whl")
    assert "network" in caught.value.hint


def test_an_address_that_is_none() -> None:
    with pytest.raises(Offline):
        find(VERSION, CUDA, "nowhere")
