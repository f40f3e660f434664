"""A server of somebody else's that speaks OpenAI's chat completions, asked and timed as our own engine is.

The only file of the bench that knows HTTP. A server counts tokens itself (``usage``); chunks of a stream are not
tokens, and where the two differ the gaps between tokens are not known. Nothing it sends is trusted: not its size, its
numbers or its text.
"""

import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from localinfer import __version__, decoding
from localinfer.bench.target import Trace
from localinfer.bench.values import Drafter, Subject
from localinfer.bench.workloads import Prompt
from localinfer.errors import BackendUnavailable, BadRequest, LocalInferError, ModelNotFound, Offline
from localinfer.metrics import now_ns
from localinfer.models.names import printable
from localinfer.types import Value

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

KEY = "LOCALINFER_AGAINST_KEY"  # the environment variable of the key

_CONNECT_S = 10.0
_SILENCE_S = 300.0  # a large model may read a long prompt for minutes before it says a word
_ANSWER_S = 1800.0
_LINE_BYTES = 1_000_000
_ANSWER_BYTES = 64_000_000
_ODD_TOKENS = 16  # tokens without text, such as the end of a turn

Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]


class _Delta(Value, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(Value, frozen=True):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(Value, frozen=True):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Chunk(Value, frozen=True):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


class _Model(Value, frozen=True):
    id: str


class _Models(Value, frozen=True):
    data: tuple[_Model, ...]


class Server:
    """See ``Target``. ``model`` is the one to be asked; None: the first that the server lists.

    The key in the environment variable ``KEY`` goes to this server alone. Raises ``BadRequest`` for an address that is
    none, ``Offline`` where ``offline`` forbids it: a server on this machine is always allowed.
    """

    def __init__(self, address: str, model: str | None = None, *, offline: bool = False) -> None:
        self._url, self._host = _base(address)
        self._local = _is_loopback(self._host)
        if offline and not self._local:
            raise Offline(
                f"{self._host} is another machine, and the network is off.",
                "Leave out --offline, or name a server on this machine.",
            )
        self._model = model
        self._key = os.environ.get(KEY, "")
        if not self._key.isascii() or not self._key.isprintable():
            raise BadRequest(f"The key in {KEY} is not plain text.", "Set it again.", param=KEY)
        self._lock = threading.Lock()
        self._opened: httpx2.Client | None = None
        self._answers: set[httpx2.Response] = set()

    @property
    def warning(self) -> str:
        """What the person should know before anything is sent; "" for nothing."""
        if self._key and not self._local and self._url.startswith("http:"):
            return f"The key in {KEY} goes to {self._host} without encryption."
        return ""

    def subject(self) -> Subject:
        """What it says it is. Raises ``BackendUnavailable``, ``ModelNotFound``."""
        if self._model is None:
            models = self._json("GET", "/models", _Models).data
            if not models:
                raise ModelNotFound(f"{self._host} lists no model.", "Name one with --against-model.")
            self._model = models[0].id
        return Subject(kind="server", name=printable(self._model, 80), backend="server", url=self._url)

    def answer(self, prompt: Prompt, max_tokens: int, drafter: Drafter | None = None) -> Trace:
        """See ``Target``. Raises ``BackendUnavailable``, also where the answer makes no sense."""
        reading = _Reading()
        body = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in prompt.messages],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        submitted_ns = now_ns()
        with self._stream("POST", "/chat/completions", body) as lines:
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    break
                reading.take(self._decoded(data, _Chunk), now_ns(), self._host)
        return reading.trace(submitted_ns)

    def stop(self) -> None:
        with self._lock:
            answers = tuple(self._answers)
        for answer in answers:
            with suppress(Exception):  # the library's own thread may be closing it
                stream = answer.extensions["network_stream"]
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)  # wakes who reads

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            client, self._opened = self._opened, None
        if client is not None:
            client.close()

    # HTTP

    def _json(self, method: str, path: str, kind: type[T]) -> T:
        with self._stream(method, path, None) as lines:
            return self._decoded(b"\n".join(lines), kind)

    @contextmanager
    def _stream(self, method: str, path: str, body: object) -> Iterator[Iterator[bytes]]:
        """The lines of an answer with status 200."""
        import httpx2

        headers = {"user-agent": f"localinfer/{__version__}", "accept-encoding": "identity"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            with self._client().stream(method, f"{self._url}{path}", json=body, headers=headers) as answer:
                with self._lock:
                    self._answers.add(answer)
                try:
                    if answer.status_code != 200:
                        raise self._refusal(answer.status_code, answer)
                    yield _lines(answer.iter_raw(), self._host)
                finally:
                    with self._lock:
                        self._answers.discard(answer)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise BackendUnavailable(
                f"No server answers at {self._url}.", "Start it, or correct the address after --against."
            ) from error
        except httpx2.TimeoutException as error:
            raise BackendUnavailable(f"{self._host} sent nothing for {_SILENCE_S:.0f} s.", "") from error
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as error:
            raise BackendUnavailable(f"The connection to {self._host} broke off.", "See the server's log.") from error

    def _client(self) -> "httpx2.Client":
        import httpx2

        with self._lock:
            if self._opened is None:
                self._opened = httpx2.Client(
                    timeout=httpx2.Timeout(_SILENCE_S, connect=_CONNECT_S),
                    limits=httpx2.Limits(max_connections=None),
                    follow_redirects=False,
                    trust_env=not self._local,  # a proxy does not see this machine's servers
                )
            return self._opened

    def _refusal(self, status: int, answer: "httpx2.Response") -> LocalInferError:
        said = b" ".join(_lines(answer.iter_raw(), self._host))[:2000].decode("utf-8", "replace")
        told = printable(" ".join(said.split()), 300)
        if status in (401, 403):
            return BackendUnavailable(f"{self._host} wants a key, or another one. {told}".strip(), f"Set it in {KEY}.")
        if status == 404:
            hint = "Check the address, which usually ends in /v1, and --against-model."
            return ModelNotFound(f"{self._host} knows no such address or model. {told}".strip(), hint)
        if 300 <= status < 400:
            return BackendUnavailable(f"{self._host} sends us elsewhere.", "Name the address it redirects to.")
        return BackendUnavailable(f"{self._host} answers {status}. {told}".strip(), "See the server's log.")

    def _decoded(self, data: bytes, kind: type[T]) -> T:
        try:
            return decoding.json(data, kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BackendUnavailable(
                f"{self._host} sends what no such server sends: {printable(str(error), 200)}.",
                "Check that it speaks OpenAI's chat completions at this address.",
            ) from error


class _Reading:
    """One answer as it arrives."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._at_ns: list[int] = []
        self._usage = _Usage()

    def take(self, chunk: _Chunk, at_ns: int, host: str) -> None:
        if (failed := bytes(chunk.error)) not in (b"", b"null"):
            said = printable(failed.decode("utf-8", "replace"), 300)
            raise BackendUnavailable(f"{host} failed while answering: {said}", "See the server's log.")
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in (chunk.choices or ())[:1]:
            delta = choice.delta or _Delta()
            if text := "".join((delta.reasoning_content or delta.reasoning or "", delta.content or "")):
                self._texts.append(text)
                self._at_ns.append(at_ns)

    def trace(self, submitted_ns: int) -> Trace:
        at_ns, tokens = self._at_ns, self._tokens()
        if not at_ns:
            return Trace(submitted_ns=submitted_ns, ended_ns=now_ns(), prompt_tokens=self._usage.prompt_tokens)
        took_s = (at_ns[-1] - at_ns[0]) / 1e9
        gaps = tuple((after - before) / 1e6 for before, after in pairwise(at_ns))
        one_each = tokens is not None and tokens - len(at_ns) in (0, 1)  # the last may be the end of the turn
        # Of a chunk with several tokens only their share of the text is known.
        first = 1 if one_each else (tokens or 0) * len(self._texts[0]) / sum(map(len, self._texts))
        return Trace(
            submitted_ns=submitted_ns,
            ended_ns=at_ns[-1],
            ttft_s=(at_ns[0] - submitted_ns) / 1e9,
            tps=(tokens - first) / took_s if tokens is not None and tokens > first and took_s > 0 else None,
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=tokens,
            gaps_ms=gaps if one_each else (),
            text="".join(self._texts),
        )

    def _tokens(self) -> int | None:
        """What the server counts; None where it says nothing, or more than the text has bytes."""
        told = self._usage.completion_tokens
        most = sum(len(text.encode("utf-8", "replace")) for text in self._texts) + _ODD_TOKENS
        return told if told is not None and 0 < told <= most else None


def _lines(chunks: Iterator[bytes], host: str) -> Iterator[bytes]:
    """Lines of a body. Raises ``BackendUnavailable`` for one that does not end."""
    endless = BackendUnavailable(f"{host} sends an answer that does not end.", "See the server's log.")
    deadline_s = time.monotonic() + _ANSWER_S
    rest, total = b"", 0
    for chunk in chunks:
        total += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        if total > _ANSWER_BYTES or len(rest) > _LINE_BYTES or time.monotonic() > deadline_s:
            raise endless
        yield from (line.rstrip(b"\r") for line in whole)
    if rest:
        yield rest


def _base(address: str) -> tuple[str, str]:
    """The address of the API, without a user's name or a query, and the host in it. Raises ``BadRequest``."""
    wrong = BadRequest(
        f"“{printable(address, 200)}” is no address of a server.",
        "Write it as in http://localhost:8080/v1.",
        param="against",
    )
    text = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise wrong from error
    if parts.scheme not in ("http", "https") or not host or not text.isprintable() or " " in text:
        raise wrong
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, path, "", "")), netloc


def _is_loopback(netloc: str) -> bool:
    host = urlsplit(f"//{netloc}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
