"""What drafts for a model and why nothing does: as a reply said of itself, else as its next one will."""

from localinfer.types import Metrics, ModelInfo, Speculation

LOOKUP = "prompt lookup"


def drafting(metrics: Metrics | None, model: ModelInfo | None, asked: Speculation, *, running: bool) -> tuple[str, str]:
    """The drafter in words, "" where there is none, and why nothing is drafted, "" where something may be.

    ``metrics`` are those of the reply in view, ``asked`` is for the replies that are not ``running`` yet.
    """
    told = (metrics.drafter, metrics.speculation_off) if metrics is not None else ("", "")
    if model is None or (running and any(told)):
        return told
    if model.no_speculation:
        return "", model.no_speculation
    if asked.drafter == "off" or asked.most == 0:
        return "", "switched off; /draft auto switches it on"
    drafter = " + ".join(_drafters(model, asked))
    if not drafter:
        return "", model.no_draft or "no draft model is loaded; /draft chooses one"
    return drafter, told[1] if told[0] == drafter else ""


def _drafters(model: ModelInfo, asked: Speculation) -> list[str]:
    lookup = [LOOKUP] if asked.drafter in ("auto", "lookup") else []
    return lookup + ([model.draft] if model.draft and asked.drafter in ("auto", "model") else [])
