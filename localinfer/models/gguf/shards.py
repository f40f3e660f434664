"""All files of one model: whether they are the parts they should be, in the right order."""

from collections.abc import Sequence
from pathlib import Path

from localinfer.errors import ModelFileInvalid
from localinfer.models.gguf.header import Header, check, quoted
from localinfer.models.names import printable


def check_all(paths: Sequence[Path]) -> tuple[Header, ...]:
    """The headers of all files of one model, first part first.

    Raises what ``check`` does, and ``ModelFileInvalid`` where parts are missing, repeated, in another order or of
    another model.
    """
    headers = tuple(check(path) for path in paths)
    names = [printable(path.name) for path in paths]
    _check_numbers(names, headers)
    _check_tensors(names, headers)
    return headers


def _check_numbers(names: Sequence[str], headers: Sequence[Header]) -> None:
    if not headers:
        return
    total = headers[0].split_count
    holders: dict[int, str] = {}
    for name, header in zip(names, headers, strict=True):
        if header.split_count == 1 and len(headers) > 1:
            raise ModelFileInvalid(f"{name} is a whole model, not a part of one.", "Name that file alone.")
        if header.split_count != total:
            raise ModelFileInvalid(
                f"{name} is from a model that is split into {header.split_count}, {names[0]} from one split into "
                f"{total}.",
                "Fetch all parts from one place.",
            )
        if header.split_no in holders:
            raise ModelFileInvalid(
                f"{holders[header.split_no]} and {name} are both part {header.split_no + 1} of {total}.",
                "Fetch the part that is missing again.",
            )
        holders[header.split_no] = name
    if missing := sorted(set(range(total)) - set(holders)):
        shown = ", ".join(str(number + 1) for number in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        which = f"part {shown} is" if len(missing) == 1 else f"parts {shown}{more} are"
        raise ModelFileInvalid(
            f"{names[0]} is of a model that is split into {total} files: {which} missing.",
            "Put all parts in one folder and name the first one.",
        )
    for place, (name, header) in enumerate(zip(names, headers, strict=True)):
        if header.split_no != place:
            raise ModelFileInvalid(
                f"{name} is part {header.split_no + 1} of {total} and stands in the place of part {place + 1}.",
                "Give the files the names they had where they came from.",
            )


def _check_tensors(names: Sequence[str], headers: Sequence[Header]) -> None:
    """Parts of different quantizations of a model have the same numbers; their tensors need not add up."""
    if len(headers) < 2:
        return
    holders: dict[str, str] = {}
    for name, header in zip(names, headers, strict=True):
        for tensor in header.tensors:
            if tensor.name in holders:
                raise ModelFileInvalid(
                    f"{holders[tensor.name]} and {name} both hold the tensor {quoted(tensor.name)}.",
                    "Fetch all parts from one place.",
                )
            holders[tensor.name] = name
    announced = headers[0].metadata.get("split.tensors.count")
    if isinstance(announced, int) and announced != len(holders):
        raise ModelFileInvalid(
            f"The {len(headers)} parts from {names[0]} on hold {len(holders):,} of {announced:,} tensors.",
            "Fetch all parts from one place.",
        )
