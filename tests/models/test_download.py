"""One file from a hub that drops, stalls and lies: what arrives is right or refused, and nothing is fetched twice."""

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from localinfer.errors import DownloadFailed, Gated, LocalInferError, ModelNotFound
from localinfer.models import journal
from localinfer.models.progress import FetchProgress
from tests.models.hub_server import Fault, HubServer
from tests.models.pulling import PIECE, QUICK, Puller, noise

SIZE = 6 * PIECE + 1234
HERE = SIZE * 2 // 5
STALL = PIECE * 2 // 5
PAGE = Fault(status=200, headers={"Content-Type": "text/html"}, body=b"<html>")


@pytest.fixture
def puller(hub: HubServer, tmp_path: Path) -> Puller:
    return Puller(hub, tmp_path / "cache", noise(SIZE))


def interrupted(puller: Puller, at: int = HERE) -> None:
    """Leave a part behind: the person stops when ``at`` bytes are there."""

    def stop(progress: FetchProgress) -> None:
        if progress.done_bytes >= at:
            raise KeyboardInterrupt

    puller.at, puller.server.rate = stop, 4e6
    with pytest.raises(KeyboardInterrupt):
        puller(1)
    puller.at, puller.server.rate = lambda _: None, None


def partial(puller: Puller) -> int:
    """Break a download off for good after 40 %; the bytes that are there."""
    puller.server.fail("cdn", Fault(times=2), Fault(drop_at=HERE - 2 * PIECE, times=1), Fault(status=404))
    with pytest.raises(ModelNotFound):
        puller(1)
    puller.server.fail("cdn")
    puller.served()
    done = journal.done_bytes(puller.part)
    assert done == HERE
    return done


@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("size", [0, 1, 999, 1000, PIECE - 1, PIECE, PIECE + 1, SIZE])
def test_a_file_of_any_size_arrives_by_one_or_more_connections(
    hub: HubServer, tmp_path: Path, size: int, connections: int
) -> None:
    puller = Puller(hub, tmp_path, noise(size))
    assert puller(connections) == puller.data
    assert puller.served() == size
    assert not list(tmp_path.rglob("*.part*"))


def test_several_connections_are_open_at_the_same_time(puller: Puller) -> None:
    puller.server.hold_at = 0
    open_at_once: set[str] = set()

    def look(_: FetchProgress) -> None:
        open_at_once.update(request.headers["range"] for request in puller.server.asked("cdn"))
        if len(open_at_once) == 4:
            puller.server.go_on()

    puller.at = look
    assert puller(4) == puller.data


@pytest.mark.parametrize("connections", [1, 4])
def test_a_connection_that_drops_every_time_gets_there(puller: Puller, connections: int) -> None:
    puller.server.fail("cdn", Fault(drop_at=40_000))
    assert puller(connections) == puller.data
    assert puller.served() == SIZE


def test_the_next_run_goes_on_where_the_last_one_ended(puller: Puller) -> None:
    done = partial(puller)
    assert puller() == puller.data
    assert puller.served() == SIZE - done
    assert puller.seen[-1].done_bytes == SIZE


def test_a_hub_that_stalls_without_closing_is_left_and_asked_again(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(stall_at=STALL, times=1))
    assert puller(1) == puller.data
    assert puller.served() == SIZE
    assert puller.server.asked("cdn")[1].headers["range"].startswith(f"bytes={STALL}-")
    assert any("sent nothing for" in notice and "Trying again" in notice for notice in puller.notices)


def test_a_hub_that_stays_silent_is_told_and_the_part_is_kept(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(stall_at=STALL, times=1), Fault(stall_at=0))
    with pytest.raises(DownloadFailed, match="sent nothing for") as caught:
        puller(1)
    assert "kept" in caught.value.hint
    assert journal.done_bytes(puller.part) == STALL
    assert any("Trying again" in notice for notice in puller.notices)


@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("drop_at", [0, 1000])
def test_connections_that_drop_after_next_to_nothing_are_told_once_and_end_it(
    puller: Puller, drop_at: int, connections: int
) -> None:
    puller.server.fail("cdn", Fault(drop_at=drop_at))
    with pytest.raises(DownloadFailed, match="broke off"):
        puller(connections)
    assert len(puller.server.asked("cdn")) <= QUICK.tries * connections
    assert len(puller.notices) == len(set(puller.notices)) == 1
    assert "Trying again" in puller.notices[0]


@pytest.mark.parametrize("connections", [1, 4])
@pytest.mark.parametrize("fault", [Fault(status=403), Fault(status=401), PAGE], ids=["403", "401", "a page"])
def test_an_address_that_expired_midway_is_asked_for_anew(puller: Puller, fault: Fault, connections: int) -> None:
    puller.server.fail("cdn", Fault(drop_at=100_000, times=2), dataclasses.replace(fault, times=1))
    assert puller(connections) == puller.data
    assert puller.served() == SIZE
    assert len(puller.server.asked("hub")) == len(puller.server.asked("cdn"))


