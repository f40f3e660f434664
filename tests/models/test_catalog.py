from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.errors import BadRequest, ModelNotFound
from localinfer.models.catalog import catalog, parse
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

    def test_parts_are_smaller_than_the_file(self) -> None:
        for model in catalog().models:
            for quantization in model.quantizations:
                assert 0 < sum(source.wheel_bytes for source in quantization.pypi) <= quantization.size_bytes
                assert quantization.size_bytes < model.parameters * 4

    @pytest.mark.parametrize("wrong", ["smolm2", "smollm-135m", "SMOLLM2-135B"])
    def test_near_names_are_suggested(self, wrong: str) -> None:
        with pytest.raises(ModelNotFound, match=wrong) as caught:
            catalog().find(wrong)
        assert caught.value.hint.startswith("Did you mean smollm2")

    def test_all_names_are_listed_when_none_is_near(self) -> None:
        with pytest.raises(ModelNotFound) as caught:
            catalog().find("qqqq")
        assert all(model.id in caught.value.hint for model in catalog().models)


class TestMalformed:
    def test_the_example_is_well_formed(self) -> None:
        assert parse(ENTRY, "x").starter.aliases == ("d",)

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
