"""The parameters of a conversation: there and back, wrong values explained in place, presets."""

import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static, TextArea

from localinfer import presets
from localinfer.errors import BadRequest
from localinfer.generation import check
from localinfer.history.values import Parameters
from localinfer.presets import Preset
from localinfer.types import GenerationRequest, Sampling, Speculation
from tests.tui.waiting import until
from tui import parameters as fields
from tui.parameters import FIELDS, ModelFacts
from tui.screens.confirm import Ask, Confirm
from tui.screens.parameters import ParametersScreen
from tui.widgets.form import Choice, Row

MINE = Parameters(
    system="Be [b]brief[/b].\nAlways.",
    sampling=Sampling(temperature=0.25, seed=7, logit_bias={5: -1.5}, dry_sequence_breakers=("\n", "[x]")),
    speculation=Speculation(drafter="lookup", most=8),
    max_tokens=1200,
    draft="qwen3-0.6b",
    context=4096,
    kv_type="q8_0",
    threads=3,
)


class TestTexts:
    def test_every_parameter_has_a_field_and_no_other(self) -> None:
        nested = {"sampling": Sampling, "speculation": Speculation}
        mine = [name for name in Parameters.__struct_fields__ if name not in nested]
        mine += [name for kind in nested.values() for name in kind.__struct_fields__]
        assert sorted(field.name for field in FIELDS) == sorted(mine)

    def test_nothing_is_written_where_nothing_differs(self) -> None:
        assert set(fields.texts(Parameters()).values()) == {""}
        assert fields.parameters(fields.texts(Parameters())) == Parameters()

    def test_there_and_back(self) -> None:
        assert fields.parameters(fields.texts(MINE)) == MINE

    @given(
        temperature=st.floats(0, 100),
        top_k=st.integers(0, 2**31 - 1),
        seed=st.none() | st.integers(0, 2**32 - 1),
        bias=st.dictionaries(st.integers(0, 2**31), st.floats(-100, 100, allow_nan=False)),
        breakers=st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    )
    def test_any_value_there_and_back(
        self, temperature: float, top_k: int, seed: int | None, bias: dict[int, float], breakers: list[str]
    ) -> None:
        sampling = Sampling(
            temperature=float(f"{temperature:.10g}"),
            top_k=top_k,
            seed=seed,
            logit_bias=bias,
            dry_sequence_breakers=tuple(breakers),
        )
        assert fields.parameters(fields.texts(Parameters(sampling=sampling))).sampling == sampling

    @given(st.sampled_from(FIELDS), st.text(string.printable + "世½∞", max_size=20))
    def test_whatever_is_typed_it_is_refused_or_can_be_carried_out(self, field: fields.Field, text: str) -> None:
        texts = fields.texts(Parameters()) | {field.name: text}
        found = fields.problems(texts)
        assert set(found) <= {field.name}
        if found:
            with pytest.raises(BadRequest):
                fields.parameters(texts)
        else:
            wanted = fields.parameters(texts)
            sampling, speculation = wanted.sampling, wanted.speculation
            check(
                GenerationRequest(prompt="-", sampling=sampling, max_tokens=wanted.max_tokens, speculation=speculation)
            )

    @pytest.mark.parametrize(
        ("name", "text", "said"),
        [
            ("temperature", "warm", "Temperature must be a number, not warm."),
            ("temperature", "warm, not cold", "Temperature must be a number, not warm, not cold."),
            ("temperature", "101", "Temperature must be a number from 0 to 100, not 101."),
            ("temperature", "nan", "Temperature must be a number"),
            ("top_p", "0", "above 0"),
            ("top_k", "1.5", "Top K must be a whole number, not 1.5."),
            ("seed", "-1", "Seed must be a number from 0"),
            ("max_tokens", "0", "Longest reply must be from 1"),
            ("context", "0", "Context must be a whole number of 1 or more, not 0."),
            ("threads", "two", "Threads must be a whole number"),
            ("most", "-1", "Longest draft must be a number from 0 to 1,024, not -1."),
            ("most", "few", "Longest draft must be a whole number, not few."),
            ("drafter", "magic", "Nothing drafts that is called “magic”."),
            ("logit_bias", "{5: 1}", "not JSON that gives token ids a number"),
            ("logit_bias", '{"five": 1}', "not JSON that gives token ids a number"),
            ("dry_sequence_breakers", "[1]", "not a JSON list of texts"),
            ("kv_type", "q3", "There is no KV cache type “q3”."),
        ],
    )
    def test_what_is_wrong_is_said(self, name: str, text: str, said: str) -> None:
        assert said in fields.problems({name: text})[name]

    @given(st.sampled_from(FIELDS), st.sampled_from(["-1", "0", "5", "1e99", "x", "nan", "1.5"]))
    def test_a_message_names_the_field_and_the_text_as_they_are_seen(self, field: fields.Field, text: str) -> None:
        said = fields.problems({field.name: text}).get(field.name)
        if said is not None and field.name not in ("logit_bias", "dry_sequence_breakers", "kv_type", "drafter"):
            assert said.startswith(f"{field.label} must be ")
            assert said.endswith(f", not {text}.")
            assert "_" not in said

    def test_a_context_that_may_disappoint(self) -> None:
        facts = ModelFacts(trained_context=32_768, max_context=20_000)
        assert fields.cautions({"context": "20000"}, facts) == {}
        assert "room for 20,000 tokens" in fields.cautions({"context": "20,001"}, facts)["context"]
        roomy = ModelFacts(trained_context=32_768, max_context=90_000)
        assert "trained for 32,768 tokens" in fields.cautions({"context": "32769"}, roomy)["context"]
        assert fields.cautions({"context": "99999999"}, ModelFacts()) == {}
        assert fields.cautions({"context": "x"}, facts) == fields.cautions({"context": ""}, facts) == {}

    @pytest.mark.parametrize("text", ["8192", " 8,192 ", "8 192"])
    def test_numbers_as_people_write_them(self, text: str) -> None:
        assert fields.parameters(fields.texts(Parameters()) | {"context": text}).context == 8192

    def test_what_holds_when_a_field_is_empty(self) -> None:
        facts = ModelFacts(name="a model", context=2048, threads=2)
        said = {field.name: fields.placeholder(field, facts) for field in FIELDS}
        assert said["temperature"] == "0.8"
        assert said["context"].startswith("2,048 ")
        assert said["threads"].startswith("2 now")
        assert said["draft"].startswith("none now")
        loaded = msgspec.structs.replace(facts, draft="qwen3-0.6b")
        assert {fields.placeholder(field, loaded) for field in FIELDS} - set(said.values()) == {
            "qwen3-0.6b now · the one that suits"
        }
        assert all(said[name] for name in said if name != "kv_type")


