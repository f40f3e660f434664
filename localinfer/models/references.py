"""References to models on the hub, as people write them.

Knows the three forms and what a repository may be called. It asks nobody whether the model exists.

    owner/repo              owner/repo:Q4_K_M              owner/repo/folder/model-Q4_K_M.gguf

each with ``hf.co/``, ``huggingface.co/`` or ``https://…`` before it, and as the address of a file's page.
"""

import re

from localinfer.errors import BadRequest
from localinfer.models.names import printable, safe_file_path
from localinfer.types import Value

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_NAME}/{_NAME}")
_QUANTIZATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PREFIX = re.compile(r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/|hf://(?:models/)?", re.IGNORECASE)
_PAGE = re.compile(r"(?:blob|resolve|raw|tree)/(?P<revision>[^/]+)(?:/(?P<file>.*))?")
_FORMS = "Write owner/repo, owner/repo:Q4_K_M or owner/repo/file.gguf."


class HubReference(Value, frozen=True):
    """A model on the hub. At most one of ``quantization`` and ``file`` (a path in the repository) is set."""

    repo: str
    quantization: str | None = None
    file: str | None = None
    revision: str | None = None

    def __str__(self) -> str:
        if self.file:
            return f"{self.repo}/{self.file}"
        return f"{self.repo}:{self.quantization}" if self.quantization else self.repo


def is_repo(text: str) -> bool:
    """Whether ``text`` can be the name of a repository, and so of a folder in the cache."""
    return _REPO.fullmatch(text) is not None and "--" not in text and ".." not in text


def may_be_hub(text: str) -> bool:
    """Whether ``text`` can be meant for the hub: it has its address, or the form of a repository.

    A relative path of a local file may have that form too.
    """
    return _PREFIX.match(text) is not None or is_repo("/".join(text.partition(":")[0].split("/")[:2]))


def parse(text: str) -> HubReference:
    """The model that ``text`` names. Raises ``BadRequest``."""
    wanted = text.strip()
    prefix = _PREFIX.match(wanted)
    rest = wanted[prefix.end() :] if prefix else wanted
    if "://" in rest:
        raise _wrong(text, "is an address outside the hub", f"Download it yourself and give its path. {_FORMS}")
    if prefix:
        rest = rest.partition("?")[0].partition("#")[0].rstrip("/")
    owner, _, tail = rest.partition("/")
    name, slash, path = tail.partition("/")
    name, colon, quantization = name.partition(":")
    repo = f"{owner}/{name}"
    if not is_repo(repo):
        raise _wrong(text, "does not name a model on the hub", _FORMS)
    if colon:
        if slash or not _QUANTIZATION.fullmatch(quantization):
            raise _wrong(text, "has no quantization after the colon that could exist", "For example: owner/repo:Q4_K_M")
        return HubReference(repo=repo, quantization=quantization)
    if not slash:
        return HubReference(repo=repo)
    revision = None
    if prefix and (page := _PAGE.fullmatch(path)):
        revision, path = page["revision"], page["file"] or ""
        if not path:
            return HubReference(repo=repo, revision=revision)
    if not safe_file_path(path):
        raise _wrong(text, "names a file that may not be written on this machine", _FORMS)
    if not path.lower().endswith(".gguf"):
        raise _wrong(text, "does not name a .gguf file", _FORMS)
    return HubReference(repo=repo, file=path, revision=revision)


def _wrong(text: str, what: str, hint: str) -> BadRequest:
    return BadRequest(f"“{printable(text, 200)}” {what}.", hint, param="model")
