"""A conversation written out says all there is, to people and to programs, and commands nothing."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from localinfer.history.export import Exported, file_name, to_json, to_markdown
from localinfer.history.values import Attachment, Conversation, Omission, Parameters, Turn
from localinfer.types import Metrics

METRICS = Metrics(ttft_s=0.214, tps=31.46, completion_tokens=1_310, acceptance_rate=0.5)
TURNS = (
    Turn(
        id=1, parent=None, role="user", content="Hi", created_s=1.0, attachments=(Attachment(name="n.txt", text="t"),)
    ),
    Turn(
        id=2,
        parent=1,
        role="assistant",
        content="Hello\x1b[31m there.",
        created_s=2.0,
        reasoning="Think </details> twice.",
        model="demo",
        metrics=METRICS,
        thought_s=4.21,
        thought_tokens=310,
    ),
    Turn(id=3, parent=2, role="user", content="Go on", created_s=3.0),
    Turn(id=4, parent=3, role="assistant", content="Half", created_s=4.0, state="failed", note="the model\nwas lost"),
    Turn(id=5, parent=1, role="assistant", content="Another branch.", created_s=5.0, model="demo"),
)
CONVERSATION = Conversation(
    id=7,
    title="A talk",
    created_s=200_000.0,
    changed_s=0.0,
    model="demo",
    head=4,
    parameters=Parameters(system="Be brief."),
    omissions=(Omission(upto=2, summary="They greeted."),),
)


def test_markdown_has_the_branch_in_view() -> None:
    text = to_markdown(CONVERSATION, TURNS)
    parts = [
        "# A talk\n\n*demo · 1970-01-0",
        "4 messages*",
        "## System prompt\n\nBe brief.",
        "## You\n\nn.txt:\n```\nt\n```\n\nHi",
        "## demo\n\n<details>\n<summary>Thought for 4.2 s · 310 tokens</summary>\n\nThink",
        "twice.\n\n</details>\n\nHello[31m there.",
        "*TTFT 0.21 s · 31 tok/s · 1,310 tokens · drafts 50% accepted*",
        "*The model no longer saw what is above.*\n\n> In its place: They greeted.",
        "## You\n\nGo on",
        "## Assistant\n\nHalf\n\n*[failed: the model was lost]*\n",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)
    assert text.count("</details>") == 1
    assert "Another branch" not in text
    assert "\x1b" not in text


def test_json_has_every_branch_and_can_be_read_again() -> None:
    text = to_json(CONVERSATION, TURNS)
    read = msgspec.json.decode(text, type=Exported)
    assert (read.conversation, read.turns) == (CONVERSATION, TURNS)
    plain = msgspec.json.decode(text)
    assert (plain["format"], plain["version"]) == ("localinfer conversation", 1)
    assert text.endswith("}\n")


def test_an_empty_conversation() -> None:
    empty = Conversation(id=1, title="", created_s=float("inf"), changed_s=0.0)
    assert to_markdown(empty, ()) == "# Untitled\n\n*– · 0 messages*\n"
    assert msgspec.json.decode(to_json(CONVERSATION, ()), type=Exported).turns == ()


def test_file_names() -> None:
    assert file_name("Why is the sky blue?", ".md") == "Why-is-the-sky-blue.md"
    assert file_name("../../etc/passwd", ".md") == "etc-passwd.md"
    assert file_name("世界", ".json") == "世界.json"
    assert file_name("con", ".md") == "conversation-con.md"
    assert file_name("", ".md") == file_name("…/.. ", ".md") == "conversation.md"


@given(st.text(max_size=300))
def test_a_file_name_names_a_plain_file_everywhere(title: str) -> None:
    name = file_name(title, ".md")
    assert name.endswith(".md")
    assert name.isprintable()
    assert not set('/\\:*?"<>| ') & set(name)
    assert not name.startswith((".", "-"))
    assert len(name.encode()) <= 200
