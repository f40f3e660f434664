"""Headers as values, for tests that need no file."""

from collections.abc import Mapping, Sequence

from localinfer.models.gguf import Header, Tensor

Metadata = Mapping[str, int | float | bool | str | Sequence[int | bool]]


def header(architecture: str, metadata: Metadata, tensors: Sequence[Tensor] = (), **counts: int) -> Header:
    """A header with these keys, named without the architecture. Numbers in ``counts`` are lengths of longer ones."""
    known = {name: tuple(value) if isinstance(value, list | tuple) else value for name, value in metadata.items()}
    return Header(
        version=3,
        architecture=architecture,
        name="Test",
        tensor_count=len(tensors),
        parameters=sum(tensor.size_bytes for tensor in tensors),
        context_length=_count(known, "context_length"),
        block_count=_count(known, "block_count"),
        embedding_length=_count(known, "embedding_length"),
        head_count=None,
        head_count_kv=None,
        key_length=None,
        value_length=None,
        sliding_window=None,
        has_chat_template=False,
        tokenizer_model=None,
        split_no=0,
        split_count=1,
        file_size_bytes=0,
        weights_bytes=sum(tensor.size_bytes for tensor in tensors),
        header_bytes=0,
        metadata={f"{architecture}.{name}": value for name, value in known.items()},  # type: ignore[misc]
        counts={f"{architecture}.{name.replace('__', '.')}": count for name, count in counts.items()},
        tensors=tuple(tensors),
    )


def attention(
    architecture: str, layers: int, kv_heads: int | Sequence[int], head: int, *, heads: int = 32, **more: object
) -> Header:
    """A model of so many layers; ``more`` keys are written with ``__`` for the dot."""
    keys: dict[str, object] = {
        "block_count": layers,
        "embedding_length": 4096,
        "context_length": 131_072,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return header(architecture, keys)  # type: ignore[arg-type]


def tensor(name: str, size_bytes: int, *shape: int) -> Tensor:
    return Tensor(name=name, shape=shape or (size_bytes,), type="I8", size_bytes=size_bytes)


def _count(metadata: Mapping[str, object], name: str) -> int | None:
    value = metadata.get(name)
    return value if isinstance(value, int) else None
