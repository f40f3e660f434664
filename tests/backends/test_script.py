"""A script says everything in a query string, and a bad one is refused by the name of the key."""

from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.scripted import Script, parse_script
from localinfer.errors import BadRequest

scripts = st.builds(
    Script,
    text=st.text(st.characters(codec="utf-8"), min_size=1),
    think=st.text(st.characters(codec="utf-8")),
    pace_s=st.floats(0, 3600),
    prefill_s=st.floats(0, 3600),
    chunk=st.integers(1, 4096),
    load_s=st.floats(0, 3600),
    acceptance=st.floats(0, 1),
    draft=st.integers(0, 16),
    curve=st.sampled_from([None, "cpu", "gpu", "flat", "1:1,2:1.8,8:4.5"]),
    draft_s=st.none() | st.floats(0, 3600),
    fail_load=st.sampled_from([None, "ModelFileInvalid", "OutOfMemory"]),
    die_after=st.none() | st.integers(0, 9),
    hang_after=st.none() | st.integers(0, 9),
    oom_after=st.none() | st.integers(0, 9),
    context=st.none() | st.integers(2, 1 << 20),
    slots=st.none() | st.integers(1, 64),
)


@given(scripts)
def test_a_query_string_says_the_whole_script(script: Script) -> None:
    given_values = {key: value for key, value in msgspec.structs.asdict(script).items() if value is not None}
    assert parse_script(urlencode(given_values)) == script


def test_an_empty_query_is_the_default_script() -> None:
    assert parse_script("") == Script()


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("speed=1", "speed"),
        ("text=", "text"),
        ("pace_s=fast", "pace_s"),
        ("pace_s=nan", "pace_s"),
        ("pace_s=-1", "pace_s"),
        ("prefill_s=inf", "prefill_s"),
        ("chunk=0", "chunk"),
        ("acceptance=1.1", "acceptance"),
        ("draft=-1", "draft"),
        ("curve=steep", "curve"),
        ("curve=2:1", "curve"),
        ("curve=1:1,0:2", "curve"),
        ("curve=1:1;8:2", "curve"),
        ("draft_s=-1", "draft_s"),
        ("slots=0", "slots"),
        ("context=1", "context"),
        ("fail_load=KeyError", "fail_load"),
        ("die_after=soon", "die_after"),
        ("text=Hello&pace_s=x", "pace_s"),
        ("just text", "model"),
        ("text=%ff", "model"),
    ],
)
def test_a_bad_script_names_the_key(query: str, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_script(query)
    assert caught.value.param == param
    assert param in caught.value.message or param == "model"
    assert caught.value.hint
