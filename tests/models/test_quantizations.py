"""Names of files as they stand on the hub, and the models that they make."""

import pytest

from localinfer.errors import ModelFileInvalid, ModelNotFound
from localinfer.models.quantizations import RepoFile, choose, choose_file, complete, group, projectors

BLOB = "a" * 40


def files(*paths: str) -> list[RepoFile]:
    """Files of growing sizes."""
    return [RepoFile(path=path, size_bytes=1000 + number, blob_id=BLOB) for number, path in enumerate(paths)]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-7b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("model.Q8_0.gguf", "Q8_0"),
        ("Llama-3.2-1B-Instruct-IQ3_XXS.gguf", "IQ3_XXS"),
        ("Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("x-MXFP4_MOE.gguf", "MXFP4_MOE"),
        ("gemma-3-4b-it-BF16.gguf", "BF16"),
        ("gemma-fp16.gguf", "F16"),
        ("x-Q4_0_4_8.gguf", "Q4_0_4_8"),
        ("x-TQ1_0.gguf", "TQ1_0"),
        ("x-Q2_K_L.gguf", "Q2_K_L"),
        ("x-IQ4_NL.gguf", "IQ4_NL"),
        ("Q6_K/part.gguf", "Q6_K"),
        ("BF16/Q8_0/x.gguf", "Q8_0"),
        ("Model-Q3-distill.Q5_K_S.gguf", "Q5_K_S"),
        ("ggml-model.gguf", "ggml-model"),
    ],
)
def test_a_file_name_tells_the_quantization(path: str, name: str) -> None:
    assert [one.name for one in group(files(path), "a/b", False)] == [name]


def test_shards_are_one_unit_in_their_order_with_one_size() -> None:
    listed = files(*(f"Q4_K_M/m-Q4_K_M-0000{number}-of-00003.gguf" for number in (3, 1, 2)))
    (one,) = group(listed, "a/b", False)
    assert [file.path[-19:-14] for file in one.files] == ["00001", "00002", "00003"]
    assert one.size_bytes == 3003
    assert one.missing == ()


def test_a_set_that_lacks_a_shard_says_which_and_is_refused() -> None:
    (one,) = group(files("m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf"), "a/b", False)
    assert one.missing == ("m-Q8_0-00002-of-00003.gguf",)
    with pytest.raises(ModelFileInvalid, match="00002-of-00003"):
        complete(one, "a/b")


def test_a_name_that_claims_a_hundred_thousand_shards_costs_nothing() -> None:
    (one,) = group(files("m-Q8_0-00001-of-99999.gguf"), "a/b", False)
    assert 0 < len(one.missing) < 1000


def test_projectors_and_matrices_are_no_models() -> None:
    listed = files("mmproj-F16.gguf", "m-mmproj-BF16.gguf", "m-Q4_0.gguf", "imatrix_unsloth.gguf", "README.md")
    assert [one.name for one in group(listed, "a/b", False)] == ["Q4_0"]
    assert [file.path for file in projectors(listed)] == ["mmproj-F16.gguf", "m-mmproj-BF16.gguf"]


def test_two_models_of_one_type_get_the_names_of_their_files() -> None:
    found = group(files("small-Q4_0.gguf", "draft/large-Q4_0.gguf", "x-Q8_0.gguf"), "a/b", False)
    assert [one.name for one in found] == ["small-Q4_0", "draft/large-Q4_0", "Q8_0"]


@pytest.mark.parametrize(
    ("repo", "name"),
    [
        ("mlx-community/Qwen3-8B-4bit", "4bit"),
        ("mlx-community/Qwen3-8B-4bit-DWQ", "4bit-DWQ"),
        ("mlx-community/x-bf16", "bf16"),
        ("a/x", "MLX"),
    ],
)
def test_a_folder_for_mlx_is_one_unit_without_code(repo: str, name: str) -> None:
    listed = files(
        *("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json"),
        *("chat_template.jinja", "README.md", "modeling_x.py", "onnx/model.json"),
    )
    (one,) = group(listed, repo, True)
    assert (one.name, one.format, len(one.files)) == (name, "mlx", 5)
    assert group(listed, repo, False) == ()


def test_a_folder_for_mlx_that_lacks_weights_says_so() -> None:
    (one,) = group(files("config.json", "model-00002-of-00002.safetensors"), "a/b", True)
    assert one.missing == ("model-00001-of-00002.safetensors",)


def test_a_quantization_is_found_in_any_case_with_or_without_its_prefix() -> None:
    found = group(files("m-UD-Q4_K_XL.gguf", "m-Q8_0.gguf"), "a/b", False)
    assert choose(found, "ud-q4_k_xl", "a/b") == choose(found, "Q4_K_XL", "a/b") == found[0]
    assert choose_file(found, "m-Q8_0.gguf", "a/b") == found[1]


def test_what_is_not_there_gets_the_nearest_names() -> None:
    found = group(files("m-Q4_K_M.gguf", "m-Q8_0.gguf"), "a/b", False)
    with pytest.raises(ModelNotFound) as caught:
        choose(found, "Q4_K_S", "a/b")
    assert "Q4_K_M" in caught.value.hint
    with pytest.raises(ModelNotFound) as caught:
        choose(found, "zzz", "a/b")
    assert caught.value.hint == "It has Q4_K_M, Q8_0."
    with pytest.raises(ModelNotFound) as caught:
        choose_file(found, "m-Q4_K_L.gguf", "a/b")
    assert "m-Q4_K_M.gguf" in caught.value.hint
