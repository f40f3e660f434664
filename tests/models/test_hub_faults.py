"""A hub, a proxy or a network that is out of order: what the person is told, and how soon."""

import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localinfer.errors import BadRequest, DownloadFailed, Gated, LocalInferError, ModelNotFound, Offline
from localinfer.models import web
from localinfer.models.hub import Hub
from localinfer.models.ranges import RemoteSource
from tests.models.hub_server import Fault, HubServer, serving
from tests.models.pulling import QUICK, hub_at, noise

HTML = {"Content-Type": "text/html; charset=utf-8"}
SHORT = {"Connection": "close", "Content-Length": "9"}
GATED = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model a/b is restricted"}


@pytest.fixture
def model(hub: HubServer) -> HubServer:
    hub.offer("a/b", {"m-Q4_0.gguf": noise(5000)})
    return hub


PERMANENT: list[tuple[str, Fault, type[LocalInferError], str]] = [
    ("401 gated", Fault(status=401, headers=GATED), Gated, "gated.*/a/b"),
    ("403 gated", Fault(status=403, headers=GATED), Gated, "gated.*/a/b"),
    ("401", Fault(status=401), Gated, "does not give model a/b to strangers"),
    ("403 with a reason", Fault(status=403, headers={"X-Error-Message": "Sanctions\x1b"}), Gated, r"Sanctions\\x1b"),
    ("401 unknown", Fault(status=401, headers={"X-Error-Code": "RepoNotFound"}), ModelNotFound, "has no model a/b"),
    ("404", Fault(status=404), ModelNotFound, "has no model a/b"),
    ("407", Fault(status=407), DownloadFailed, "proxy wants a user name"),
    ("416", Fault(status=416), DownloadFailed, "answers 416 for model a/b"),
    ("418", Fault(status=418), DownloadFailed, "answers 418"),
    ("300", Fault(status=300), DownloadFailed, "answers 300"),
    ("429, an hour", Fault(status=429, headers={"Retry-After": "3600"}), DownloadFailed, "pause of 60 minutes"),
    ("500", Fault(status=500), DownloadFailed, "out of order"),
    ("503, an hour", Fault(status=503, headers={"Retry-After": "3600"}), DownloadFailed, "out of order"),
    ("a page", Fault(status=200, headers=HTML, body=b"<html>Please log in"), DownloadFailed, "web page"),
    ("204", Fault(status=204, headers=HTML), DownloadFailed, "empty answer for model a/b"),
    ("nothing", Fault(status=200, headers=HTML), DownloadFailed, "empty answer for model a/b"),
    ("half of the JSON", Fault(status=200, body=b'{"id": "a/b", "sib'), DownloadFailed, "makes no sense"),
    ("JSON that nests without end", Fault(status=200, body=b"[" * 100_000), DownloadFailed, "makes no sense"),
    ("no text", Fault(status=200, body=b'{"id": "\xff\xfe"}'), DownloadFailed, "makes no sense"),
    ("another JSON", Fault(status=200, body=b'["a/b"]'), DownloadFailed, "makes no sense"),
    ("no commit", Fault(status=200, body=b'{"id": "a/b"}'), ModelNotFound, "which version"),
    ("switched off", Fault(status=200, body=b'{"id": "a/b", "disabled": true}'), ModelNotFound, "switched off"),
    ("a commit that is a path", Fault(status=200, body=b'{"id": "a/b", "sha": "../../x"}'), DownloadFailed, "no sense"),
    (
        "a hash that is a path",
        Fault(status=200, body=b'{"id":"a/b","siblings":[{"rfilename":"m.gguf","lfs":{"sha256":"../x"}}]}'),
        DownloadFailed,
        "makes no sense",
    ),
    ("too few bytes", Fault(status=200, headers=SHORT, body=b"{}"), DownloadFailed, "broke off"),
    ("a circle", Fault(status=302, headers={"Location": "/api/models/a/b"}), DownloadFailed, "in a circle"),
    ("nowhere", Fault(status=302), DownloadFailed, "no address"),
    ("a file", Fault(status=302, headers={"Location": "file:///etc/passwd"}), DownloadFailed, "no address"),
    ("no host", Fault(status=302, headers={"Location": "https:///x"}), DownloadFailed, "no address"),
    ("no port", Fault(status=302, headers={"Location": "http://127.0.0.1:x/"}), DownloadFailed, "no address"),
    ("half a host", Fault(status=302, headers={"Location": "http://[::1/"}), DownloadFailed, "no address"),
]


