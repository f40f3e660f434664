"""Branches, siblings and what the model is sent, for any tree and for what is no tree."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localinfer.history.tree import branch, composed, messages, omission, seen, siblings, tip
from localinfer.history.values import Attachment, Omission, Parameters, Turn
from localinfer.types import Message


def turn(id: int, parent: int | None, content: str = "x", **fields: object) -> Turn:
    role = fields.pop("role", "assistant" if id % 2 == 0 else "user")
    return Turn(id=id, parent=parent, role=role, content=content, created_s=0.0, **fields)  # type: ignore[arg-type]


#     1 ── 2 ── 3 ── 4
#     │         └─── 6
#     └─── 8 ── 5
#     7
TREE = [turn(1, None), turn(2, 1), turn(3, 2), turn(4, 3), turn(6, 3), turn(8, 1), turn(5, 8), turn(7, None)]


def ids(turns: tuple[Turn, ...]) -> list[int]:
    return [one.id for one in turns]


def test_branches() -> None:
    assert ids(branch(TREE, 6)) == [1, 2, 3, 6]
    assert ids(branch(TREE, 5)) == [1, 8, 5]
    assert branch(TREE, None) == branch(TREE, 99) == branch([], 1) == ()


def test_siblings_and_tips() -> None:
    by_id = {one.id: one for one in TREE}
    assert ids(siblings(TREE, by_id[2])) == [2, 8]
    assert ids(siblings(TREE, by_id[6])) == [4, 6]
    assert ids(siblings(TREE, by_id[1])) == [1, 7]
    assert tip(TREE, by_id[1]).id == 5
    assert tip(TREE, by_id[2]).id == 6
    assert tip(TREE, by_id[7]).id == 7


@st.composite
def graphs(draw: st.DrawFn) -> list[Turn]:
    """Turns whose parents may be missing, later ones or themselves."""
    numbers = draw(st.lists(st.integers(1, 20), unique=True, max_size=12))
    parents = st.none() | st.integers(1, 20)
    roles = st.sampled_from(["user", "assistant"])
    states = st.sampled_from(["whole", "growing", "stopped", "cut", "failed"])
    texts = st.sampled_from(["", " \n", "a", "b b", "```\nc\n```"])
    return [
        turn(number, draw(parents), draw(texts), role=draw(roles), state=draw(states), reasoning=draw(texts))
        for number in numbers
    ]


OMISSIONS = st.lists(st.builds(Omission, upto=st.integers(1, 20), summary=st.sampled_from(["", "S"])), max_size=4)


@given(graphs(), st.integers(1, 20))
def test_a_branch_is_a_way_without_repetition(turns: list[Turn], head: int) -> None:
    path = branch(turns, head)
    assert len(set(ids(path))) == len(path)
    assert all(after.parent == before.id for before, after in pairwise(path))
    assert (path[-1].id == head) if path else (head not in {one.id for one in turns})
    assert branch(reversed(turns), head) == path


@given(graphs())
def test_every_walk_ends(turns: list[Turn]) -> None:
    for one in turns:
        end = tip(turns, one)
        assert end in turns
        beside = siblings(turns, one)
        assert one in beside
        assert ids(beside) == sorted(ids(beside))
        assert {(other.parent, other.role) for other in beside} == {(one.parent, one.role)}


@given(st.integers(1, 30), st.data())
def test_in_a_tree_the_tip_is_a_leaf_below(count: int, data: st.DataObject) -> None:
    turns = [turn(id, data.draw(st.none() | st.integers(1, id - 1)) if id > 1 else None) for id in range(1, count + 1)]
    one = data.draw(st.sampled_from(turns))
    end = tip(turns, one)
    assert one in branch(turns, end.id)
    assert all(other.parent != end.id for other in turns)


@given(graphs(), st.integers(1, 20), OMISSIONS)
def test_what_is_left_out_is_the_beginning(turns: list[Turn], head: int, omissions: list[Omission]) -> None:
    path = branch(turns, head)
    rest = seen(path, omissions)
    assert path[len(path) - len(rest) :] == rest
    cut = {one.upto for one in omissions}
    assert not cut & set(ids(rest))
    assert len(rest) == len(path) or path[len(path) - len(rest) - 1].id in cut


@given(graphs(), st.integers(1, 20), OMISSIONS, st.sampled_from(["", "Be brief."]))
def test_what_is_sent(turns: list[Turn], head: int, omissions: list[Omission], system: str) -> None:
    path = branch(turns, head)
    sent = messages(path, Parameters(system=system), omissions)
    roles = [one.role for one in sent]
    assert "system" not in roles[1:]
    said = [one for one in sent if one.role != "system"]
    assert all(before.role != after.role for before, after in pairwise(said))
    assert all(one.content.strip() for one in sent)
    left = omission(path, omissions)
    assert (roles[:1] == ["system"]) == bool(system or (left and left.summary))
    wanted = [
        one for one in seen(path, omissions) if one.content.strip() and (one.role == "user" or one.state != "failed")
    ]
    for role in ("user", "assistant"):
        text = "\n\n".join(one.content for one in said if one.role == role)
        assert text == "\n\n".join(one.content for one in wanted if one.role == role)


def test_an_unanswered_message_is_joined_to_the_next() -> None:
    path = [
        turn(1, None, "one"),
        turn(2, 1, "never", state="failed"),
        turn(3, 2, "two"),
        turn(4, 3, ""),
        turn(5, 4, "three"),
        turn(6, 5, "half", state="stopped", reasoning="hm"),
    ]
    assert messages(path, Parameters(), ()) == (
        Message(role="user", content="one\n\ntwo\n\nthree"),
        Message(role="assistant", content="half", reasoning="hm"),
    )


def test_a_summary_joins_the_system_prompt() -> None:
    path = [turn(1, None, "one"), turn(2, 1, "two"), turn(3, 2, "three")]
    sent = messages(path, Parameters(system="Be brief."), [Omission(upto=2, summary="They greeted.")])
    assert [one.role for one in sent] == ["system", "user"]
    assert sent[0].content.startswith("Be brief.\n\n")
    assert sent[0].content.endswith("They greeted.")
    assert messages(path, Parameters(), [Omission(upto=2)]) == (Message(role="user", content="three"),)
    assert messages(path, Parameters(), [Omission(upto=99, summary="elsewhere")])[0].content == "one"


def test_the_furthest_omission_counts_and_of_two_at_a_turn_the_last() -> None:
    path = [turn(1, None), turn(2, 1), turn(3, 2)]
    first, second, again = Omission(upto=1), Omission(upto=2, summary="a"), Omission(upto=2, summary="b")
    assert omission(path, [again, first]) == again
    assert omission(path, [first, second, again]) == again
    assert omission(path, []) is None


def test_attachments_come_before_the_words() -> None:
    files = [Attachment(name="a.txt", text="one"), Attachment(name="b.md", text="```\ncode\n````\n")]
    assert composed("Compare them.", files) == (
        "a.txt:\n```\none\n```\n\nb.md:\n`````\n```\ncode\n````\n`````\n\nCompare them."
    )
    assert composed("", [Attachment(name="e", text="")]) == "e:\n```\n```"
    assert composed("plain", []) == "plain"


@given(st.text("`a\n", max_size=60))
def test_no_file_can_end_its_fence(text: str) -> None:
    lines = composed("", [Attachment(name="f", text=text)]).split("\n")
    fence = lines[1]
    assert set(fence) == {"`"}
    assert lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[2:-1])
    assert "\n".join(lines[2:-1]) in (text, text.removesuffix("\n"))


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_turn_of_attachments_alone_is_sent(role: str) -> None:
    only = turn(1, None, "", role=role, attachments=(Attachment(name="f", text="t"),))
    assert messages([only], Parameters(), ())[0].content.startswith("f:")
