"""The rows of the column: their width, their place, and dashes for what was not measured."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.machine.values import GpuPulse, Power, Pulse
from localinfer.roofline import Roofline
from localinfer.types import Metrics
from tests.tui.readout.replies import NO_DRAFTS, phases, pulse
from tui.widgets.readout import Budget, DeviceMemory, Meter, Parts, Phase, Reading
from tui.widgets.readout.column import STYLES
from tui.widgets.readout.explanations import EXPLANATIONS
from tui.widgets.readout.layout import MARK, Line, draw, lines
from tui.widgets.readout.rows import Row, cell_len

WIDTH = 34
UNKNOWN = ("weights", "other")  # figures of which the readings below lack a part
PHASES = {**phases(), **{f"{phase} on a card": reading for phase, reading in phases(gpu=True).items()}}


def text(drawn: list[Line]) -> list[str]:
    return ["".join(span.text for span in line) for line in drawn]


def calm(reading: Reading, height: int, width: int = WIDTH) -> list[str]:
    return text(lines(reading, width, height, None)[0])


def rows(reading: Reading) -> list[Row]:
    return [one for section in draw(reading, WIDTH - 2) for one in section]


def shown(reading: Reading, words: str) -> str:
    """The row that begins so."""
    found = [one.text for one in rows(reading) if one.text.lstrip("░▒▓█┄· ").startswith(words)]
    assert found, words
    return found[0]


def optional(value: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.none(), value)


def fields(of: type, **given: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.fixed_dictionaries(given).map(lambda values: of(**values))


SECONDS = optional(st.floats(0, 1e6))
SHARE = optional(st.floats(0, 3))
COUNT = st.integers(0, 10**7)
BYTES = st.integers(0, 2**42)
NAME = st.text(max_size=60)
METRICS = fields(
    Metrics, ttft_s=SECONDS, prefill_tps=SECONDS, prompt_tokens=optional(COUNT), cached_tokens=optional(COUNT),
    completion_tokens=COUNT, tps=SECONDS, itl_p50_ms=SECONDS, itl_p99_ms=SECONDS, drafts=COUNT, drafted=COUNT,
    accepted=COUNT, acceptance_rate=SHARE, mean_accepted_length=SECONDS, speculation_gain=SECONDS,
    accepted_by_position=st.lists(st.floats(0, 1), max_size=70).map(tuple),
)  # fmt: skip
GPU = fields(
    GpuPulse, id=NAME, name=NAME, load=SHARE, temperature_c=SECONDS, used_bytes=optional(BYTES),
    total_bytes=optional(BYTES), power_w=SECONDS,
)  # fmt: skip
PULSE = fields(
    Pulse, at_s=st.just(0.0), cpu_load=SHARE, cpu_temperature_c=SECONDS, gpus=st.lists(GPU, max_size=3).map(tuple),
    ram_used_bytes=BYTES, ram_total_bytes=BYTES,
    power=fields(Power, source=st.sampled_from([None, "mains", "battery"]), battery_percent=optional(st.floats(0, 100)),
                 throttled=NAME),
)  # fmt: skip
MEMORY = fields(
    DeviceMemory, id=NAME, name=NAME, total_bytes=optional(BYTES), weights_bytes=BYTES, kv_bytes=BYTES,
    other_bytes=BYTES, programs_bytes=optional(BYTES),
)  # fmt: skip
READINGS = fields(
    Reading, phase=st.sampled_from(get_args(Phase)),
    metrics=optional(METRICS), load_progress=SHARE, ahead=optional(COUNT), prompt_tokens=optional(COUNT),
    prefilled=optional(COUNT), elapsed_s=SECONDS,
    parts=fields(Parts, load_s=SECONDS, queue_s=SECONDS, cached_s=SECONDS, prefill_s=SECONDS, first_s=SECONDS),
    live_tps=SECONDS, history=st.lists(SECONDS, max_size=60).map(tuple), history_second=st.integers(60, 10**6),
    roofline=optional(fields(Roofline, share=st.floats(0, 10), bandwidth=st.floats(0, 1e13), estimate=st.booleans())),
    drafter=NAME, off=NAME, memory=st.lists(MEMORY, max_size=3).map(tuple),
    budget=optional(fields(Budget, context=COUNT, system=COUNT, history=COUNT, reply=COUNT, cached=optional(COUNT))),
    pulse=optional(PULSE), threads=optional(COUNT), placement=NAME,
)  # fmt: skip


@given(READINGS, st.integers(0, 44), st.integers(0, 60), st.one_of(st.none(), st.integers(0, 60)))
def test_nothing_is_wider_or_higher_than_the_column(
    reading: Reading, width: int, height: int, chosen: int | None
) -> None:
    drawn, _ = lines(reading, width, height, chosen)
    assert len(drawn) <= height
    assert [cell_len(line) for line in text(drawn)] == [width] * len(drawn)
    assert {span.style for line in drawn for span in line} <= set(STYLES)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(text(drawn)))


@given(READINGS)
def test_every_figure_has_an_explanation(reading: Reading) -> None:
    assert {figure for one in rows(reading) for figure in one.figures} <= set(EXPLANATIONS)


def test_no_two_figures_share_a_definition() -> None:
    assert len({one.meaning for one in EXPLANATIONS.values()}) == len(EXPLANATIONS)
    paired = [(one.text, figure) for one in rows(PHASES["done on a card"]) if one.second for figure in one.figures]
    assert {figure for _, figure in paired} == {
        *("system", "earlier", "reply", "room"),
        *("weights", "kv", "other", "apps"),
        *("speculation", "gain", "passes", "places"),
    }
    assert all(EXPLANATIONS[figure].name.lower() in shown.lower() for shown, figure in paired)


def test_what_was_not_measured_is_a_dash() -> None:
    drawn = calm(Reading(), 60)
    assert not re.search(r"\d", re.sub(r"p50|p99", "", "".join(drawn)))
    told = "load, queue, cached, prefill, prefill speed, first, Speed, mean, Context, Roofline, CPU"
    for words in told.split(", "):
        assert "–" in shown(Reading(), words), words


@pytest.mark.parametrize("field", [name for name in Metrics.__struct_fields__ if name.endswith(("_s", "_ms", "tps"))])
def test_each_figure_that_is_missing_alone_is_a_dash(field: str) -> None:
    whole = PHASES["done on a card"]
    assert whole.metrics is not None
    assert not re.search("–", "".join(one.text for one in rows(whole) if one.figure not in UNKNOWN))
    lacking = msgspec.structs.replace(whole.metrics, **{field: None})
    changed = msgspec.structs.replace(whole, metrics=lacking)
    if field in ("itl_p50_ms", "itl_p99_ms", "tps", "prefill_tps"):
        assert "–" in "".join(one.text for one in rows(changed) if one.figure not in UNKNOWN)
    parts = {"queue_s": "queue", "load_s": "load", "prefill_s": "prefill", "first_decode_s": "first token"}
    if field in parts:
        part = {"first_decode_s": "first_s"}.get(field, field)
        changed = msgspec.structs.replace(whole, parts=msgspec.structs.replace(whole.parts, **{part: None}))
        assert shown(changed, parts[field]).endswith("– s")


def test_what_the_column_says_of_a_prefill() -> None:
    reading = PHASES["prefill"]
    assert shown(reading, "TTFT · first text").endswith("3.20 s")
    assert re.search(r"576/1,286 +1\.60 s$", shown(reading, "prefill"))
    assert re.search(r"1,024 +0\.10 s$", shown(reading, "cached"))
    assert shown(reading, "prefill speed").endswith("411 tok/s")
    assert shown(reading, "Context").endswith("2,310 of 8,192 tokens")


def test_what_the_column_says_of_a_reply() -> None:
    reading = PHASES["done on a card"]
    assert reading.metrics is not None
    assert shown(reading, "Speed").endswith(f"{reading.metrics.tps:.0f} tok/s")
    assert shown(reading, "Speculation").endswith(" gain 1.60×")
    assert shown(reading, "prompt lookup").strip() == "prompt lookup"
    assert shown(reading, "accepted").split() == ["accepted", "33", "%", "of", "600", "drafted"]
    assert shown(reading, "per pass").split() == ["per", "pass", "2.0", "places", "█▁▁········"]
    assert shown(reading, "tokens").split() == ["tokens", "2,310", "in", "·", "400", "out"]
    assert shown(reading, "GPU").split()[-5:] == ["%", "64", "°C", "112", "W"]
    assert shown(reading, "power").endswith("battery 62 %")


def speculation(reading: Reading) -> list[str]:
    """The section, row by row."""
    (found,) = [
        [one.text.rstrip() for one in section] for section in draw(reading, WIDTH - 2) if is_speculation(section)
    ]
    return found


def is_speculation(section: list[Row]) -> bool:
    return section[0].figure == "speculation"


def test_speculation_is_a_section_where_something_is_known_of_it_and_only_there() -> None:
    without = msgspec.structs.replace(PHASES["done"], off="")
    for reading in (without, Reading()):
        assert not any(is_speculation(section) for section in draw(reading, WIDTH - 2))
    assert without.metrics is not None
    drafted = msgspec.structs.replace(without.metrics, drafts=10, drafted=30, accepted=12, acceptance_rate=0.4)
    assert "40 % of    30 drafted" in speculation(msgspec.structs.replace(without, metrics=drafted))[2]
    before = msgspec.structs.replace(without, drafter="prompt lookup", metrics=None)
    assert [line.split() for line in speculation(before)] == [
        ["Speculation", "gain", "–"],
        ["prompt", "lookup"],
        ["accepted", "–", "%", "of", "–", "drafted"],
        ["per", "pass", "–", "places", "·" * 11],
    ]


def test_where_nothing_can_draft_the_reason_is_all_that_is_told() -> None:
    assert [line.split()[-1] for line in speculation(PHASES["done"])] == ["off", "back"]
    assert speculation(PHASES["done"])[1] == NO_DRAFTS
    long = msgspec.structs.replace(PHASES["done"], off="word " * 100)
    assert len(speculation(long)) == 4


def test_a_drafter_that_pauses_says_why_and_keeps_its_rows() -> None:
    drafting = PHASES["decode on a card"]
    off = msgspec.structs.replace(drafting, off="drafts do not pay on this text, as measured")
    before, after = speculation(drafting), speculation(off)
    assert len(before) == len(after)
    assert after[0].endswith("paused · gain 1.60×")
    assert after[1] == "drafts do not pay on this text,…"
    assert after[2:] == before[2:]
    number = [figure for one in rows(off) for figure in one.figures].index("drafter")
    told = " ".join(line.strip() for line in text(lines(off, WIDTH, 40, number)[0]))
    assert "at present. drafts do not pay on this text, as measured" in told, "the whole of it on focus"
    never = msgspec.structs.replace(off, metrics=Metrics())
    assert speculation(never)[0].split() == ["Speculation", "paused"]


def test_loading_is_told_and_the_last_reply_stays() -> None:
    getting = msgspec.structs.replace(PHASES["done"], phase="loading", load_progress=0.43)
    assert shown(getting, "TTFT").endswith("5.01 s")
    assert shown(getting, "Speed") == shown(PHASES["done"], "Speed")
    assert shown(getting, "load").endswith(shown(PHASES["done"], "load").split("load")[1])
    assert shown(getting, "Machine").endswith("loading 43 %")
    assert shown(Reading(phase="loading", load_progress=0.43), "TTFT").endswith("loading 43 %")
    assert shown(Reading(phase="checking"), "TTFT").endswith("checking …")


def test_a_reply_of_the_past_has_the_figures_that_were_kept() -> None:
    meter = Meter()
    meter.recall(Metrics(prompt_tokens=310, cached_tokens=10, completion_tokens=5, ttft_s=1.5, prefill_s=1.2))
    kept = meter.read(0)
    assert shown(kept, "TTFT").endswith("1.50 s")
    assert re.search(r"300 +1\.20 s$", shown(kept, "prefill"))
    assert shown(kept, "queue").endswith("– s")
    meter.recall(Metrics(prompt_tokens=310, cached_tokens=10))
    assert "–/300" in shown(meter.read(0), "prefill")  # it was stopped before it was through


def test_what_slows_the_machine_down_is_told_in_words_and_moves_nothing() -> None:
    reading = PHASES["decode"]
    hot = msgspec.structs.replace(reading, pulse=pulse(throttled="the processor is slowed down to stay cool"))
    before, after = calm(reading, 36), calm(hot, 36)
    assert after[: len(before)] == before
    assert " ".join(line.strip() for line in after[len(before) :]) == "The processor is slowed down to stay cool"


@pytest.mark.parametrize("height", [9, 20, 34, 35, 36, 50])
def test_what_slows_the_machine_down_is_told_at_every_height(height: int) -> None:
    hot = msgspec.structs.replace(PHASES["decode on a card"], pulse=pulse(gpu=True, throttled="the card is too hot"))
    assert "The card is too hot" in calm(hot, height)[-1]


@pytest.mark.parametrize("height", [12, 21, 33, 48])
@pytest.mark.parametrize("card", ["", " on a card"])
def test_rows_keep_their_places_through_all_phases_of_a_reply(height: int, card: str) -> None:
    titles = []
    for phase in ("queued", "prefill", "decode", "done"):
        drawn = calm(PHASES[f"{phase}{card}"], height)
        titles.append([(y, line.split()[0]) for y, line in enumerate(drawn) if line[1:2].isupper()])
    assert titles[0]
    assert all(found == titles[0] for found in titles)


def test_the_most_important_sections_stay_longest() -> None:
    def sections(height: int) -> set[str]:
        titles = {"TTFT", "Speed", "Context", "Speculation", "Roofline", "RAM", "Machine"}
        return titles & {line.split()[0] for line in calm(PHASES["decode"], height) if line.strip()}

    assert sections(9) == {"TTFT"}
    assert sections(20) >= {"TTFT", "Speed", "Context"}
    assert "Machine" not in sections(24)
    assert len(sections(34)) == 7
    previous: set[str] = set()
    for height in range(1, 50):
        assert previous <= sections(height)
        previous = sections(height)


def test_every_figure_can_be_reached_also_where_there_is_no_room() -> None:
    reading = PHASES["decode"]
    stops = [(one, figure) for one in rows(reading) for figure in one.figures]
    for number, (stop, figure) in enumerate(stops):
        drawn, chosen = lines(reading, WIDTH, 14, number)
        (marked,) = [line for line in text(drawn) if MARK in line]
        assert chosen == number
        place = marked.index(MARK)
        assert f"{marked[:place]} {marked[place + 1 :]}" == f" {stop.text} "
        if stop.second:
            assert EXPLANATIONS[figure].name in marked[place + 1 :][:10]
        name, meaning = EXPLANATIONS[figure]
        below = text(drawn)[[line.startswith(" ── ") for line in text(drawn)].index(True) :]
        assert name in below[0]
        told = " ".join(line.strip() for line in below[1:])
        assert told.lower() == f"{meaning}.".lower()
    assert lines(reading, WIDTH, 14, 999)[1] == len(stops) - 1


README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8").replace("`", "")


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("ttft", "TTFT"),
        ("mean", "tok/s"),
        ("prefill_tps", "prefill_tps"),
        ("acceptance", "acceptance_rate"),
        ("passes", "mean_accepted_length"),
        ("places", "accepted_by_position"),
        ("gain", "speculation_gain"),
        ("roofline", "roofline"),
        ("system", "system"),
        ("earlier", "history"),
        ("reply", "reply"),
    ],
)
def test_definitions_are_those_of_the_readme(figure: str, name: str) -> None:
    (definition,) = re.findall(rf"^\| {re.escape(name)}[^|]*\| (.*) \|$", README, re.MULTILINE)
    assert EXPLANATIONS[figure].meaning.replace("’", "'").startswith(definition)
