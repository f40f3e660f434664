"""Requests to a hub: who gets the token, which redirects are followed, what is tried again, what a failure means.

It knows HTTP and one endpoint; it does not know what is asked for. The client is huggingface_hub's own session, so
proxies and certificates are taken from where that library takes them.
"""

import contextlib
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from localinfer import decoding
from localinfer.errors import DownloadFailed, Gated, LocalInferError, ModelNotFound, Offline
from localinfer.models.names import printable
from localinfer.types import Value

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

_REDIRECTS = 10
_ANSWER_BYTES = 64_000_000
_PORTS = {"http": 80, "https": 443}
_SPENT = re.compile(r";\s*r=0;\s*t=(\d{1,9})")  # of the rate limit: nothing remains for so many seconds
_AGAIN = "Try again: what has arrived is kept."
_LITTLE_BYTES = 1 << 14  # an attempt that brought less is no progress


class Patience(Value, frozen=True):
    """How long to wait for a hub. ``tries`` counts attempts in a row that brought nothing, or next to nothing.

    Between them stands twice the last wait, from ``first_wait_s`` to ``longest_wait_s``. A hub that asks for a wait
    gets it up to ``longest_asked_s``.
    """

    connect_s: float = 10.0
    read_s: float = 20.0
    tries: int = 6
    first_wait_s: float = 0.5
    longest_wait_s: float = 8.0
    longest_asked_s: float = 120.0

    def wait_s(self, attempt: int, asked_s: float | None) -> float:
        """How long to wait after failed attempt number ``attempt``, counted from 1."""
        own = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (attempt - 1))
        return own if asked_s is None else max(own, asked_s)


PATIENCE = Patience()


