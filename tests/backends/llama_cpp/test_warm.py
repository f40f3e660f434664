"""What the prefix cache brings back is what computing it again gives: the starter model, greedy, warm against cold.

Prompts stay below 64 tokens, from which on llama.cpp's attention on a CPU takes a kernel that rounds otherwise: this
small 4-bit model turns that into 0.1 on its logits, as much as a wrong token would. The tiny models in
``test_scheduler`` have no such noise and cover long prompts.
"""

from collections.abc import Sequence
from pathlib import Path

from backends.base import Backend
from localinfer.types import Sampling
from tests.backends.llama_cpp.driving import Answer, answers, chat, job, opened

TIE = 0.1  # of a natural log-probability: closer than that, two tokens may change places
SAMPLING = Sampling(temperature=0, top_logprobs=2)
REPLY = 14
TOKENS = 20
KERNEL_CHANGES_AT = 64
QUESTIONS = (
    "Write about a fox.",
    "Why is the sky blue?",
    "List five fruits.",
    "Tell me a joke.",
    "Who wrote Hamlet?",
    "How far is the moon?",
)


def answer(backend: Backend, prompt: Sequence[int], limit: int) -> Answer:
    assert len(prompt) < KERNEL_CHANGES_AT
    return answers(backend, [job(prompt, SAMPLING, limit)])[0]


def test_warm_equals_cold(starter_model: Path) -> None:
    """Six conversations in two slots: the second turn goes on where the first ended, then the first is asked again."""
    served: list[tuple[list[int], Answer]] = []
    with opened(starter_model, slots=2) as warm:
        for question in QUESTIONS:
            first = chat(warm.tokenizer, question)
            reply = answer(warm, first, REPLY)
            second = [*first, *reply.tokens, *chat(warm.tokenizer, "Say more.")]
            served.append((second, answer(warm, second, TOKENS)))
            assert served[-1][1].cached == len(first) + REPLY - 1
            served.append((first, answer(warm, first, TOKENS)))
            assert served[-1][1].cached == len(first) - 1
    splits = []
    for prompt, got in served:
        with opened(starter_model) as cold:
            expected = answer(cold, prompt, TOKENS)
        assert expected.cached == 0
        split = next((index for index in range(TOKENS) if got.tokens[index] != expected.tokens[index]), None)
        if split is not None:
            splits.append(
                min(each.logprobs[split].top[0][1] - each.logprobs[split].top[1][1] for each in (got, expected))
            )
    assert all(gap < TIE for gap in splits), splits
    assert len(splits) <= 2
