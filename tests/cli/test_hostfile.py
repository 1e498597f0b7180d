"""A host file: what it says of agents, and where what is wrong with it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cli._hostfile import read_host_file
from actors.cli._settings import AgentSettings
from actors.cli._usage import UsageError


def read(folder: Path, text: str) -> tuple[AgentSettings, ...]:
    """What a file with this text says."""
    path = folder / "agents.toml"
    path.write_text(text)
    return read_host_file(path)


def refused(folder: Path, text: str) -> str:
    """What is said of it, without the folder."""
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_everything(tmp_path: Path) -> None:
    """Every key reaches the agent; folders are seen from the file."""
    (tmp_path / "data").mkdir()
    text = """
        [[agents]]
        name = "auditor"
        tools = ["files:data"]
        system = "You audit."
        gate = "finalize"
        [agents.limits]
        max_tool_iterations = 3
        max_llm_calls = 9
        max_tool_calls = 8
        max_total_tokens = 7
        wall_clock_seconds = 6.5

        [[agents]]
        name = "writer"
        model = "openai:some/model"
        base_url = "http://127.0.0.1:1/v1"
        api_key_env = "OUR_KEY"
        tools = []
    """
    auditor = AgentSettings(
        name="auditor",
        root=tmp_path / "data",
        system="You audit.",
        on_limit="finalize",
        max_tool_iterations=3,
        max_llm_calls=9,
        max_tool_calls=8,
        max_total_tokens=7,
        wall_clock_seconds=6.5,
    )
    writer = AgentSettings(
        name="writer", model="openai:some/model", base_url="http://127.0.0.1:1/v1", api_key_env="OUR_KEY"
    )

    assert (auditor, writer) == read(tmp_path, text)


def test_a_name_is_enough(tmp_path: Path) -> None:
    """All else is as on the command line."""
    assert (AgentSettings(name="a"),) == read(tmp_path, '[[agents]]\nname = "a"\n')


AGENT = '[[agents]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "agents.toml, line 1: agents: a host file holds one [[agents]] or more"),
        ("agents = []", "agents.toml, line 1: agents: a host file holds one [[agents]] or more"),
        ("agents = [3]", "agents.toml, line 1: agents[0]: an agent is a table: [[agents]]"),
        ("\n[[agent]]\n", "line 2: agent: is unknown (did you mean agents?)"),
        ("x = ", "agents.toml is no TOML: Invalid value (at end of document)"),
        ("[[agents]]\n", "line 1: agents[0]: lacks its name"),
        (
            AGENT + "\n# so\nmodle = 'rules'\n",
            "line 5: agents[0].modle: is unknown (did you mean model?); there are: name,",
        ),
        (AGENT + AGENT, "line 4: agents[1].name: there is an agent 'a' already"),
        ("[[agents]]\nname = 3", "line 2: agents[0].name: must be a text that is not empty; it is 3"),
        ("[[agents]]\nname = 'a b'", "line 2: agents[0].name: a name has 1 to 64 letters, digits, _ or -; it is 'a b'"),
        (AGENT + "model = 'ruls'", "line 3: agents[0].model: there is no model 'ruls' (did you mean rules?)"),
        (AGENT + "model = ' '", "line 3: agents[0].model: must be a text that is not empty"),
        (AGENT + "base_url = 'http://x/v1'", "line 3: agents[0].base_url: is for a model server"),
        (AGENT + "api_key_env = 'K'", "line 3: agents[0].api_key_env: is for a model server"),
        (AGENT + "tools = 'files:.'", 'line 3: agents[0].tools: tools are a list, such as ["files:."]'),
        (AGENT + "tools = ['files:.', 'files:.']", "line 3: agents[0].tools: there is one kind of tools"),
        (AGENT + "tools = [3]", "line 3: agents[0].tools: must be a text"),
        (
            AGENT + "tools = [\n  'files:nowhere',\n]",
            "line 3: agents[0].tools: tools files:nowhere: there is no folder",
        ),
        (AGENT + "gate = 'aks'", "line 3: agents[0].gate: gate 'aks' is unknown (did you mean ask?)"),
        (AGENT + "limits = 3", "line 3: agents[0].limits: limits are a table"),
        (
            AGENT + "[agents.limits]\nmax_tool_calls = 2\nmax_llm_calls = 0",
            "line 5: agents[0].limits.max_llm_calls: max_llm_calls must be an integer >= 1",
        ),
        (
            AGENT + "[agents.limits]\nmax_tool_iteration = 1",
            "line 4: agents[0].limits.max_tool_iteration: is unknown (did you mean max_tool_iterations?)",
        ),
        (AGENT + 'system = """\nmodle = 1\n"""\nmodle = 1', "line 6: agents[0].modle"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """The line on which the key begins, the key as it is written, and what would be right."""
    assert expected in refused(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A file that is missing, a folder, or no text, is told in words."""
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe4'")
    said: list[str] = []
    for name in ("none.toml", "latin.toml", "."):
        with pytest.raises(UsageError) as caught:
            read_host_file(tmp_path / name)
        said.append(str(caught.value).replace(str(tmp_path), "X"))

    assert said == [
        "X/none.toml cannot be read: No such file or directory",
        "X/latin.toml is no text in UTF-8",
        "X cannot be read: Is a directory",
    ]


@given(st.lists(st.sampled_from(["", "# x", "system = '''a\n\nb'''", "model = 'rules'", "tools = [\n]"]), unique=True))
def test_the_line_is_that_of_the_key(tmp_path_factory: pytest.TempPathFactory, before: list[str]) -> None:
    """Whatever stands before it, and over however many lines."""
    head = "\n".join(["[[agents]]", "name = 'a'", *before, ""])

    assert f"line {head.count(chr(10)) + 1}: agents[0].wrong" in refused(
        tmp_path_factory.mktemp("host"), f"{head}wrong = 1\n"
    )
