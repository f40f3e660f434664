"""Text as a line: what a title, a name or an excerpt may hold. It knows characters and nothing of conversations."""

TITLE_LENGTH = 60  # of a title that was made from a message
LONGEST = 200


def storable(text: str) -> str:
    """``text`` with what no encoding can hold replaced: half of a surrogate pair, as a paste may bring along."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def one_line(text: str, longest: int = LONGEST) -> str:
    """``text`` on one line, printable, without surplus white space, cut between words to ``longest`` characters."""
    line = " ".join("".join(c for c in text[: 8 * longest] if c.isprintable() or c.isspace()).split())
    if len(line) <= longest:
        return line
    head, space, _ = line[:longest].rpartition(" ")
    return (head if space and len(head) >= longest // 2 else line[: longest - 1]) + "…"


def title_of(message: str) -> str:
    """A title made from a message: its first line with a word in it."""
    for line in message[:10_000].splitlines():
        if any(c.isalnum() for c in line) and not line.lstrip().startswith("```"):
            return one_line(line, TITLE_LENGTH)
    return one_line(message, TITLE_LENGTH)