class Temporary(Exception):
    """A failure that may pass. ``error`` is what the person is told when it does not.

    ``asked_s``: the wait that the server asks for. ``silent``: nothing came for so long that it is told at once.
    """

    def __init__(self, error: LocalInferError, asked_s: float | None = None, *, silent: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.asked_s, self.silent = error, asked_s, silent

    def words(self, wait_s: float) -> str:
        """What the person is told before the next attempt."""
        return f"{self.error.message} Trying again in {math.ceil(wait_s)} s."


class Stale(Temporary):
    """A server that the hub sent us to does not give the file; a fresh address from the hub may help, once."""


class Attempts:
    """The attempts to get one thing: how many failed, and how many in a row brought next to nothing."""

    def __init__(self, patience: Patience) -> None:
        self.failed = 0
        self.in_vain = 0
        self._stale = 0
        self._patience = patience

    def wait_s(self, failure: Temporary, brought_bytes: int = 0) -> float:
        """How long to wait after one more ``failure``. Raises its error when patience has ended."""
        if brought_bytes >= _LITTLE_BYTES:
            self.in_vain = self._stale = 0
        self.failed += 1
        self.in_vain += 1
        self._stale += isinstance(failure, Stale)
        if self.in_vain >= self._patience.tries or self._stale > 1:
            raise failure.error from failure
        return self._patience.wait_s(self.in_vain, failure.asked_s)


class Subject(NamedTuple):
    """What is asked for, in words, and the page where a person can see it."""

    what: str
    page: str = ""


class Opened(NamedTuple):
    """An answer whose body has not been read. ``headers`` are the last server's, ``hub`` those of the endpoint itself,
    which alone knows the file's identity; both with lower-case names."""

    status: int
    url: str
    headers: Mapping[str, str]
    hub: Mapping[str, str]
    chunks: Iterator[bytes]


class Web:
    """The way to the hub at ``endpoint``. May be used from several threads.

    ``credential`` is the value of the Authorization header; it goes to the origin of ``endpoint`` and nowhere else.
    ``say`` is told of every wait.
    """

    def __init__(
        self,
        endpoint: str,
        session: "Callable[[], httpx2.Client]",
        *,
        agent: str,
        credential: str | None = None,
        patience: Patience = PATIENCE,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.endpoint = endpoint
        self.host = urlsplit(endpoint).netloc.rpartition("@")[2]
        self.patience = patience
        self.authenticated = credential is not None
        self._session = session
        self._agent = agent
        self._credential = credential
        self.say = say

    def json(self, path: str, parameters: list[tuple[str, str]], kind: type[T], subject: Subject) -> T:
        """The answer to ``path`` as a ``kind``, asked for until ``patience`` ends.

        Raises ``Offline``, ``DownloadFailed``, ``Gated``, ``ModelNotFound``.
        """
        attempts = Attempts(self.patience)
        while True:
            try:
                return decoding.convert(self._json(path, parameters, subject), kind, strict=False)
            except msgspec.ValidationError as error:
                raise self._senseless(subject, str(error)) from error
            except Temporary as failure:
                # Without a network there is nothing to wait for: the person should know at once.
                if isinstance(failure.error, Offline):
                    raise failure.error from failure
                wait = attempts.wait_s(failure)
                self.say(failure.words(wait))
                time.sleep(wait)

    @contextlib.contextmanager
    def open(
        self, url: str, headers: Mapping[str, str], subject: Subject, *, encoded: bool = False
    ) -> Iterator[Opened]:
        """The answer to one request, redirects followed, with a status below 300.

        Raises ``Temporary``, also while the body is read, or for good ``Offline``, ``DownloadFailed``, ``Gated``,
        ``ModelNotFound``. ``encoded``: the body may travel compressed.
        """
        import httpx2

        timeout = httpx2.Timeout(self.patience.read_s, connect=self.patience.connect_s)
        redirects = 0
        hub: dict[str, str] = {}
        client = self._client()
        while True:
            own = {"user-agent": self._agent, **({} if encoded else {"accept-encoding": "identity"}), **headers}
            if self._credential and self.is_ours(url):
                own["authorization"] = self._credential
            with contextlib.ExitStack() as stack:
                with self._failures(url):
                    answer = stack.enter_context(
                        client.stream("GET", url, headers=own, timeout=timeout, follow_redirects=False)
                    )
                got = {name.lower(): value for name, value in answer.headers.items()}
                if self.is_ours(url):
                    hub |= got
                if answer.status_code in (301, 302, 303, 307, 308):
                    url = self._next(url, got.get("location", ""))
                    redirects += 1
                    if redirects > _REDIRECTS:
                        raise DownloadFailed(f"{self.host} redirects in a circle.", "Check HF_ENDPOINT and the proxy.")
                    continue
                if answer.status_code >= 300 or answer.status_code < 200:
                    if answer.status_code in (401, 403) and not self.is_ours(url):
                        raise Stale(_refused_elsewhere(url, answer.status_code, subject))
                    raise self._refusal(answer.status_code, got, subject, ranged="range" in headers)
                raw = answer.iter_bytes() if encoded else answer.iter_raw()
                yield Opened(status=answer.status_code, url=url, headers=got, hub=hub, chunks=self._watched(url, raw))
                return

    def _json(self, path: str, parameters: list[tuple[str, str]], subject: Subject) -> Any:
        import httpx2

        url = str(httpx2.URL(f"{self.endpoint}{path}", params=parameters)) if parameters else f"{self.endpoint}{path}"
        body = bytearray()
        with self.open(url, {"accept": "application/json"}, subject, encoded=True) as answer:
            for chunk in answer.chunks:
                if is_page(answer):
                    raise web_page(subject)
                body += chunk
                if len(body) > _ANSWER_BYTES:
                    raise self._senseless(subject, "it does not end")
        if not body:
            raise Temporary(empty(self.host, subject))
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Temporary(self._senseless(subject, str(error))) from error

    def _client(self) -> "httpx2.Client":
        try:
            return self._session()
        except (ImportError, ValueError, OSError) as error:
            raise DownloadFailed(
                f"The connection cannot be set up: {printable(str(error), 300)}.",
                "Check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE in the environment.",
            ) from error

    def is_ours(self, url: str) -> bool:
        """Whether ``url`` is at the endpoint's own origin; the same host with encryption added is."""
        own, other = _origin(self.endpoint), _origin(url)
        return other == own or (own[:2] == ("http", other[1]) and own[2] == 80 and other == ("https", own[1], 443))

    def _next(self, url: str, location: str) -> str:
        where = f"{self.host} redirects"
        try:
            target = urljoin(url, location)
            scheme, host, _ = _origin(target)
        except ValueError:
            scheme, host, target = "", "", location
        if not location or not host or scheme not in _PORTS:
            raise DownloadFailed(f"{where} to “{printable(location, 200)}”, which is no address.", _AGAIN)
        if urlsplit(url).scheme == "https" and scheme == "http":
            raise DownloadFailed(
                f"{where} to {printable(target, 200)}, which is not encrypted.", "Check HF_ENDPOINT and the proxy."
            )
        return target

    def _watched(self, url: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        with self._failures(url):
            yield from chunks

    @contextlib.contextmanager
    def _failures(self, url: str) -> Iterator[None]:
        """Turn the client's errors into ours."""
        import httpx2

        try:
            yield
        except httpx2.ProxyError as error:
            raise DownloadFailed(
                f"The proxy does not let localinfer through to {_host(url)}: {printable(str(error), 200)}.",
                "Check HTTPS_PROXY: its address, user name and password.",
            ) from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            message = f"{self.host} names an address that cannot be used: {printable(str(error), 200)}."
            raise DownloadFailed(message, "Check HF_ENDPOINT and the proxy settings.") from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if reason := _tls_reason(error):
                raise DownloadFailed(
                    f"The connection to {_host(url)} cannot be trusted: {printable(reason, 300)}.",
                    "If a proxy inspects the traffic here, name its certificate in SSL_CERT_FILE.",
                ) from error
            raise Temporary(unreachable(url)) from error
        except httpx2.TimeoutException as error:
            silence = DownloadFailed(f"{_host(url)} sent nothing for {self.patience.read_s:.0f} s.", _AGAIN)
            raise Temporary(silence, silent=True) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise Temporary(DownloadFailed(f"The connection to {_host(url)} broke off.", _AGAIN)) from error
        except ConnectionError as error:  # huggingface_hub's own guard, switched on after ours was read
            raise Offline("HF_HUB_OFFLINE is set.", "Unset it to go online.") from error

    def _refusal(self, status: int, headers: Mapping[str, str], subject: Subject, *, ranged: bool) -> Exception:
        """What an answer of ``status`` means; ``ranged``: a part of a file was asked for."""
        what = subject.what
        code, said = headers.get("x-error-code", ""), printable(headers.get("x-error-message", ""), 300)
        if status in (401, 403) and (code == "GatedRepo" or "gated" in said.lower()):
            return self._gated(subject)
        if status == 404 or code in ("RepoNotFound", "EntryNotFound", "RevisionNotFound"):
            return ModelNotFound(f"{self.host} has no {what}.", self._hint_for_private() if status == 401 else "")
        if status == 403 and self.authenticated:
            hint = "Your token may lack the right to it, or a proxy or firewall forbids it."
            return Gated(f"{self.host} refuses {what}. {said}".rstrip(), hint)
        if status in (401, 403):
            message = f"{self.host} does not give {what} to {'your account' if self.authenticated else 'strangers'}."
            return Gated(f"{message} {said}".rstrip(), self._hint_for_private())
        if status == 407:
            return DownloadFailed("The proxy wants a user name and password.", "Add them to HTTPS_PROXY.")
        if status == 416 and ranged:
            message = f"{self.host} has another file than it announced: {what} ends before its announced size."
            return DownloadFailed(message, "Try again. If it stays so, the mirror is out of date.")
        if status == 429:
            return self._too_many(headers)
        if status >= 500 or status == 408:
            asked = _asked_s(headers)
            if asked is not None and asked > self.patience.longest_asked_s:
                asked = None
            error = DownloadFailed(f"{self.host} is out of order (status {status}).", "Try again in some minutes.")
            return Temporary(error, asked)
        return DownloadFailed(f"{self.host} answers {status} for {what}. {said}".rstrip(), _AGAIN)

    def _gated(self, subject: Subject) -> Gated:
        message = f"Access to {subject.what} is gated: its owner wants its terms to be accepted, at {subject.page}."
        if self.authenticated:
            return Gated(message, "Accept them there with the account of your token; some owners answer by hand.")
        return Gated(message, "Accept them there, then set HF_TOKEN or run “hf auth login”.")

    def _too_many(self, headers: Mapping[str, str]) -> Exception:
        asked = _asked_s(headers)
        message = f"{self.host} gets too many requests from here"
        hint = "Try again later." if self.authenticated else "Try again later; with a token (HF_TOKEN) more is allowed."
        if asked is None or asked <= self.patience.longest_asked_s:
            return Temporary(DownloadFailed(f"{message}.", hint), asked)
        return DownloadFailed(f"{message} and wants a pause of {asked / 60:.0f} minutes.", hint)

    def _hint_for_private(self) -> str:
        if self.authenticated:
            return "Your token does not give access to it: check the name, and the token's rights."
        return "Check the name. If it is private, set HF_TOKEN or run “hf auth login”."

    def _senseless(self, subject: Subject, why: str) -> DownloadFailed:
        message = f"{self.host} sent an answer about {subject.what} that makes no sense: {printable(why, 200)}."
        return DownloadFailed(message, "Try again. If it stays so, check HF_ENDPOINT, or install a newer localinfer.")


def unreachable(url: str) -> Offline:
    """That the host of ``url`` cannot be reached."""
    hint = "Connect to the network, or check HF_ENDPOINT and HTTPS_PROXY, and try again."
    return Offline(f"{_host(url)} cannot be reached.", hint)


def is_page(answer: Opened) -> bool:
    """Whether the body is a page for people."""
    return answer.headers.get("content-type", "").lower().startswith(("text/html", "application/xhtml"))


def web_page(subject: Subject) -> DownloadFailed:
    """The error for a page for people where data should be."""
    return DownloadFailed(
        f"A web page came instead of {subject.what}.",
        "Often that is the login page of a network or a proxy: open any site in a browser, then try again.",
    )


def empty(host: str, subject: Subject) -> DownloadFailed:
    """The error for an answer without a body."""
    return DownloadFailed(f"{host} sent an empty answer for {subject.what}.", _AGAIN)


def _refused_elsewhere(url: str, status: int, subject: Subject) -> DownloadFailed:
    message = f"{_host(url)}, where the hub sent us for {subject.what}, refuses it (status {status})."
    return DownloadFailed(message, f"{_AGAIN} If it stays so, a proxy or firewall may forbid that address.")


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower(), 0)


def _host(url: str) -> str:
    return printable(urlsplit(url).netloc.rpartition("@")[2], 200)


def _tls_reason(error: BaseException) -> str:
    """Why the TLS handshake failed; empty if it is not that."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return getattr(cause, "verify_message", "") or cause.reason or str(cause)
        cause = cause.__cause__ or cause.__context__
    return ""


def _asked_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that the server asks to wait. A date is read against the server's own clock, never against ours."""
    from email.utils import parsedate_to_datetime

    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    if spent := _SPENT.search(headers.get("ratelimit", "")):
        return float(spent[1])
    try:
        until, now = (parsedate_to_datetime(text) for text in (value, headers.get("date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return None