@pytest.mark.parametrize(("fault", "kind", "said"), [row[1:] for row in PERMANENT], ids=[row[0] for row in PERMANENT])
def test_what_does_not_pass_is_said_in_the_end(
    model: HubServer, fault: Fault, kind: type[LocalInferError], said: str
) -> None:
    model.fail("api", fault)
    with pytest.raises(kind, match=said) as caught:
        hub_at(model).repo("a/b")
    assert type(caught.value) is kind
    assert caught.value.message.isprintable()


PASSING: list[tuple[str, Fault]] = [
    ("429 with a wait", Fault(status=429, headers={"Retry-After": "0"}, times=3)),
    ("429 with a date", Fault(status=429, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:05 GMT"}, times=2)),
    ("429 without", Fault(status=429, times=3)),
    ("a spent limit", Fault(status=429, headers={"ratelimit": '"api";r=0;t=0'}, times=1)),
    ("500", Fault(status=500, times=3)),
    ("502 as a page", Fault(status=502, headers=HTML, body=b"<html>", times=2)),
    ("408", Fault(status=408, times=1)),
    ("half of the JSON", Fault(status=200, body=b'{"id": "a/b", "sib', times=2)),
]


@pytest.mark.parametrize("fault", [row[1] for row in PASSING], ids=[row[0] for row in PASSING])
def test_what_passes_is_waited_for_and_told(model: HubServer, fault: Fault) -> None:
    model.fail("api", fault)
    told: list[str] = []
    assert hub_at(model, told.append).repo("a/b").id == "a/b"
    assert told
    assert all("Trying again in" in text for text in told)


def test_a_refusal_in_spite_of_a_token_does_not_ask_for_one(model: HubServer) -> None:
    model.fail("api", Fault(status=403))
    with pytest.raises(Gated, match="refuses model a/b") as caught:
        Hub(model.url, "hf_secret", patience=QUICK).repo("a/b")
    assert "HF_TOKEN" not in caught.value.hint


@pytest.mark.parametrize("name", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"])
@pytest.mark.parametrize("token", ["hf_señal", "hf_one two", "hf_\x7f"])
def test_a_token_that_no_request_can_carry_is_named(
    model: HubServer, monkeypatch: pytest.MonkeyPatch, name: str, token: str
) -> None:
    monkeypatch.setenv(name, token)
    with pytest.raises(BadRequest, match=f"The token in {name}") as caught:
        hub_at(model).repo("a/b")
    assert caught.value.param == name
    assert token not in caught.value.message + caught.value.hint
    assert not model.requests


@pytest.mark.parametrize("endpoint", ["http://[::", "https://hub.invalid:port", "https://", "hub.invalid"])
def test_an_endpoint_that_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(BadRequest, match="no address of a hub") as caught:
        Hub()
    assert caught.value.param == "HF_ENDPOINT"


def test_a_host_that_no_name_can_have_cannot_be_reached(hub: HubServer) -> None:
    with pytest.raises(Offline, match="cannot be reached"):
        Hub(f"https://{'a' * 70}.invalid", patience=QUICK).repo("a/b")


def header(model: HubServer, say: Callable[[str], None]) -> RemoteSource:
    """The file of ``model``, to be looked into."""
    ours = hub_at(model, say)
    repo = ours.repo("a/b")
    return ours.header(repo, repo.files[0])


@pytest.mark.parametrize("place", ["hub", "cdn"])
@pytest.mark.parametrize("fault", [Fault(status=500, times=2), Fault(status=429, times=2), Fault(status=204, times=2)])
def test_waiting_for_a_header_is_told(model: HubServer, place: str, fault: Fault) -> None:
    told: list[str] = []
    source = header(model, told.append)
    model.fail(place, Fault(**vars(fault)))
    assert source.read(0, 3000) == noise(5000)[:3000]
    assert len(told) == 2
    assert all("Trying again in 1 s." in text for text in told)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_header_whose_address_expired_is_asked_for_at_the_hub_once_more(model: HubServer, read_before: bool) -> None:
    source = header(model, lambda _: None)
    if read_before:
        source.read(0, 10)
    model.fail("cdn", Fault(status=403, times=1))
    asked = len(model.asked("hub"))
    assert source.read(0, 3000) == noise(5000)[:3000]
    assert len(model.asked("hub")) == asked + (1 if read_before else 2)
    model.fail("cdn", Fault(status=403))
    with pytest.raises(DownloadFailed, match=r"refuses it \(status 403\)"):
        source.read(3000, 10)


def test_the_wait_is_the_one_that_the_hub_asks_for(model: HubServer) -> None:
    model.fail("api", Fault(status=429, headers={"Retry-After": "1"}, times=1))
    before = time.monotonic()
    hub_at(model).repo("a/b")
    assert time.monotonic() - before >= 1


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT", "date": "Wed, 21 Oct 2015 07:28:10 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "٣"}, None),
        ({"ratelimit": '"api";r=0;t=55'}, 55.0),
        ({"ratelimit": '"api";r=3;t=55'}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait_never_depends_on_the_clock_of_this_machine(
    headers: dict[str, str], expected: float | None
) -> None:
    assert web._asked_s(headers) == expected


def test_waits_grow_up_to_a_bound() -> None:
    patience = web.Patience(first_wait_s=1, longest_wait_s=5)
    assert [patience.wait_s(attempt, None) for attempt in range(1, 6)] == [1, 2, 4, 5, 5]
    assert patience.wait_s(1, 30) == 30


def test_an_answer_that_never_ends_is_left(model: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_ANSWER_BYTES", 100)
    model.fail("api", Fault(status=200, body=b" " * 1_000_000))
    with pytest.raises(DownloadFailed, match="does not end"):
        hub_at(model).repo("a/b")


def test_where_nobody_listens_nothing_is_waited_for(hub: HubServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    told: list[str] = []
    with pytest.raises(Offline, match="cannot be reached") as caught:
        Hub(url, patience=QUICK, say=told.append).repo("a/b")
    assert told == []
    assert caught.value.exit_code == 5
    assert "HF_ENDPOINT" in caught.value.hint


def test_a_name_that_cannot_be_found_is_said_before_anything_is_loaded(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_found(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr("socket.getaddrinfo", not_found)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # importing it fails
    with pytest.raises(Offline, match=r"hub\.invalid cannot be reached"):
        Hub("https://hub.invalid", patience=QUICK).repo("a/b")
    assert not hub.requests


def test_a_proxy_that_refuses_is_named_as_the_cause(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", hub.url)  # knows no CONNECT
    with pytest.raises(DownloadFailed, match=r"proxy does not let localinfer through to hub\.invalid") as caught:
        Hub("https://hub.invalid", patience=QUICK).repo("a/b")
    assert "HTTPS_PROXY" in caught.value.hint


@pytest.mark.parametrize(("name", "value"), [("HTTPS_PROXY", "nonsense://x"), ("SSL_CERT_FILE", "/nowhere/ca.pem")])
def test_settings_that_cannot_be_used_are_named(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(DownloadFailed, match="cannot be set up") as caught:
        hub_at(hub).repo("a/b")
    assert name in caught.value.hint


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for this machine, signed by nobody."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(path), "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def encrypted(hub: HubServer, certificate: Path) -> Iterator[HubServer]:
    """A hub that is reached by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(HubServer(), context) as served:
        served.offer("a/b", {})
        yield served


def test_a_certificate_that_nobody_knows_is_not_trusted_and_the_way_out_is_named(encrypted: HubServer) -> None:
    with pytest.raises(
        DownloadFailed, match=f"{urlsplit(encrypted.url).netloc} cannot be trusted.*self.signed"
    ) as caught:
        hub_at(encrypted).repo("a/b")
    assert "SSL_CERT_FILE" in caught.value.hint
    assert not encrypted.requests


def test_a_certificate_that_the_person_names_is_trusted_and_encryption_is_not_left(
    encrypted: HubServer, hub: HubServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert hub_at(encrypted).repo("a/b").id == "a/b"
    encrypted.fail("api", Fault(status=302, headers={"Location": f"{hub.url}/api/models/a/b"}))
    with pytest.raises(DownloadFailed, match="not encrypted"):
        hub_at(encrypted).repo("a/b")
    assert not hub.requests


def test_the_guard_of_huggingface_hub_is_an_offline_error_too(
    model: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    ours = hub_at(model)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(Offline):
        ours.repo("a/b")
