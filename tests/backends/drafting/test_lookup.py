"""Prompt lookup finds what a search through the whole text finds, and never proposes anything else."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from backends.drafting import PromptLookup

tokens = st.lists(st.integers(0, 5), min_size=1, max_size=60)
LONGEST = 32


def longest_match(text: Sequence[int]) -> int:
    """How many tokens before an earlier place agree with the end of the text, of the place where that is most."""
    end = len(text)
    lengths = [0]
    for place in range(2, end):
        length = 0
        while length < min(LONGEST, place) and text[place - 1 - length] == text[end - 1 - length]:
            length += 1
        lengths.append(length)
    return max(lengths)


def proposed(lookup: PromptLookup, most: int = 8) -> Sequence[int]:
    found = lookup.draft({0: range(most)})
    return found[0].tokens if found else ()


@given(tokens)
def test_what_is_proposed_followed_the_longest_match(text: list[int]) -> None:
    lookup = PromptLookup()
    lookup.begin(0, text, (), 0)
    draft = proposed(lookup)
    longest = longest_match(text)
    # Few places are compared of a pair that is everywhere, so the match is as long as any only where there are few.
    pairs = [place for place in range(2, len(text)) if text[place - 2 : place] == text[-2:]]
    if longest < 2:
        assert not draft
    elif len(pairs) <= 8:
        best = [place for place in pairs if longest_at(text, place) == longest]
        assert any(follows(text, place, draft) for place in best)
    else:
        assert any(follows(text, place, draft) for place in pairs)


def longest_at(text: Sequence[int], place: int) -> int:
    length = 0
    while length < min(LONGEST, place) and text[place - 1 - length] == text[len(text) - 1 - length]:
        length += 1
    return length


def follows(text: Sequence[int], place: int, draft: Sequence[int]) -> bool:
    """Whether ``draft`` is what comes from ``place`` on, the text repeating itself after its end."""
    period = len(text) - place
    return list(draft) == [text[place + index % period] for index in range(len(draft))]


@given(tokens, tokens, st.integers(1, 70))
def test_a_draft_is_never_longer_than_asked_for_and_its_survival_never_grows(
    prompt: list[int], reply: list[int], most: int
) -> None:
    lookup = PromptLookup()
    lookup.begin(0, prompt, (), 0)
    for token in reply:
        found = lookup.draft({0: range(most)})
        if found:
            draft = found[0]
            assert 1 <= len(draft.tokens) == len(draft.survival) <= most
            assert list(draft.survival) == sorted(draft.survival, reverse=True)
            assert 0 < min(draft.survival) <= max(draft.survival) <= 1
            assert set(draft.tokens) <= {*prompt, *reply}
        lookup.extend(0, [token])


@given(tokens, tokens)
def test_tokens_may_come_one_by_one_or_together(prompt: list[int], reply: list[int]) -> None:
    one, many = PromptLookup(), PromptLookup()
    for lookup in (one, many):
        lookup.begin(0, prompt, (), 0)
    for token in reply:
        one.extend(0, [token])
    many.extend(0, reply)
    assert one.draft({0: range(9)}) == many.draft({0: range(9)})


@given(st.lists(st.integers(10, 10_000), min_size=40, max_size=60, unique=True), st.integers(4, 30))
def test_an_edited_copy_is_taken_up_again_after_the_edit(source: list[int], place: int) -> None:
    lookup = PromptLookup()
    lookup.begin(0, [*source, 1, 2], (), 0)
    lookup.extend(0, source[:place])
    assert proposed(lookup) == source[place : place + 8]
    lookup.extend(0, [3])  # instead of source[place]
    lookup.extend(0, source[place + 1 : place + 2])
    assert proposed(lookup) == source[place + 2 : place + 10], "one token of the copy is enough where it was copied"


@given(tokens, tokens)
def test_sequences_do_not_mix(one: list[int], other: list[int]) -> None:
    alone, both = PromptLookup(), PromptLookup()
    alone.begin(1, one, (), 0)
    both.begin(1, one, (), 0)
    both.begin(2, other, (), 1)
    drafts = both.draft({1: range(5), 2: range(5)})
    assert drafts.get(1) == alone.draft({1: range(5)}).get(1)
    both.end(2)
    both.end(99)
    assert both.draft({1: range(5)}) == alone.draft({1: range(5)})


def test_a_prediction_is_copied_from_and_no_match_reaches_out_of_it() -> None:
    lookup = PromptLookup()
    lookup.begin(0, [9, 1, 2], [1, 2, 3, 4, 5], 0)
    assert list(proposed(lookup, 3)) == [3, 4, 5]
    assert list(proposed(lookup, 6)) == [3, 4, 5], "and no draft"
    lookup.extend(0, [3, 4, 5])
    assert lookup.draft({0: range(6)}) == {}


def test_the_same_mistake_is_believed_less_each_time() -> None:
    lookup = PromptLookup()
    lookup.begin(0, [1, 2, 3, 1, 2], (), 0)
    sure = []
    for token in range(10, 40):
        found = lookup.draft({0: range(1)})
        sure.append(found[0].survival[0] if found else 0.0)
        lookup.extend(0, [token, 1, 2])
    assert sure[-1] < sure[0] / 2
    assert sure[-1] < 0.1
