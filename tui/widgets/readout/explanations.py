"""What each figure of the readout means, in a line or two. The words of the README's table where it has the figure."""

from typing import NamedTuple


class Explanation(NamedTuple):
    """``name`` is the figure as people say it; ``meaning`` is its definition."""

    name: str
    meaning: str


EXPLANATIONS = {
    "ttft": Explanation("TTFT", "from submitting to the first text (reasoning counts)"),
    "load": Explanation("load", "the part of TTFT spent waiting for the model to load"),
    "queue": Explanation("queue", "the part of TTFT spent waiting for a slot"),
    "prefill": Explanation("prefill", "the part spent computing prompt tokens"),
    "prefill_tps": Explanation("fresh", "freshly computed prompt tokens ÷ the time that took"),
    "cached": Explanation(
        "cached", "tokens of the prompt that were reused instead of computed, and the time until they were in place"
    ),
    "first": Explanation("first token", "from the end of prefill to the first text"),
    "tps": Explanation(
        "speed", "tokens per second over the last two seconds while decoding; afterwards the mean of the reply"
    ),
    "mean": Explanation("tok/s", "(tokens − 1) ÷ (last token − first token): tokens, not chunks of text"),
    "history": Explanation(
        "last 60 s", "tokens per second of decoding, from nothing up to the highest; blank where nothing was decoded"
    ),
    "itl": Explanation(
        "ITL", "gaps between consecutive tokens, half of them shorter (p50), one of a hundred longer (p99); accepted "
        "drafts arrive together, with a gap of 0"
    ),
    "tokens": Explanation("tokens", "the prompt’s, with everything the chat template adds, and the reply’s"),
    "context": Explanation("context", "tokens in use of those the model was loaded for; the bar shows what they are"),
    "reused": Explanation("cached", "tokens of the last prompt that were reused instead of computed again"),
    "speculation": Explanation("speculation", "what drafts tokens that the model only checks, or why nothing does"),
    "acceptance": Explanation("acceptance rate", "accepted ÷ drafted tokens of speculative decoding"),
    "gain": Explanation(
        "gain", "tokens per second ÷ what plain decoding would have given by the measured cost of one-token steps; "
        "tokens per pass = 1 + accepted ÷ drafts"
    ),
    "roofline": Explanation(
        "roofline", "bytes read per token (weights touched + KV at this depth) × passes per second ÷ the bandwidth of "
        "the memory; ≈ where that is the published one; over 100 % when caches help"
    ),
    "memory": Explanation(
        "memory", "the model’s weights, KV cache and the rest it needs as planned from its file; other apps and "
        "what is free as the system says now"
    ),
    "placement": Explanation("machine", "where the model runs, as measured after loading, and the threads in use now"),
    "cpu": Explanation("CPU", "how busy the cores are that localinfer may use, and the processor’s temperature"),
    "gpu": Explanation("GPU", "how busy it is, its temperature and the power it draws, as its driver says"),
    "power": Explanation("power", "where the power comes from, and whether the machine slows itself down"),
}  # fmt: skip
