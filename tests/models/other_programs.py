"""What other programs leave on a disk: real files in their own layouts, a few bytes each."""

import hashlib
import json
from pathlib import Path

MODEL = "application/vnd.ollama.image.model"
GGUF = b"GGUF" + bytes(60)


def write(path: Path, data: bytes = GGUF) -> Path:
    """A file, with the folders it needs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def hub_file(cache: Path, repo: str, path: str, data: bytes = GGUF, commit: str = "c1") -> Path:
    """A file as huggingface_hub caches it: a blob, and a link to it in the snapshot of a commit."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    blob = write(folder / "blobs" / hashlib.sha256(data).hexdigest(), data)
    link = folder / "snapshots" / commit / path
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(Path(*[".."] * (len(Path(path).parts) + 1)) / "blobs" / blob.name)
    write(folder / "refs" / "main", b"c1")
    return link


def mlx_folder(folder: Path, bits: int | None = 4, model_type: str = "qwen3", size: int = 100) -> Path:
    """A model as mlx-lm saves it."""
    config: dict[str, object] = {"model_type": model_type}
    if bits:
        config["quantization"] = {"group_size": 64, "bits": bits}
    write(folder / "config.json", json.dumps(config).encode())
    write(folder / "model.safetensors", bytes(size))
    return folder


def ollama(
    store: Path,
    name: str,
    tag: str,
    data: bytes = GGUF,
    *,
    digest: str = "",
    kind: str = MODEL,
    file_type: str = "",
    owner: str = "library",
    host: str = "registry.ollama.ai",
) -> Path:
    """A model in Ollama's store; the path of its blob."""
    real = hashlib.sha256(data).hexdigest()
    blob = write(store / "blobs" / f"sha256-{real}", data)
    image = json.dumps({"model_format": "gguf", "file_type": file_type}).encode()
    config = hashlib.sha256(image).hexdigest()
    write(store / "blobs" / f"sha256-{config}", image)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"mediaType": "application/json", "digest": f"sha256:{config}", "size": len(image)},
        "layers": [
            {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'0' * 64}", "size": 5},
            {"mediaType": kind, "digest": digest or f"sha256:{real}", "size": len(data)},
        ],
    }
    write(store / "manifests" / host / owner / name / tag, json.dumps(manifest).encode())
    return blob
