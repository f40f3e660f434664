"""Having a model on this machine, wherever it comes from: found here, the package index, or the hub.

It knows references and sources; how a file is fetched is ``store``'s and ``pull``'s business.
"""

from collections.abc import Callable
from pathlib import Path

from localinfer.errors import ModelFileInvalid, ModelNotFound, StorageUnavailable
from localinfer.models import fetched, gguf, references, store
from localinfer.models.catalog import Quantization, catalog
from localinfer.models.gguf import Header
from localinfer.models.hub import Hub, Repo
from localinfer.models.progress import FetchProgress
from localinfer.models.pull import pull
from localinfer.models.quantizations import RepoFile
from localinfer.models.store import ModelRef


def acquire(reference: str, *, offline: bool, progress: Callable[[FetchProgress], None]) -> ModelRef:
    """The model that ``reference`` names, fetched if it is not here.

    A hub reference without a quantization takes the one that suits this machine. Raises ``ModelNotFound``,
    ``ModelFileInvalid``, ``Gated``, ``Offline``, ``DownloadFailed``, ``NotEnoughDisk``, ``StorageUnavailable``,
    ``BadRequest``.
    """
    try:
        ref = store.resolve(reference)
    except ModelNotFound:
        if not references.may_be_hub(reference):
            raise
        return _from_hub(reference, offline=offline, progress=progress)
    if ref.paths and _damaged(ref, progress):
        return acquire(reference, offline=offline, progress=progress)
    wanted = ref.quantization
    if wanted is None or not wanted.repo:
        store.ensure(ref, offline=offline, progress=progress)
        return ref
    spec = ref.spec
    hub = _hub(offline, progress)
    if spec is not None and catalog().get(reference) is spec:  # no quantization was asked for
        from localinfer.advice import Advice

        wanted = Advice(measure=not hub.offline).variant(spec)
    if spec is not None and hub.offline:
        raise store.not_here(spec, wanted)
    repo = hub.repo(wanted.repo, wanted.revision or None)
    return ModelRef(name=ref.name, paths=_pull(hub, repo, _files(repo, wanted), progress), spec=ref.spec)


def checked(ref: ModelRef) -> tuple[Header, ...]:
    """The headers of a model that is here, if it is one that generates text. Raises ``ModelFileInvalid``,
    ``ModelNotFound``, ``StorageUnavailable``."""
    headers = gguf.check_all(ref.paths)
    if headers[0].architecture in ("clip", "t5encoder"):
        raise ModelFileInvalid(
            f"{ref.path.name} is a {headers[0].architecture} encoder: it cannot generate text.",
            "Choose the language model it belongs to.",
        )
    try:
        str(ref.path).encode()
    except UnicodeEncodeError as error:
        raise ModelFileInvalid("The name of the model's file is not valid Unicode.", "Rename the file.") from error
    return headers


def _damaged(ref: ModelRef, progress: Callable[[FetchProgress], None]) -> bool:
    """Whether files that we fetched were damaged since; they are deleted then."""
    if not fetched.ours(ref.paths):
        return False
    try:
        gguf.check_all(ref.paths)
    except ModelFileInvalid as error:
        progress(
            FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice=f"{error.message} It is fetched again.")
        )
        fetched.delete(ref.paths)
        return True
    return False


def _from_hub(reference: str, *, offline: bool, progress: Callable[[FetchProgress], None]) -> ModelRef:
    hub = _hub(offline, progress)
    asked = references.parse(reference)
    repo = hub.repo(asked.repo, asked.revision)
    unit = repo.find(asked)
    if unit is None:
        from localinfer.advice import Advice
        from localinfer.lookup import choose_on_hub
        from localinfer.models.plan import Ask

        unit = choose_on_hub(hub, repo, Advice(), Ask())
    return ModelRef(name=f"{repo.id}:{unit.name}", paths=_pull(hub, repo, unit.files, progress))


def _hub(offline: bool, progress: Callable[[FetchProgress], None]) -> Hub:
    def say(notice: str) -> None:
        progress(FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice=notice))

    return Hub(offline=offline, say=say)


def _files(repo: Repo, wanted: Quantization) -> tuple[RepoFile, ...]:
    """The files of the repository that the catalogue means. Raises ``ModelNotFound``."""
    by_path = {file.path: file for file in repo.files}
    paths = wanted.files(by_path)
    if not paths:
        raise ModelNotFound(
            f"{repo.id} does not hold {wanted.file} any more.", f"See what it holds: localinfer show {repo.id}"
        )
    return tuple(by_path[path] for path in paths)


def _pull(
    hub: Hub, repo: Repo, files: tuple[RepoFile, ...], progress: Callable[[FetchProgress], None]
) -> tuple[Path, ...]:
    paths = pull(hub, repo, files, progress)
    try:
        fetched.record(paths)
    except StorageUnavailable as error:  # the model is here all the same
        notice = f"{error.message} So “localinfer rm” will not know this model as its own. {error.hint}"
        progress(FetchProgress(done_bytes=0, total_bytes=0, stage="wait", notice=notice))
    return paths