class Editing(App[None]):
    def __init__(self, parameters: Parameters = MINE) -> None:
        super().__init__()
        self.given = parameters
        self.result: list[Parameters | None] = []

    def on_mount(self) -> None:
        facts = ModelFacts(name="SmolLM2", context=8192, trained_context=2048, threads=2, kv_type="f16")
        self.push_screen(ParametersScreen(self.given, facts), self.result.append)


def row(app: App[None], name: str) -> Row:
    return app.screen.query_one(f"#row-{name}", Row)


def state(app: App[None]) -> str:
    return str(app.screen.query_one("#state", Static).render())


async def put(pilot: Pilot[None], name: str, text: str) -> None:
    """Type ``text`` in place of what is in a field."""
    row(pilot.app, name).editor.focus()
    await pilot.press("ctrl+u", *text)
    await pilot.pause()


class TestScreen:
    async def test_what_is_shown_is_what_comes_back(self) -> None:
        app = Editing()
        async with app.run_test() as pilot:
            await pilot.pause()
            await pilot.press("enter")
            await until(pilot, lambda: app.result == [MINE])

    async def test_a_change_is_applied_and_leaving_changes_nothing(self) -> None:
        app = Editing(Parameters())
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert row(app, "temperature").editor.has_focus
            await pilot.press(*"0.5", "down", *"0.9", "enter")
            await until(pilot, lambda: app.result == [Parameters(sampling=Sampling(temperature=0.5, top_p=0.9))])
        app = Editing()
        async with app.run_test() as pilot:
            await pilot.press(*"99", "escape")
            await until(pilot, lambda: app.result == [None])

    async def test_a_wrong_value_is_explained_in_place_and_cannot_be_applied(self) -> None:
        app = Editing(Parameters())
        async with app.run_test(size=(80, 24)) as pilot:
            await put(pilot, "temperature", "200")
            problem = row(app, "temperature").query_one(".problem", Static)
            assert problem.display
            assert "Temperature must be a number from 0 to 100" in str(problem.render())
            assert "1 value to correct" in state(app)
            await put(pilot, "top_p", "x")
            assert "2 values to correct" in state(app)
            await pilot.press("enter")
            assert app.result == []
            assert row(app, "temperature").editor.has_focus, "the first that is wrong"
            await pilot.press("ctrl+u")
            await put(pilot, "top_p", "")
            assert not problem.display
            await pilot.press("enter")
            await until(pilot, lambda: app.result == [Parameters()])

    async def test_a_change_that_loads_the_model_again_says_so(self) -> None:
        app = Editing(Parameters())
        async with app.run_test() as pilot:
            await put(pilot, "temperature", "1")
            assert "loads the model again" not in state(app)
            await put(pilot, "context", "4096")
            assert "loads the model again (Context)" in state(app)
            row(app, "kv_type").editor.focus()
            await pilot.press("right", "right")
            assert "(Context, KV cache)" in state(app)
            await pilot.press("enter")
            await until(
                pilot,
                lambda: app.result == [Parameters(sampling=Sampling(temperature=1), context=4096, kv_type="q8_0")],
            )

    async def test_what_drafts_is_chosen_and_only_another_draft_model_loads_the_model_again(self) -> None:
        app = Editing(Parameters())
        async with app.run_test() as pilot:
            row(app, "drafter").editor.focus()
            await pilot.press("right", "right", "right")
            await put(pilot, "most", "16")
            assert "loads the model again" not in state(app)
            await put(pilot, "draft", "small")
            assert "loads the model again (Draft model)" in state(app)
            await put(pilot, "draft", "")
            await pilot.press("enter")
            await until(pilot, lambda: app.result == [Parameters(speculation=Speculation(drafter="off", most=16))])

    async def test_a_context_beyond_the_model_is_said_in_place_and_can_be_applied(self) -> None:
        app = Editing(Parameters())
        async with app.run_test(size=(80, 24)) as pilot:
            await put(pilot, "context", "4096")
            said = row(app, "context").query_one(".problem", Static)
            assert said.display
            assert "trained for 2,048 tokens" in str(said.render())
            await put(pilot, "context", "1024")
            assert not said.display
            await put(pilot, "context", "4096")
            await pilot.press("enter")
            await until(pilot, lambda: app.result == [Parameters(context=4096)])

    async def test_what_enter_does_is_what_is_said_of_it(self) -> None:
        app = Editing(Parameters())
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            area = row(app, "system").editor
            before = area.region
            area.focus()
            await pilot.pause()
            assert area.region.size == before.size
            assert area.content_size.width == before.width - 2, "the focus takes no room from the text"
            assert "Enter applies" in state(app)
            assert "Ctrl+J begins a new line" in state(app)
            app.screen.query_one("#more").focus()
            await pilot.pause()
            assert "Enter applies" not in state(app)
            area.focus()
            await pilot.press("a", "ctrl+j", "b", "enter")
            await until(pilot, lambda: app.result == [Parameters(system="a\nb")])

    async def test_what_is_wrong_stands_under_the_text(self) -> None:
        app = Editing(Parameters())
        async with app.run_test(size=(80, 24)) as pilot:
            await put(pilot, "top_p", "5")
            one = row(app, "top_p")
            assert one.query_one(".problem").content_region.x == one.editor.content_region.x

    async def test_each_field_says_what_it_means(self) -> None:
        app = Editing(Parameters())
        async with app.run_test() as pilot:
            meaning = app.screen.query_one("#meaning", Static)
            await put(pilot, "context", "")
            assert "trained for 2,048" in str(meaning.render())
            await put(pilot, "top_p", "")
            assert "Default 0.95" in str(meaning.render())

    async def test_more_is_folded_unless_something_in_it_was_changed(self) -> None:
        app = Editing(Parameters())
        async with app.run_test() as pilot:
            rest = app.screen.query_one("#rest")
            assert not rest.display
            app.screen.query_one("#more").focus()
            await pilot.press("enter")
            await until(pilot, lambda: len(rest.query(Row)) > 10)
            assert rest.display
            await put(pilot, "mirostat", "3")
            app.screen.query_one("#more").focus()
            await pilot.press("enter")
            assert not rest.display
            row(app, "seed").editor.focus()
            await pilot.press("enter")
            assert rest.display, "what is wrong is shown"
            assert row(app, "mirostat").editor.has_focus
        app = Editing(Parameters(sampling=Sampling(mirostat=2)))
        async with app.run_test() as pilot:
            await pilot.pause()
            assert app.screen.query_one("#rest").display

    async def test_the_system_prompt_has_lines_and_hostile_text_is_text(self) -> None:
        app = Editing(Parameters(system="[/b]\x1b[31m"))
        async with app.run_test() as pilot:
            await pilot.pause()
            area = app.screen.query_one(TextArea)
            assert area.text == "[/b]\x1b[31m", "what is drawn is another matter"


