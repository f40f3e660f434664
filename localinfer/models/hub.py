"""The model hub: searching it, listing a repository, and naming its files so that they can be fetched.

The only file that imports huggingface_hub, which brings the connection, the proxy settings, the certificates and the
token; the requests are ours, so that every wait is told, every answer is checked, and nobody else gets the token.
It does not know how a file is fetched or where it goes.
"""

import contextlib
import difflib
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlsplit

from localinfer import __version__
from localinfer.errors import BadRequest, LocalInferError, ModelNotFound, Offline
from localinfer.models.hf_cache import is_true
from localinfer.models.names import printable, safe_file_path
from localinfer.models.quantizations import (
    GitId,
    RepoFile,
    RepoQuantization,
    Sha256,
    choose,
    choose_file,
    complete,
    group,
    projectors,
)
from localinfer.models.ranges import Remote, RemoteSource
from localinfer.models.references import HubReference, is_repo
from localinfer.models.web import PATIENCE, Patience, Subject, Web, unreachable
from localinfer.types import Value

T = TypeVar("T")

DEFAULT_ENDPOINT = "https://huggingface.co"
_TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_MAIN = "main"
_MOST_FOUND = 100
_SHOWN = ("downloads", "likes", "lastModified", "gated", "tags")


class Found(Value, frozen=True):
    """A repository that a search found. ``updated`` is an ISO 8601 date; ``gated``: its terms must be accepted."""

    id: str
    format: Literal["gguf", "mlx"]
    downloads: int = 0
    likes: int = 0
    updated: str = ""
    gated: bool = False
    licence: str = ""
    tags: tuple[str, ...] = ()


class Repo(Value, frozen=True):
    """A repository at one commit. ``revision`` is the branch that stood there.

    ``refused`` are the names, fit to be shown, of files that may not be written on this machine.
    """

    id: str
    commit: str
    revision: str
    page: str
    files: tuple[RepoFile, ...]
    licence: str = ""
    gated: bool = False
    tags: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def quantizations(self) -> tuple[RepoQuantization, ...]:
        """Its models, smallest first."""
        return group(self.files, self.id, mlx="mlx" in self.tags)

    @property
    def projectors(self) -> tuple[RepoFile, ...]:
        """The files that let a model see or hear, smallest first."""
        return projectors(self.files)

    def find(self, reference: HubReference) -> RepoQuantization | None:
        """The quantization that ``reference`` names; None if it names none. Raises ``ModelNotFound``,
        ``ModelFileInvalid`` if parts of it do not exist."""
        if reference.file:
            return complete(choose_file(self.quantizations, reference.file, self.id), self.id)
        if reference.quantization:
            return complete(choose(self.quantizations, reference.quantization, self.id), self.id)
        return None


class _Lfs(Value, frozen=True):
    sha256: Sha256
    size: int | None = None


class _File(Value, frozen=True, rename="camel"):
    rfilename: str
    size: int | None = None
    blob_id: GitId | None = None
    lfs: _Lfs | None = None


class _Info(Value, frozen=True, rename="camel"):
    """What the hub says of a repository, as far as it is used here."""

    id: str
    sha: GitId | None = None
    gated: bool | str = False
    disabled: bool | None = False
    downloads: int | None = 0
    likes: int | None = 0
    last_modified: str | None = ""
    tags: tuple[str, ...] = ()
    card_data: dict[str, Any] | None = None
    siblings: tuple[_File, ...] = ()


