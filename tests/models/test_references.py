"""What people write for a model on the hub."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import BadRequest
from localinfer.models.names import safe_file_path
from localinfer.models.references import HubReference, is_repo, may_be_hub, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-8B-GGUF", HubReference(repo="Qwen/Qwen3-8B-GGUF")),
        ("  unsloth/Qwen3.5-9B_x-GGUF ", HubReference(repo="unsloth/Qwen3.5-9B_x-GGUF")),
        ("unsloth/gemma-GGUF:UD-Q4_K_XL", HubReference(repo="unsloth/gemma-GGUF", quantization="UD-Q4_K_XL")),
        ("hf.co/a/b:q8_0", HubReference(repo="a/b", quantization="q8_0")),
        ("huggingface.co/a/b", HubReference(repo="a/b")),
        ("https://huggingface.co/a/b/", HubReference(repo="a/b")),
        ("HTTPS://HF.co/a/b?library=x#card", HubReference(repo="a/b")),
        ("hf://a/b", HubReference(repo="a/b")),
        ("a/b/c.gguf", HubReference(repo="a/b", file="c.gguf")),
        ("a/b/UD-Q4/c-00001-of-00003.gguf", HubReference(repo="a/b", file="UD-Q4/c-00001-of-00003.gguf")),
        ("https://huggingface.co/a/b/blob/main/c.gguf", HubReference(repo="a/b", file="c.gguf", revision="main")),
        (
            "https://huggingface.co/a/b/resolve/v2/d/c.gguf?download=true",
            HubReference(repo="a/b", file="d/c.gguf", revision="v2"),
        ),
        ("https://huggingface.co/a/b/tree/main", HubReference(repo="a/b", revision="main")),
    ],
)
def test_a_reference_means(text: str, expected: HubReference) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "a/", "/b", "a//b", "a b/c", "a/b:", "a/b:Q4/x", "a/b:Q4:Q5", "a/b/c.bin", "a/b/", "a/b/.gguf"),
        *("../b", "a/..", "a/../c.gguf", "a/b/../c.gguf", "a/b/x\\..\\c.gguf", "a/b/C:c.gguf", "a/b/CON.gguf"),
        *("a--b/c", "a/b--c", "a/.b", "-a/b", "a/b/\x1b[2Jc.gguf", "https://example.org/a/b", "ftp://hf.co/a/b"),
        *("a/" + "b" * 200, "a/b/" + "d/" * 20 + "c.gguf", "ä/b", "https://huggingface.co/"),
    ],
)
def test_what_can_be_no_reference_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(text)
    assert caught.value.hint
    assert caught.value.message.isprintable()


@given(st.text(st.sampled_from("ab./:-_\\~ \x1bQ4gufhco"), max_size=30))
def test_whatever_is_written_names_safe_files_or_is_refused(text: str) -> None:
    try:
        found = parse(text)
    except BadRequest:
        return
    assert is_repo(found.repo)
    assert found.file is None or safe_file_path(found.file)
    assert parse(str(found)) == HubReference(repo=found.repo, quantization=found.quantization, file=found.file)


@pytest.mark.parametrize(("text", "expected"), [("a/b", True), ("hf.co/x", True), ("./a/b", False), ("smollm2", False)])
def test_only_what_has_the_form_may_be_on_the_hub(text: str, expected: bool) -> None:
    assert may_be_hub(text) is expected