class TestPresets:
    async def test_a_preset_is_chosen_and_what_it_leaves_alone_stays(self) -> None:
        app = Editing(Parameters(system="Mine.", context=1024))
        async with app.run_test() as pilot:
            await pilot.pause()
            choice = app.screen.query_one("#preset", Choice)
            assert choice.value == "balanced", "the defaults"
            choice.focus()
            await pilot.press("right")
            assert choice.value == "creative"
            await pilot.press("left", "left")
            assert choice.value == "precise"
            await pilot.press("enter")
            wanted = Parameters(system="Mine.", context=1024, sampling=presets.BUILT_IN[0].sampling)
            await until(pilot, lambda: app.result == [wanted])

    async def test_saving_and_deleting(self) -> None:
        app = Editing(Parameters(system="Brief.", sampling=Sampling(temperature=0.33)))
        async with app.run_test() as pilot:
            await pilot.pause()
            choice = app.screen.query_one("#preset", Choice)
            assert choice.value == ""
            await pilot.press("f2")
            await until(pilot, lambda: isinstance(app.screen, Ask))
            await pilot.press(*"precise", "enter")
            problem = app.screen.query_one(".problem", Static)
            await until(pilot, lambda: "built in" in str(problem.render()))
            await pilot.press("2", "enter")
            await until(pilot, lambda: choice.value == "precise2")
            kept = Preset(name="precise2", sampling=Sampling(temperature=0.33), system="Brief.")
            assert presets.presets()[-1] == kept
            app.screen.query_one("#delete").focus()
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Confirm))
            await pilot.press("y")
            await until(pilot, lambda: presets.presets() == presets.BUILT_IN)

    async def test_a_preset_with_values_that_are_not_allowed_is_explained(self) -> None:
        bad = msgspec.structs.replace(Sampling(), temperature=500.0)
        presets.save(Preset(name="a bad one", sampling=bad))
        app = Editing(Parameters())
        async with app.run_test() as pilot:
            await pilot.pause()
            app.screen.query_one("#preset", Choice).focus()
            await pilot.press("right", "right", "enter")
            assert app.result == []
            assert "1 value to correct" in state(app)
