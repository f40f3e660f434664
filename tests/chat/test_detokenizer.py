"""Bytes to text: exact for every way of cutting them, and nothing held back that is certain."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localinfer.chat.detokenizer import Detokenizer


def texts(pieces: list[bytes], stop: tuple[str, ...] = ()) -> list[str]:
    detokenizer = Detokenizer(stop)
    return [*map(detokenizer.push, pieces), detokenizer.finish()]


def cut(data: bytes, places: set[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


# Few letters, so that stop strings, characters of several bytes and broken ones meet often.
alphabet = st.sampled_from(
    [*(bytes([letter]) for letter in b"ab<|>"), "é".encode(), "😸".encode(), b"\xff", b"\x9f", b"\xf0\x9f"]
)
byte_strings = st.lists(alphabet, max_size=20).map(b"".join)
stops = st.lists(st.text("ab<|>é😸\ufffd", max_size=4), max_size=3).map(tuple)


@given(byte_strings, stops, st.sets(st.integers(0, 60)))
@example(b"aabab", ("ab", "aaba"), {1, 2, 3, 4})
@example(b"abc", ("abc", "b"), {1, 2})
def test_every_way_of_cutting_says_the_same(data: bytes, stop: tuple[str, ...], places: set[int]) -> None:
    assert "".join(texts(cut(data, places), stop)) == "".join(texts([data], stop))


@given(byte_strings, st.sets(st.integers(0, 60)))
def test_without_stop_strings_it_is_the_text(data: bytes, places: set[int]) -> None:
    assert "".join(texts(cut(data, places))) == data.decode("utf-8", "replace")


@given(byte_strings, stops)
def test_a_stop_string_ends_the_text_where_it_is_first_complete(data: bytes, stop: tuple[str, ...]) -> None:
    whole = data.decode("utf-8", "replace")
    complete = [end for end in range(len(whole) + 1) if any(mark and whole[:end].endswith(mark) for mark in stop)]
    expected = whole
    if complete:
        seen = whole[: complete[0]]
        expected = seen[: -max(len(mark) for mark in stop if seen.endswith(mark))]
    assert "".join(texts([data], stop)) == expected


@given(byte_strings, stops)
def test_only_what_may_still_become_a_stop_string_is_held(data: bytes, stop: tuple[str, ...]) -> None:
    detokenizer = Detokenizer(stop)
    said = ""
    for place in range(len(data)):
        said += detokenizer.push(data[place : place + 1])
        # Of an unfinished character nothing is known, so only the finished ones count.
        arrived = Detokenizer().push(data[: place + 1])
        held = arrived[len(said) :]
        if detokenizer.stopped:
            return
        assert arrived.startswith(said)
        assert held == "" or any(mark.startswith(held) and mark != held for mark in stop)


def test_a_character_in_two_tokens() -> None:
    assert texts([b"\xf0\x9f\x98", b"\xb8"]) == ["", "😸", ""]


def test_a_character_that_never_ends_is_one_replacement() -> None:
    assert texts([b"ok \xf0\x9f\x98"]) == ["ok ", "\ufffd"]


def test_bytes_that_are_no_text_do_not_stall_the_stream() -> None:
    assert texts([b"\x61\xff\x62"]) == ["a\ufffdb", ""]
    assert texts([b"a", b"\xff", b"b"]) == ["a", "\ufffd", "b", ""]
    assert texts([b"\xe0", b"\x80", b"b"])[-2:] == ["b", ""]  # a second byte that cannot follow the first


def test_a_stop_string_in_pieces() -> None:
    detokenizer = Detokenizer(("<END>",))
    assert [detokenizer.push(piece) for piece in (b"foo<", b"EN")] == ["foo", ""]
    assert not detokenizer.stopped
    assert detokenizer.push(b"D>") == ""
    assert detokenizer.stopped
    assert detokenizer.push(b"bar") == ""
    assert detokenizer.finish() == ""


def test_text_that_only_began_like_a_stop_string_is_not_lost() -> None:
    assert texts([b"foo<", b"EN", b"X"], ("<END>",)) == ["foo", "", "<ENX", ""]
    assert texts([b"foo<", b"EN"], ("<END>",)) == ["foo", "", "<EN"]


@pytest.mark.parametrize("stop", [(), ("",)])
def test_an_empty_stop_string_stops_nothing(stop: tuple[str, ...]) -> None:
    assert texts([b"text"], stop) == ["text", ""]
