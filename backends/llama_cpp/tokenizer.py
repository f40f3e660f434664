"""The tokenizer of a loaded model. Its calls only read the vocabulary, so any thread may make them."""

import ctypes
from functools import cached_property

from backends.llama_cpp.library import lib
from backends.llama_cpp.native import NativeModel

_CONTROL = 1 << 3 | 1 << 0  # LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN


class LlamaTokenizer:
    """``backends.base.Tokenizer`` over a llama.cpp vocabulary."""

    def __init__(self, model: NativeModel) -> None:
        self._vocab = model.vocab
        self._model = model
        bos, eos = int(lib.llama_vocab_bos(self._vocab)), int(lib.llama_vocab_eos(self._vocab))
        self.bos = bos if bos >= 0 else None
        self.eos = eos if eos >= 0 else None
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self._vocab))
        template = lib.llama_model_chat_template(model.pointer, None)
        self.chat_template = template.decode("utf-8", "replace") if template else None
        self._pieces: dict[int, bytes] = {}
        self._ends: dict[int, bool] = {}

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Ids of ``text``, without begin-of-sequence."""
        data = text.encode("utf-8", "replace")
        capacity = len(data) + 8
        while True:
            buffer = (ctypes.c_int32 * capacity)()
            count = lib.llama_tokenize(self._vocab, data, len(data), buffer, capacity, False, special)
            if count >= 0:
                return list(buffer[:count])
            capacity = -count

    def piece(self, token: int) -> bytes:
        """Bytes of a token, empty for control tokens."""
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._spell(token, special=False)
        return piece

    def text(self, token: int) -> str:
        """The vocabulary's spelling of a token."""
        return self._spell(token, special=True).decode("utf-8", "replace")

    @cached_property
    def _control_texts(self) -> tuple[str, ...]:
        tokens = range(self._model.n_vocab)
        control = (token for token in tokens if lib.llama_vocab_get_attr(self._vocab, token) & _CONTROL)
        return tuple(text for text in map(self.text, control) if text)

    def control_texts(self) -> tuple[str, ...]:
        """Spelling of every control token."""
        return self._control_texts

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation."""
        end = self._ends.get(token)
        if end is None:
            end = self._ends[token] = bool(lib.llama_vocab_is_eog(self._vocab, token))
        return end

    def _spell(self, token: int, *, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            length = lib.llama_token_to_piece(self._vocab, token, buffer, size, 0, special)
            if length >= 0:
                return buffer.raw[:length]
            size = -length
