"""The line a model is writing, with the marks it has opened closed for the moment.

Without it every bold word would stand there with its stars until the last letter is written, and then jump.
"""

import re

# A star that begins a line may be a bullet, two of them never.
_STRONG = re.compile(r"\*\*")


def healed(line: str) -> str:
    """``line`` as it looks once what is open in it is closed; a mark with nothing after it is left out."""
    if line.lstrip(" ").startswith(("```", "~~~")):
        return line
    if line.count("`") % 2:
        return line[:-1] if line.endswith("`") else line + "`"
    if len(_STRONG.findall(line)) % 2:
        body = line.rstrip("* ")
        return f"{body}**" if len(_STRONG.findall(body)) % 2 else body
    return line
