"""A vocabulary to tokenise with: ids 0 to 255 are bytes, control tokens come after them."""

import re


class Vocabulary:
    """``localinfer.chat.prompt.Tokenizer``. ``spaced``: it puts a space before every text, as SentencePiece ones do."""

    def __init__(
        self, *controls: str, bos: str = "", eos: str = "", adds_bos: bool = False, spaced: bool = False
    ) -> None:
        self.controls = tuple(dict.fromkeys(filter(None, (bos, eos, *controls))))
        self.bos = self._id(bos) if bos else None
        self.eos = self._id(eos) if eos else None
        self.adds_bos = adds_bos
        self.chat_template: str | None = None
        self._spaced = spaced
        longest_first = sorted(self.controls, key=len, reverse=True)
        self._pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if self.controls else None

    def _id(self, spelling: str) -> int:
        return 256 + self.controls.index(spelling)

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = []
        for part in self._pattern.split(text) if special and self._pattern else [text]:
            if special and part in self.controls:
                ids.append(self._id(part))
            elif part:
                ids += ((" " if self._spaced else "") + part).encode()
        return ids

    def piece(self, token: int) -> bytes:
        return bytes([token]) if token < 256 else b""

    def text(self, token: int) -> str:
        return chr(token) if token < 256 else self.controls[token - 256]

    def control_texts(self) -> tuple[str, ...]:
        return self.controls

    def is_end(self, token: int) -> bool:
        return token == self.eos

    def ordinary(self, ids: tuple[int, ...]) -> str:
        """What the ordinary tokens among ``ids`` say."""
        return b"".join(map(self.piece, ids)).decode()

    def control(self, ids: tuple[int, ...]) -> list[str]:
        """The control tokens among ``ids``."""
        return [self.text(token) for token in ids if token >= 256]


CHATML = Vocabulary("<|im_start|>", "<|im_end|>", eos="<|endoftext|>")
LLAMA = Vocabulary("<|start_header_id|>", "<|end_header_id|>", bos="<|begin_of_text|>", eos="<|eot_id|>", adds_bos=True)
MISTRAL = Vocabulary("[INST]", "[/INST]", "<unk>", bos="<s>", eos="</s>", adds_bos=True, spaced=True)
GEMMA = Vocabulary("<start_of_turn>", "<end_of_turn>", bos="<bos>", eos="<eos>", adds_bos=True)