class Hub:
    """The hub at ``endpoint``; else at HF_ENDPOINT, else the public one. Nothing is asked before a method is called.

    The token is ``token``, else HF_TOKEN, else, for the public hub alone, the one that ``hf auth login`` saved: it was
    made for that host. ``say`` is told of every wait. Offline, by ``offline`` or HF_HUB_OFFLINE, every method raises
    ``Offline`` at once.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | None = None,
        offline: bool = False,
        *,
        patience: Patience = PATIENCE,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")
        if not _is_address(self.endpoint):
            raise BadRequest(
                f"“{printable(self.endpoint, 200)}” is no address of a hub.",
                "Set HF_ENDPOINT to one that begins with https://, or unset it.",
                param="HF_ENDPOINT",
            )
        self.offline = offline or is_true("HF_HUB_OFFLINE") or is_true("TRANSFORMERS_OFFLINE")
        self._token = token
        self._patience = patience
        self._say = say
        self._web: Web | None = None

    def search(self, query: str, limit: int = 20) -> tuple[Found, ...]:
        """The GGUF and MLX repositories that match ``query``, most downloaded first.

        Raises ``Offline``, ``DownloadFailed``.
        """
        found: dict[str, Found] = {}
        count = max(1, min(limit, _MOST_FOUND))
        for form in ("gguf", "mlx"):
            parameters = [("search", query), ("filter", form), ("sort", "downloads"), ("limit", str(count))]
            parameters += [("expand", name) for name in _SHOWN]
            for info in self._ask("/api/models", parameters, tuple[_Info, ...], Subject("model search")):
                if is_repo(info.id):
                    found.setdefault(info.id, _found(info, "mlx" if form == "mlx" else "gguf"))
        return tuple(sorted(found.values(), key=lambda one: (-one.downloads, one.id))[:count])

    def repo(self, id: str, revision: str | None = None) -> Repo:
        """The repository ``id`` at ``revision``, pinned to a commit: one request.

        Raises ``BadRequest``, ``ModelNotFound`` with near names, ``Gated``, ``Offline``, ``DownloadFailed``.
        """
        if not is_repo(id):
            raise BadRequest(f"“{printable(id, 200)}” is no name of a repository.", "Write owner/repo.", param="model")
        if revision is not None and not safe_file_path(revision):
            raise BadRequest(
                f"“{printable(revision, 200)}” is no revision.", "Name a branch or a commit.", param="model"
            )
        path = f"/api/models/{id}" + (f"/revision/{quote(revision, safe='')}" if revision else "")
        what = f"model {id}" + (f" at {printable(revision, 100)}" if revision else "")
        try:
            info = self._ask(path, [("blobs", "true")], _Info, Subject(what, self._page(id)))
        except ModelNotFound as error:
            if near := self._near(id):
                raise ModelNotFound(error.message, f"Did you mean {' or '.join(near)}? {error.hint}".strip()) from error
            raise
        if info.disabled:
            raise ModelNotFound(f"The hub has switched off {id}.", "Take another model.")
        return self._pinned(info, id if not is_repo(info.id) else info.id, revision or _MAIN)

    def remote(self, repo: Repo, file: RepoFile) -> Remote:
        """``file`` of ``repo``, to be fetched. Raises ``Offline``."""
        return Remote(
            web=self._online(),
            url=f"{self.endpoint}/{repo.id}/resolve/{repo.commit}/{quote(file.path)}",
            name=file.path.rpartition("/")[2],
            size_bytes=file.size_bytes,
            sha256=file.sha256,
            blob_id=file.blob_id,
            subject=Subject(f"{repo.id}/{file.path}", repo.page),
        )

    def header(self, repo: Repo, file: RepoFile) -> RemoteSource:
        """``file`` of ``repo``, to be looked into without fetching it. Raises ``Offline``."""
        return RemoteSource(self.remote(repo, file))

    def _ask(self, path: str, parameters: list[tuple[str, str]], kind: type[T], subject: Subject) -> T:
        return self._online().json(path, parameters, kind, subject)

    def _page(self, id: str) -> str:
        """Where a person reads about ``id``; the endpoint may hold a password, which is not for the screen."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}/{id}"

    def _near(self, id: str) -> list[str]:
        """Names of repositories that are like ``id``."""
        with contextlib.suppress(LocalInferError):
            names = {one.id.casefold(): one.id for one in self.search(id.partition("/")[2], 20)}
            return [names[key] for key in difflib.get_close_matches(id.casefold(), names, n=3, cutoff=0.5)]
        return []

    def _pinned(self, info: _Info, id: str, revision: str) -> Repo:
        files, refused = [], []
        for one in info.siblings:
            oid = one.lfs.sha256 if one.lfs else one.blob_id
            size = one.lfs.size if one.lfs and one.lfs.size is not None else one.size
            if safe_file_path(one.rfilename) and oid and size is not None and size >= 0:
                sha256 = one.lfs.sha256 if one.lfs else None
                files.append(RepoFile(path=one.rfilename, size_bytes=size, sha256=sha256, blob_id=one.blob_id))
            elif not _hidden(one.rfilename):
                refused.append(printable(one.rfilename, 200))
        if info.sha is None:
            raise ModelNotFound(f"{self.endpoint} does not say which version of {id} it has.", "Use another mirror.")
        return Repo(
            id=id,
            commit=info.sha,
            revision=revision,
            page=self._page(id),
            files=tuple(files),
            licence=_licence(info),
            gated=bool(info.gated),
            tags=_shown(info.tags),
            refused=tuple(refused),
        )

    def _online(self) -> Web:
        if self.offline:
            raise Offline(
                "The hub would have to be asked, and localinfer is offline.",
                "Leave out --offline, and unset HF_HUB_OFFLINE, to go online.",
            )
        if self._web is None:
            _look_up(self.endpoint)
            from huggingface_hub import get_session

            token = self._checked_token()
            self._web = Web(
                self.endpoint,
                get_session,
                agent=f"localinfer/{__version__}",
                credential=f"Bearer {token}" if token else None,
                patience=self._patience,
                say=self._say,
            )
        return self._web

    def _checked_token(self) -> str | None:
        """The token, if there is one. Raises ``BadRequest`` if no request can carry it."""
        token = self._token or self._saved_token()
        if token and not all("!" <= letter <= "~" for letter in token):
            names = () if self._token else (name for name in _TOKEN_VARIABLES if os.environ.get(name))
            name = next(iter(names), None)
            raise BadRequest(
                f"The token in {name} is none." if name else "The token for the hub is none.",
                "A token has only plain letters, digits and signs, as in hf_…: copy it again"
                + (f", or unset {name}." if name else ", or run “hf auth login”."),
                param=name or "token",
            )
        return token

    def _saved_token(self) -> str | None:
        from huggingface_hub import get_token

        if is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN"):
            return None
        if self.endpoint == DEFAULT_ENDPOINT:
            return get_token()
        return next((value for name in _TOKEN_VARIABLES if (value := os.environ.get(name, "").strip())), None)