@pytest.mark.parametrize(("fault", "said"), [(Fault(status=403), r"refuses it \(status 403\)"), (PAGE, "web page")])
def test_a_content_network_that_refuses_twice_ends_it_and_no_token_is_blamed(
    puller: Puller, fault: Fault, said: str
) -> None:
    puller.server.fail("cdn", fault)
    with pytest.raises(DownloadFailed, match=said) as caught:
        puller(1)
    assert len(puller.server.asked("cdn")) == 2
    assert "oken" not in caught.value.message + caught.value.hint


def test_a_hub_that_refuses_midway_is_not_asked_again(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(times=1))
    puller.server.fail("hub", Fault(times=1), Fault(status=403))
    with pytest.raises(Gated):
        puller(1)
    assert len(puller.server.asked("hub")) == 2


HOSTILE: list[tuple[str, str, Fault]] = [
    ("ranges ignored", "cdn", Fault(whole=True)),
    ("another opaque ETag", "cdn", Fault(headers={"ETag": '"another"'})),
    ("a wrong start, once", "cdn", Fault(shift=-1, times=1)),
    ("more than asked for", "cdn", Fault(extra=5000)),
    ("bytes that are wrong, once", "cdn", Fault(flip_at=SIZE - 10, times=5)),
]


@pytest.mark.parametrize(("place", "fault"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_after_a_break_a_hub_that_resumes_otherwise_still_gives_the_right_file(
    puller: Puller, place: str, fault: Fault
) -> None:
    partial(puller)
    largest = 0

    def measure(_: FetchProgress) -> None:
        nonlocal largest
        if puller.part.exists():
            largest = max(largest, puller.part.stat().st_size)

    puller.at = measure
    puller.server.fail(place, fault)
    assert puller() == puller.data
    assert 0 < largest <= SIZE


REFUSED: list[tuple[str, str, Fault, str]] = [
    ("a wrong start", "cdn", Fault(shift=1), "comes from byte"),
    ("no Content-Range", "cdn", Fault(status=206, body=b"x"), "where they belong"),
    ("another length", "cdn", Fault(total=SIZE + 1), "instead of"),
    ("a page for people", "cdn", PAGE, "web page"),
    ("nothing", "cdn", Fault(status=204), "empty answer"),
    ("nothing, as a page", "cdn", dataclasses.replace(PAGE, body=b""), "empty answer"),
    ("the whole of another file", "cdn", Fault(status=200, body=b"x" * 50), "50 bytes instead of"),
    ("another content", "hub", Fault(headers={"X-Linked-ETag": '"' + "f" * 64 + '"'}), "has changed"),
    ("another size", "hub", Fault(headers={"X-Linked-Size": "12"}), "12 bytes on the hub"),
    ("compressed", "cdn", Fault(headers={"Content-Encoding": "gzip"}), "compressed"),
    ("no such range", "cdn", Fault(status=416), "ends before its announced size"),
]


@pytest.mark.parametrize(("place", "fault", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_after_a_break_a_hub_that_sends_something_else_is_refused_and_nothing_of_it_is_taken(
    puller: Puller, place: str, fault: Fault, said: str
) -> None:
    done = partial(puller)
    before = puller.part.read_bytes()
    puller.server.fail(place, fault)
    with pytest.raises(DownloadFailed, match=said) as caught:
        puller()
    assert caught.value.hint
    assert puller.part.read_bytes() == before
    puller.server.fail(place)
    puller.served()
    assert puller() == puller.data
    assert puller.served() == SIZE - done


def test_a_hub_that_knows_no_ranges_is_said_so_and_what_is_there_is_kept(puller: Puller) -> None:
    partial(puller)
    puller.server.fail("cdn", Fault(whole=True, drop_at=SIZE - 100, times=3), Fault(whole=True))
    assert puller() == puller.data
    assert any("only whole files" in notice for notice in puller.notices)


def test_a_byte_that_changed_on_the_way_costs_only_the_search_for_it(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(flip_at=PIECE + 5, times=7))
    assert puller(1) == puller.data
    assert SIZE < puller.served() <= SIZE + 2 * PIECE
    assert any("damaged" in notice for notice in puller.notices)


def test_a_piece_that_changed_on_the_disk_is_the_only_one_fetched_again(puller: Puller) -> None:
    done = partial(puller)
    assert done > 2 * PIECE
    with puller.part.open("rb+") as file:
        file.seek(PIECE + 5)
        file.write(b"rot")
    assert puller() == puller.data
    assert puller.served() == SIZE - done + PIECE


def test_a_hub_whose_file_is_another_one_for_good_is_refused_and_nothing_is_kept(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(flip_at=5))
    with pytest.raises(DownloadFailed, match="not what the hub announced"):
        puller()
    assert not puller.blob.exists()
    assert not puller.part.exists()
    assert puller.served() <= 2 * SIZE


def test_a_hub_without_ranges_whose_bytes_were_wrong_once_is_asked_once_more(puller: Puller) -> None:
    puller.server.fail("cdn", Fault(whole=True, flip_at=5, times=5), Fault(whole=True))
    assert puller(4) == puller.data


ROTTEN: list[tuple[str, Callable[[Puller], object]]] = [
    ("no journal", lambda p: journal.journal_path(p.part).unlink()),
    ("an empty journal", lambda p: journal.journal_path(p.part).write_bytes(b"")),
    (
        "half a journal",
        lambda p: journal.journal_path(p.part).write_bytes(journal.journal_path(p.part).read_bytes()[:40]),
    ),
    ("a journal of another file", lambda p: edited(p, oid="f" * 64)),
    ("a journal of another size", lambda p: edited(p, size_bytes=SIZE - 1)),
    ("pieces of no length", lambda p: edited(p, piece_bytes=0)),
    ("pieces too few", lambda p: edited(p, pieces=[[5, 5]])),
    ("a piece too long", lambda p: edited(p, pieces=[[PIECE + 1, 5]] + [[0, 0]] * 6)),
    ("a piece of less than nothing", lambda p: edited(p, pieces=[[-5, 5]] + [[0, 0]] * 6)),
    ("no part", lambda p: p.part.unlink()),
    ("a part that is shorter", lambda p: p.part.write_bytes(b"short")),
    ("a part that is longer", lambda p: p.part.write_bytes(p.data + b"appended")),
]


def edited(puller: Puller, **fields: object) -> None:
    """Change fields of the journal."""
    path = journal.journal_path(puller.part)
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("rot", [row[1] for row in ROTTEN], ids=[row[0] for row in ROTTEN])
def test_a_journal_and_a_part_that_do_not_agree_are_not_trusted(
    puller: Puller, rot: Callable[[Puller], object]
) -> None:
    partial(puller)
    rot(puller)
    assert puller() == puller.data
    assert puller.served() == SIZE


def test_a_journal_that_promises_what_is_not_there_costs_that_piece(puller: Puller) -> None:
    """As after a power failure: the journal reached the disk, the bytes it tells of did not."""
    done = partial(puller)
    with puller.part.open("rb+") as file:
        file.seek(PIECE)
        file.write(bytes(PIECE))
    assert puller() == puller.data
    assert puller.served() == SIZE - done + PIECE


def test_stopping_keeps_the_part(puller: Puller) -> None:
    interrupted(puller)
    assert journal.done_bytes(puller.part) >= HERE
    puller.served()
    assert puller() == puller.data
    assert puller.served() <= SIZE - HERE


def test_progress_only_grows_and_ends_at_the_size(puller: Puller) -> None:
    puller.server.rate = 8e6
    puller()
    done = [one.done_bytes for one in puller.seen]
    assert done == sorted(done)
    assert done[-1] == SIZE
    assert {one.total_bytes for one in puller.seen} == {SIZE}
    assert {one.stage for one in puller.seen} <= {"download", "verify"}


MISHAPS = st.one_of(
    st.builds(Fault, drop_at=st.integers(0, PIECE), times=st.integers(1, 3)),
    st.builds(Fault, shift=st.sampled_from([-1, 1, 7]), times=st.just(1)),
    st.builds(Fault, extra=st.integers(1, PIECE), times=st.just(1)),
    st.builds(Fault, status=st.sampled_from([404, 429, 500, 503]), times=st.integers(1, 2)),
    st.builds(Fault, flip_at=st.integers(0, SIZE - 1), times=st.integers(1, 2)),
    st.builds(Fault, whole=st.just(True), drop_at=st.integers(0, SIZE), times=st.just(1)),
)


@hypothesis.settings(max_examples=25, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(runs=st.lists(st.lists(MISHAPS, max_size=3), max_size=3), connections=st.integers(1, 4))
def test_whatever_goes_wrong_in_whatever_order_the_next_quiet_run_ends_with_the_right_file(
    hub: HubServer, tmp_path_factory: pytest.TempPathFactory, runs: list[list[Fault]], connections: int
) -> None:
    puller = Puller(hub, tmp_path_factory.mktemp("cache"), noise(SIZE))
    for faults in runs:
        puller.server.fail("cdn", *faults)
        with contextlib.suppress(LocalInferError):
            assert puller(connections) == puller.data
        assert puller.blob.exists() or not puller.part.exists() or puller.part.stat().st_size <= SIZE
    puller.server.fail("cdn")
    assert puller(connections) == puller.data
