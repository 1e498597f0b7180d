"""Models by one word."""

from __future__ import annotations

import pytest

from actors.models.named import KINDS, named_model, split_name
from actors.models.servers import SERVERS
from protocol.errors import SpecError


def test_every_server_has_a_word() -> None:
    """Servers of Chat Completions and the other formats; those on this machine need no key."""
    local = [name for name, kind in KINDS.items() if kind.is_local]

    assert SERVERS.keys() < KINDS.keys()
    assert {"openai-responses", "anthropic", "gemini", "gemini-interactions"} == KINDS.keys() - SERVERS.keys()
    assert ["vllm", "llama.cpp", "ollama", "lmstudio", "tgi"] == local
    assert [] == [name for name, kind in KINDS.items() if not (kind.is_local or kind.key_variables)]


@pytest.mark.parametrize("name", SERVERS)
def test_a_word_makes_its_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own address; the name may hold colons and slashes."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.openai.azure.com")
    model = named_model(f"{name}:org/model:1b", api_key="k")

    assert f"{name}:org/model:1b" == model.name


def test_an_address_goes_along() -> None:
    """The word says what the server is; `openai` is the format too, so there the host says it."""
    here = named_model("vllm:m", base_url="http://10.0.0.1/v1")
    other = named_model("openai:m", base_url="https://api.deepseek.com/beta", api_key="k")
    unknown = named_model("openai:m", base_url="http://10.0.0.1/v1")

    assert ("vllm:m", "exact_prefix") == (here.name, here.profile.continues_text)
    assert ("deepseek:m", "exact_prefix") == (other.name, other.profile.continues_text)
    assert ("openai:m", False) == (unknown.name, unknown.profile.keeps_tools_when_off)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "opnai:gpt",
            r"there is no model 'opnai:gpt' \(did you mean openai:gpt\?\); there are: openai:NAME, openai-resp",
        ),
        ("gpt-9", r"did you mean openai:gpt-9\?"),
        ("zzz:x", "there is no model 'zzz:x'; there are: "),
        ("ollama:", "ollama: lacks the model's name, as the server knows it: ollama:NAME"),
        ("ollama: ", "lacks the model's name"),
        ("ollama", "lacks the model's name"),
    ],
)
def test_a_word_that_names_no_model(spec: str, said: str) -> None:
    """The error quotes it, guesses, and lists what there is."""
    with pytest.raises(SpecError, match=said):
        split_name(spec)


def test_a_key_variable_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that holds something; blank is nothing."""
    kind = KINDS["gemini"]
    monkeypatch.setenv("GEMINI_API_KEY", " ")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    without = kind.key_variable()
    monkeypatch.setenv("GOOGLE_API_KEY", "k")

    assert (None, "GOOGLE_API_KEY") == (without, kind.key_variable())
