"""A model file for the real llama.cpp server, whose words are chosen here.

It is a llama network in form alone: embeddings are one-hot, attention and feed-forward are zero, so that the last
token alone reaches the output, whose matrix is then a table of what follows what. `chain` writes into that table.
Where nothing is written, the model ends its turn. So what is *said* is ours; tokenizer, grammar for tool calls,
streaming, usage and errors are the server's own.

The chat template chooses the first token by the conversation: `<|call-N|>` while there are tools and fewer results
than `max_calls` (a template argument, by default the number of calls), `<|finish|>` after results, else `<|speak|>`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import gguf
import numpy as np
import numpy.typing as npt

Words: TypeAlias = Sequence[str | bytes]

SPEAK: Words = ("Hello!", " I am", " a naïve", b" caf\xc3", b"\xa9 in", " 日本", " of the real", " server", "…")
"""The third and fourth word part a character: the server has to hold its first byte back."""
FINISH: Words = ("Done:", " the tools", " have", " answered.")
CALLS = (("read_text", {"path": "README.md"}), ("list_dir", {"path": "src/naïve"}))

_SPEAK, _FINISH, _END = "<|speak|>", "<|finish|>", "<|im_end|>"
_CONTROL = ("<|endoftext|>", "<|im_start|>", _END, _SPEAK, _FINISH)
_SURE = 40.0
_HEAD = 64  # the width of an attention head: the embedding is a multiple of it

_TEMPLATE = """\
{%- set ns = namespace(results=0) -%}
{%- for message in messages if message.role == 'tool' -%}{%- set ns.results = ns.results + 1 -%}{%- endfor -%}
{%- if tools -%}
{{- '<|im_start|>system\\n' }}{%- for tool in tools -%}{{- tool | tojson + '\\n' }}{%- endfor -%}{{- '<|im_end|>\\n' }}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}</tool_call>' }}
{%- endfor -%}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>user\\n<tool_response>' + message.content + '</tool_response>' }}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content }}
{%- endif -%}
{{- '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' }}
{%- if tools and ns.results < (max_calls | default(CALLS)) -%}{{- '<|call-' ~ (ns.results % CALLS) ~ '|>' }}
{%- elif ns.results -%}{{- '<|finish|>' }}
{%- else -%}{{- '<|speak|>' }}
{%- endif -%}
{%- endif -%}
"""


def text_of(words: Words) -> str:
    """What a reader sees."""
    return b"".join([word if isinstance(word, bytes) else word.encode() for word in words]).decode()


def write_model(path: Path, speak: Words = SPEAK, *, endless: bool = False) -> None:
    """Write the model to `path`; the same bytes each time.

    `speak` is what it says where no tool is used, once, or over and over.
    """
    script = _Script()
    script.chain(_SPEAK, speak, endless=endless)
    script.chain(_FINISH, FINISH)
    for number, (name, arguments) in enumerate(CALLS):
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        script.chain(f"<|call-{number}|>", script.cut(f"<tool_call>{call}</tool_call>"))
    script.write(path, _TEMPLATE.replace("CALLS", str(len(CALLS))))


def _byte_letters() -> dict[int, str]:
    """The letters by which byte-level tokenizers write bytes: printable ones stand for themselves."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + len(letters) - len(plain)))
    return letters


_LETTERS = _byte_letters()


def _spell(word: str | bytes) -> str:
    return "".join([_LETTERS[byte] for byte in (word if isinstance(word, bytes) else word.encode())])


@attrs.define(eq=False)
class _Script:
    """The vocabulary, and what follows what."""

    tokens: list[str] = attrs.field(factory=list)
    types: list[gguf.TokenType] = attrs.field(factory=list)
    follows: dict[int, int] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for token in (*_CONTROL, *[f"<|call-{number}|>" for number in range(len(CALLS))]):
            self._add(token, gguf.TokenType.CONTROL)
        # The tokenizer wants at least one merge; "us" is what it makes.
        for token in [*[_LETTERS[byte] for byte in range(256)], "us"]:
            self._add(token, gguf.TokenType.NORMAL)

    def _add(self, token: str, kind: gguf.TokenType) -> int:
        assert token not in self.tokens, f"{token!r} would be followed by two words"
        self.tokens.append(token)
        self.types.append(kind)
        return len(self.tokens) - 1

    def cut(self, text: str) -> list[str]:
        """Cut a text into words that no other text has: each word is followed by one other alone."""
        for size in range(4, len(text)):
            words = [text[start : start + size] for start in range(0, len(text), size)]
            spelled = {_spell(word) for word in words}
            if len(spelled) == len(words) and not spelled & {*self.tokens}:
                return words
        raise AssertionError(f"no cut of {text!r} has words of its own")

    def chain(self, marker: str, words: Words, *, endless: bool = False) -> None:
        """After `marker` come the words, and then the end of the turn, or the words again."""
        last = self.tokens.index(marker)
        for word in words:
            token = self._add(_spell(word), gguf.TokenType.NORMAL)
            self.follows[last] = token
            last = token
        self.follows[last] = self.follows[self.tokens.index(marker)] if endless else self.tokens.index(_END)

    def _output(self, width: int) -> npt.NDArray[Any]:
        """The score of each next token, by the last one."""
        scores = np.zeros((len(self.tokens), width), np.float32)
        scores[self.tokens.index(_END), :] = _SURE / 4  # where nothing is written: the end
        for last, token in self.follows.items():
            scores[token, last] = _SURE
        return scores

    def write(self, path: Path, template: str) -> None:
        size = len(self.tokens)
        width = -(-size // _HEAD) * _HEAD
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_name("scripted")
        writer.add_context_length(16384)
        writer.add_embedding_length(width)
        writer.add_block_count(1)
        writer.add_feed_forward_length(_HEAD)
        writer.add_head_count(width // _HEAD)
        writer.add_head_count_kv(1)
        writer.add_rope_dimension_count(_HEAD)
        writer.add_layer_norm_rms_eps(1e-6)
        writer.add_vocab_size(size)
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        writer.add_token_merges(["u s"])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(self.tokens.index(_END))
        writer.add_pad_token_id(0)
        writer.add_add_bos_token(False)
        writer.add_chat_template(template)
        matrices: dict[str, npt.NDArray[Any]] = {
            "token_embd": np.eye(size, width),
            # The last norm makes a one-hot row sqrt(width) high.
            "output": self._output(width) / math.sqrt(width),
            "blk.0.attn_q": np.zeros((width, width)),
            "blk.0.attn_k": np.zeros((_HEAD, width)),
            "blk.0.attn_v": np.zeros((_HEAD, width)),
            "blk.0.attn_output": np.zeros((width, width)),
            "blk.0.ffn_gate": np.zeros((_HEAD, width)),
            "blk.0.ffn_up": np.zeros((_HEAD, width)),
            "blk.0.ffn_down": np.zeros((width, _HEAD)),
        }
        for name, matrix in matrices.items():
            writer.add_tensor(f"{name}.weight", matrix.astype(np.float16))
        for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
            writer.add_tensor(f"{name}.weight", np.ones(width, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
