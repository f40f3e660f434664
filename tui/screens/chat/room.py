"""When a conversation no longer fits into the context: what can be done about it, and doing what the person chose."""

from typing import TYPE_CHECKING

import msgspec

from localinfer.errors import ContextOverflow, LocalInferError
from localinfer.history import room, tree
from localinfer.history.values import Omission, Turn
from localinfer.types import Done, GenerationRequest, Text, TokenCount
from tui.screens.choose import Choice, ChooseScreen

if TYPE_CHECKING:
    from localinfer.engines import Opened
    from tui.screens.chat.screen import ChatScreen

_CHARACTERS = 100_000  # of a piece to begin with; halved until it fits


async def make_room(screen: "ChatScreen", overflow: ContextOverflow) -> bool:
    """Ask the person, do it, and say whether something was done."""
    talk, desk = screen.talk, screen.desk
    engine = desk.engine
    if engine is None:
        return False
    seen = tree.seen(talk.path, talk.omissions)
    counted = await engine.count(tree.messages(talk.path, talk.parameters, talk.omissions))
    tokens = _by_turn(seen, counted)
    context = overflow.context or (engine.status().model or overflow).context or 0
    omission = room.to_drop(seen, tokens, counted.total, context)
    dropped = seen[: [turn.id for turn in seen].index(omission.upto) + 1] if omission else ()
    larger = _larger(engine, context, counted.total)
    chosen = await screen.app.push_screen_wait(
        ChooseScreen(
            "This conversation no longer fits",
            f"It takes {counted.total:,} of {context:,} tokens of context, and a reply needs room too. "
            "Nothing is left out unless you say so.",
            _choices(dropped, sum(tokens[: len(dropped)]), context, larger),
        )
    )
    match chosen:
        case "drop" if omission:
            await talk.leave_out(omission)
        case "summarise" if omission:
            summary = await _summarise(screen, engine, dropped, tokens, context)
            if not summary:
                return False
            await talk.leave_out(Omission(upto=omission.upto, summary=summary))
        case "larger" if larger:
            await screen.models.apply(msgspec.structs.replace(talk.parameters, context=larger))
        case _:
            return False
    return True


def _by_turn(seen: tuple[Turn, ...], counted: TokenCount) -> list[int]:
    """Tokens of each turn in view: the messages made of them, in order, after the system prompt if there is one."""
    spare = len(counted.by_message) - len(seen)
    counts = list(counted.by_message[max(0, spare) :])
    return counts + [0] * (len(seen) - len(counts))


def _choices(dropped: tuple[Turn, ...], tokens: int, context: int, larger: int | None) -> tuple[Choice, ...]:
    nothing = "" if dropped else "The last message alone is too long: shorten it, or attach less."
    count = f"{len(dropped)} oldest message{'s' if len(dropped) != 1 else ''}"
    return (
        Choice(
            id="drop",
            label=f"Leave out the {count}" if dropped else "Leave out the oldest messages",
            detail=f"{tokens:,} tokens. They stay, marked; the model no longer sees them.",
            reason=nothing,
        ),
        Choice(
            id="summarise",
            label=f"Let the model summarise the {count}" if dropped else "Let the model summarise the oldest messages",
            detail="As above, with a short summary in their place; takes a moment.",
            reason=nothing or ("" if context >= room.LEAST_CONTEXT else "The context is too small for a summary."),
        ),
        Choice(
            id="larger",
            label=f"A context of {larger:,} tokens" if larger else "A larger context",
            detail="It fits in memory by the plan. The model is loaded again.",
            reason="" if larger else "This model or this machine's memory has no room for one.",
        ),
    )


def _larger(engine: "Opened", context: int, needed: int) -> int | None:
    """The next larger context that the plan has room for and that holds what is ``needed``."""
    plan = engine.placing.plan if engine.placing else None
    if plan is None:
        return None
    most = min(plan.max_context, plan.trained_context or plan.max_context)
    wanted = context * 2
    while wanted < needed * 4 // 3:
        wanted *= 2
    wanted = min(wanted, most)
    return wanted if wanted > context and wanted > needed else None


async def _summarise(
    screen: "ChatScreen", engine: "Opened", dropped: tuple[Turn, ...], tokens: list[int], context: int
) -> str:
    """A summary by the model itself, piece by piece where the whole does not fit; "" where it was stopped or failed."""
    summary = next((one.summary for one in reversed(screen.talk.omissions) if one.summary), "")
    parts = room.pieces(dropped, tokens[: len(dropped)], context)
    try:
        for number, part in enumerate(parts, start=1):
            step = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            screen.tell(f"Summarising {len(dropped)} messages{step} … Esc stops")
            generation = engine.submit(await _fitting(engine, part, summary, context))
            screen.summarising = generation
            written: list[str] = []
            async for event in generation:
                if isinstance(event, Text):
                    written.append(event.text)
                if isinstance(event, Done) and event.finish_reason == "cancelled":
                    return ""
            summary = "".join(written).strip() or summary
    except LocalInferError as error:
        screen.trouble(error)
        return ""
    finally:
        screen.summarising = None
        screen.tell("")
    return summary


async def _fitting(engine: "Opened", part: list[Turn], summary: str, context: int) -> GenerationRequest:
    """The request for a summary of ``part``, cut until it leaves room for the summary. Raises ``ContextOverflow``."""
    characters = _CHARACTERS
    while True:
        request = room.summary_request(part, summary, characters, context)
        if (await engine.count(request.messages)).total + room.summary_tokens(context) <= context:
            return request
        if characters < 200:
            raise ContextOverflow("The messages do not fit into the context to be summarised.", "Leave them out.")
        characters //= 2