def _is_address(endpoint: str) -> bool:
    """Whether ``endpoint`` can be that of a hub."""
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is no number
        return False


def _look_up(endpoint: str) -> None:
    """Raise ``Offline`` where the name of ``endpoint`` cannot be found: without a network that is known at once, long
    before the library that would find it out has been loaded. Behind a proxy names are the proxy's business."""
    import socket
    import urllib.request

    if set(urllib.request.getproxies()) - {"no"}:
        return
    try:
        socket.getaddrinfo(urlsplit(endpoint).hostname, None)
    except (OSError, UnicodeError) as error:  # the latter for a name that no host can have
        raise unreachable(endpoint) from error


def _found(info: _Info, form: Literal["gguf", "mlx"]) -> Found:
    return Found(
        id=info.id,
        format=form,
        downloads=info.downloads or 0,
        likes=info.likes or 0,
        updated=printable(info.last_modified or "", 40),
        gated=bool(info.gated),
        licence=_licence(info),
        tags=_shown(info.tags),
    )


def _licence(info: _Info) -> str:
    card = (info.card_data or {}).get("license")
    tagged = (tag.partition(":")[2] for tag in info.tags if tag.startswith("license:"))
    return printable(card if isinstance(card, str) else next(tagged, ""), 100)


def _shown(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(printable(tag, 100) for tag in tags)


def _hidden(path: str) -> bool:
    """Whether ``path`` is one of the harmless names that every repository has, such as ``.gitattributes``."""
    return safe_file_path("/".join(part.removeprefix(".") for part in path.split("/"))) and ".." not in path
