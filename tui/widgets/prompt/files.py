"""Text files that go with a message: how they are named in it, and reading them.

A file is named by ``@path`` at the beginning of a word; a path with spaces in quotes, ``@"a b.txt"``.
"""

import codecs
import errno
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from localinfer.errors import BadRequest, LocalInferError, StorageUnavailable
from localinfer.history.values import Attachment
from localinfer.settings import read_file
from tui.text.clean import clean

MOST_BYTES = 2_000_000

_TOKEN = re.compile(r"""(?:^|(?<=[\s(\[{'"]))@(?:"([^"\n]*)"?|([^\s"]+))""", re.MULTILINE)
_OPEN_TOKEN = re.compile(r"""(?:^|(?<=[\s(\[{'"]))@("[^"\n]*|[^\s"]*)$""", re.MULTILINE)
_AFTER_A_PATH = ".,;:!?)]}'…"
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def open_token(before: str) -> str | None:
    """The path that is being typed at the end of ``before``, with the quote it may begin with; None: there is none."""
    match = _OPEN_TOKEN.search(before)
    return match[1] if match else None


def named(text: str) -> Iterator[str]:
    """The paths that ``text`` may name. Most words that begin with ``@`` name no file."""
    for match in _TOKEN.finditer(text):
        yield match[1] or match[2] or ""


def gather(text: str, folder: Path) -> tuple[list[Attachment], LocalInferError | None]:
    """The files that ``text`` names, relative to ``folder``, and the first error of those that cannot be attached. It
    blocks."""
    found: dict[str, Attachment] = {}
    refused: LocalInferError | None = None
    for typed in named(text):
        if (path := _file(typed, folder)) is None:
            continue
        try:
            attachment = read(path, folder)
            found[attachment.name] = attachment
        except LocalInferError as error:
            refused = refused or error
    return list(found.values()), refused


def _file(typed: str, folder: Path) -> Path | None:
    """What is there at ``typed``, or at it without the punctuation of the sentence."""
    while typed:
        path = resolve(typed, folder)
        if _exists(path):
            return path
        shorter = typed.rstrip(_AFTER_A_PATH)
        typed = shorter if shorter != typed else ""
    return None


def resolve(typed: str, folder: Path) -> Path:
    """The path that ``typed`` means, relative to ``folder``; ``~`` is the person's home."""
    path = Path(typed)
    if typed.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:  # a plain name that begins with "~"
            path = Path(typed)
    return folder / path


def name_of(path: Path, folder: Path) -> str:
    """How a file is called where a person sees it: relative to ``folder`` or to the home if it is in them."""
    for base, prefix in ((folder, ""), (Path.home(), "~/")):
        if path.is_relative_to(base) and path != base:
            return printable(prefix + path.relative_to(base).as_posix())
    return printable(str(path))


def printable(name: str) -> str:
    """``name`` on one line, harmless to show."""
    return clean(name).replace("\n", "␊").replace("\t", "␉")


def read(path: Path, folder: Path) -> Attachment:
    """The text file at ``path``. Raises ``BadRequest`` for what is no text or too large, ``StorageUnavailable`` for
    what cannot be read. It blocks, but waits for no pipe."""
    name = name_of(path, folder)
    try:
        status = path.stat()
        if kind := _kind(status.st_mode):
            raise BadRequest(f"{name} is {kind}.", "Only text files can be attached.")
        if status.st_size > MOST_BYTES:
            raise _too_large(name, status.st_size)
        data = read_file(path, MOST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_large(name, None) from error
        if isinstance(error, FileNotFoundError):
            raise BadRequest(f"There is no file {name}.", "Check the path.") from error
        reason = "permission denied" if isinstance(error, PermissionError) else (error.strerror or str(error)).lower()
        raise StorageUnavailable(f"{name} cannot be read: {reason}.", "Check who may read it.") from error
    text = decode(data)
    if text is None:
        raise BadRequest(f"{name} is not a text file.", "Only text can be attached.")
    return Attachment(name=name, text=text.replace("\r\n", "\n").replace("\r", "\n"))


def decode(data: bytes) -> str | None:
    """``data`` as text: by its byte order mark, as UTF-16 if every other byte is zero, else as UTF-8. None: no text."""
    encoding = next((encoding for bom, encoding in _BOMS if data.startswith(bom)), "")
    if not encoding:
        even, odd = data[::2].count(0), data[1::2].count(0)
        mostly = len(data) // 4
        encoding = "utf-16-le" if odd > mostly > even else "utf-16-be" if even > mostly > odd else "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError) as error:  # a NUL, a name that is too long
        return isinstance(error, PermissionError)
    return True


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return "" if stat.S_ISREG(mode) else kinds.get(stat.S_IFMT(mode), "a device")


def _too_large(name: str, size_bytes: int | None) -> BadRequest:
    size = f"{size_bytes / 1e6:.1f} MB" if size_bytes else f"more than {MOST_BYTES / 1e6:.0f} MB"
    return BadRequest(
        f"{name} is too large: {size}, at most {MOST_BYTES / 1e6:.0f} MB can be attached.",
        "Attach the part that matters.",
    )
