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
    "system": Explanation("system", "tokens of the system prompt, without what the chat template puts around it"),
    "earlier": Explanation(
        "history", "tokens of the rest of the prompt: the messages, and what the chat template adds to them"
    ),
    "reply": Explanation("reply", "tokens of the reply that is being written, or of the last one; thinking counts"),
    "room": Explanation("free", "tokens of the context that are not in use yet"),
    "reused": Explanation("cached", "tokens of the last prompt that were reused instead of computed again"),
    "speculation": Explanation(
        "speculation", "a drafter proposes tokens that the model only checks, several in one pass; what it writes is "
        "the same"
    ),
    "drafter": Explanation("drafter", "what proposes the tokens, or why nothing does at present"),
    "acceptance": Explanation("acceptance rate", "accepted ÷ drafted tokens of speculative decoding"),
    "gain": Explanation(
        "gain", "tokens per second ÷ what plain decoding would have given by the measured cost of one-token steps in "
        "the same reply"
    ),
    "passes": Explanation("per pass", "1 + accepted ÷ drafts: the tokens that a pass with a draft yields"),
    "places": Explanation(
        "places", "of each place in a draft, how often the token there is accepted with all before it, from never to "
        "always (a full bar)"
    ),
    "roofline": Explanation(
        "roofline", "bytes a token reads (weights touched, and the KV cache at this depth) × passes per second ÷ the "
        "device’s bandwidth; ≈ where that is the published one; over 100 % when caches help"
    ),
    "memory": Explanation("memory", "how much of this device’s memory is free, as the system says now"),
    "weights": Explanation("model", "the weights that lie in this memory, as planned from the model’s file"),
    "kv": Explanation(
        "KV", "the KV cache for the whole context in this memory, recurrent states too, as planned; it is taken at "
        "once, however little of it is in use"
    ),
    "other": Explanation("other", "compute buffers and what else the model needs in this memory, as planned"),
    "apps": Explanation("apps", "what other programs hold: in use as the system says, without what the model takes"),
    "placement": Explanation("machine", "where the model runs, as measured after loading, and the threads in use now"),
    "cpu": Explanation("CPU", "how busy the cores are that localinfer may use, and the processor’s temperature"),
    "gpu": Explanation("GPU", "how busy it is, its temperature and the power it draws, as its driver says"),
    "power": Explanation("power", "where the power comes from, and whether the machine slows itself down"),
}  # fmt: skip
