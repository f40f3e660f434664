"""Every entry of the catalogue against the real hub, where it can be reached: run by hand with ``-m hub``."""

import functools

import pytest

from localinfer.models.catalog import HubFiles, Quantization, catalog

pytestmark = pytest.mark.hub

_CLOSE = 0.1
_MODELS = [
    pytest.param(files, id=f"{model.id}-{files.name}")
    for model in catalog().models
    for files in model.variants
    if files.repo
]
_SPEECH = [
    pytest.param(files, id=f"{model.id}-{files.repo}") for model in catalog().speech for files in (model, *model.mlx)
]


@functools.cache
def look(repo: str, revision: str) -> dict[str, int] | str | None:
    """The sizes of a repository's files; what is wrong with it; None if the hub does not answer."""
    from httpx2 import TransportError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        info = HfApi().model_info(repo, revision=revision or None, files_metadata=True, timeout=20)
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 500
        return None if status >= 500 else f"the hub answers {status}"
    except (OSError, TransportError):  # no network, or HF_HUB_OFFLINE
        return None
    if info.gated:
        return "it asks for an account"
    return {one.rfilename: one.size or 0 for one in info.siblings or ()}


@pytest.mark.parametrize("files", [*_MODELS, *_SPEECH])
def test_it_is_there_for_everybody_in_the_stated_size(files: HubFiles) -> None:
    sizes = look(files.repo, files.revision)
    if sizes is None:
        pytest.skip("the hub cannot be reached")
    assert not isinstance(sizes, str), f"{files.repo}: {sizes}"
    names = files.files(sizes) if isinstance(files, Quantization) else tuple(sizes)
    assert names, f"{files.repo} has {sorted(name for name in sizes if name.endswith('.gguf'))}"
    size = sum(sizes[name] for name in names)
    if files.approximate:
        assert size == pytest.approx(files.size_bytes, rel=_CLOSE)
    else:
        assert size == files.size_bytes
