"""The line of figures and the object of them, where something drafts."""

from localinfer.cli import afterwards, figures
from localinfer.cli.loading import speculation
from localinfer.types import EngineStatus, Metrics, ModelInfo, Speculation

DRAFTED = Metrics(
    completion_tokens=64,
    tps=50.0,
    drafts=20,
    drafted=40,
    accepted=36,
    acceptance_rate=0.9,
    mean_accepted_length=2.8,
    accepted_by_position=(0.95, 0.85),
    speculation_gain=1.624,
    drafter="prompt lookup",
)
INFO = ModelInfo(
    name="a model",
    backend="llama.cpp",
    description="",
    context=8192,
    slots=1,
    vocabulary=1,
    parameters=1,
    weights_bytes=1,
    kv_bytes=1,
    placement="CPU",
    notices=("A notice.",),
)


def status(**fields: str) -> EngineStatus:
    info = ModelInfo(**{name: getattr(INFO, name) for name in INFO.__struct_fields__} | fields)
    return EngineStatus(state="ready", model=info)


def test_the_line_says_what_drafts_gained() -> None:
    assert "drafts 90 % accepted · 1.62× plain" in figures.line(DRAFTED, status())
    assert "plain" not in figures.line(Metrics(completion_tokens=3), status())


def test_why_nothing_drafts_is_in_the_line_where_it_was_asked_for() -> None:
    off = Metrics(completion_tokens=64, tps=50.0, drafter="prompt lookup", speculation_off="it does not pay")
    assert "does not pay" not in figures.line(off, status())
    assert "no drafts: it does not pay" in figures.line(off, status(), asked=True)
    never = figures.line(Metrics(), status(no_speculation="its state cannot go back"), asked=True)
    assert "no drafts: its state cannot go back" in never


def test_the_object_always_says_it() -> None:
    told = figures.json_object(DRAFTED, status())
    assert (told["speculation_gain"], told["drafter"], told["speculation_off"]) == (1.624, "prompt lookup", None)
    assert told["accepted_by_position"] == (0.95, 0.85)
    never = figures.json_object(Metrics(), status(no_speculation="its state cannot go back"))
    assert (never["drafter"], never["speculation_off"]) == (None, "its state cannot go back")
    assert set(told) == {"model", "backend", "device", *figures.JSON_KEYS}


def test_a_draft_that_was_not_loaded_is_a_notice() -> None:
    assert afterwards.notices(INFO) == ("A notice.",)
    assert afterwards.notices(status(no_draft="It is damaged.").model) == ("A notice.", "It is damaged.")
    assert afterwards.notices(None) == ()


def test_what_requests_ask_for() -> None:
    assert [speculation(word) for word in ("auto", "small.gguf")] == [Speculation(), Speculation()]
    assert [speculation(word).drafter for word in ("lookup", "off")] == ["lookup", "off"]
