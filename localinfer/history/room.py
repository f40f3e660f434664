"""Making room in the context of a conversation that no longer fits: which turns to leave out, and a summary of them.

Nothing is ever left out without the person's word: this only works out what could be. It knows turns and token counts;
it asks nobody.
"""

from collections.abc import Sequence

from localinfer.history.values import Omission, Turn
from localinfer.types import GenerationRequest, Message, Sampling

REPLY_SHARE = 0.25  # of the context is to be free for what follows
LEAST_CONTEXT = 1024  # tokens: in less there is no room for what is summarised, its summary and what follows
_MOST_SUMMARY = 400  # tokens

_ASK = (
    "Summarise the conversation below so that it can be continued from the summary alone. Keep names, numbers, "
    "decisions, code identifiers and open questions. Write at most 200 words, in the language of the conversation."
)


def to_drop(seen: Sequence[Turn], tokens: Sequence[int], total: int, context: int) -> Omission | None:
    """The fewest oldest turns to leave out so that the rest of ``seen`` leaves room for a reply.

    ``tokens`` belong to the turns, ``total`` is what the whole prompt takes now. Exchanges stay whole: what remains
    begins with a message of the person, and the last message is never left out. None where even that does not help.
    """
    wanted = int(context * (1 - REPLY_SHARE))
    left = total
    last = max((index for index, turn in enumerate(seen) if turn.role == "user"), default=0)
    for index, turn in enumerate(seen[:last]):
        left -= tokens[index]
        if left <= wanted and seen[index + 1].role == "user":
            return Omission(upto=turn.id)
    return None


def summary_tokens(context: int) -> int:
    """How long a summary may become."""
    return min(_MOST_SUMMARY, context // 4)


def pieces(dropped: Sequence[Turn], tokens: Sequence[int], context: int) -> list[list[Turn]]:
    """``dropped`` in pieces that each fit into the context together with a summary of what came before."""
    room = context - 3 * summary_tokens(context)
    found: list[list[Turn]] = []
    held = 0
    for turn, count in zip(dropped, tokens, strict=True):
        if not found or held + count > room:
            found.append([])
            held = 0
        found[-1].append(turn)
        held += count
    return found


def summary_request(turns: Sequence[Turn], before: str, most_characters: int, context: int) -> GenerationRequest:
    """What to ask the model for a summary of ``turns``, which go on from ``before``, the summary so far.

    A turn that is longer than its share of ``most_characters`` is cut in the middle, which its text then says.
    """
    told = [f"Summary of what came before: {before}"] if before else []
    share = max(20, most_characters // max(1, len(turns)))
    for turn in turns:
        told.append(f"{'Person' if turn.role == 'user' else 'Assistant'}: {_middle_cut(turn.content, share)}")
    text = f"{_ASK}\n\n---\n" + "\n\n".join(told) + "\n---"
    return GenerationRequest(
        messages=(Message(role="user", content=text),),
        sampling=Sampling(temperature=0),
        max_tokens=summary_tokens(context),
        label="summary",
    )


def _middle_cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are not shown …]\n{text[-half:]}"
