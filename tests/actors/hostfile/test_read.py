"""A host file that is right: every key reaches what it is for."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from actors import AgentSpec, Budget, ForceTool, open_runtime, summarise, trim
from actors.agent import Remote
from actors.gateway import DoorLimits, open_gateway
from actors.hostfile import GatewaySettings, HostFile, HostFileError, read_host_file
from actors.hostfile._agent_tables import AGENT, APPROVAL, COMPACT, FINALIZATION, GATE, HOOKS, LIMITS
from actors.hostfile._gateway import address_of
from actors.hostfile._host_tables import RUNTIME, kind_of, runtime_table
from actors.hostfile._model_tables import BUDGET, MODEL, PROFILE
from actors.models.planner import Planner
from actors.models.wire import ConnectionOptions
from protocol.limits import Limits
from protocol.model import Profile
from protocol.wire import WireLimits

Read = Callable[[str], HostFile]
AGENT_A = '[[agents]]\nname = "a"\n'


def only(host: HostFile) -> AgentSpec:
    """Its one agent."""
    (spec,) = host.agents.values()
    return spec


def test_a_name_is_enough(read: Read) -> None:
    """All else has a default: rules, no tools, 20 rounds, clients are asked, and no journal."""
    host = read(AGENT_A)
    spec = only(host)

    assert ("a", (), 20, None) == (spec.name, spec.tools, spec.max_tool_iterations, spec.max_llm_calls)
    assert isinstance(spec.model, Planner)
    assert isinstance(spec.continuation, Remote)
    assert isinstance(spec.approval, Remote)
    assert (GatewaySettings(), {}, (), (spec,)) == (host.gateway, host.runtime, host.warnings, host.spawned)


@pytest.mark.parametrize(
    ("text", "hook"),
    [
        ('compact = "trim"', trim()),
        (
            "compact = { keep_last = 4, max_tokens = 900, clear_results_over_chars = 50 }",
            trim(keep_last=4, max_tokens=900, clear_results_over_chars=50),
        ),
        (
            'compact = { by = "summarise", instructions = "Short.", summary_max_tokens = 99 }',
            summarise(instructions="Short.", summary_max_tokens=99),
        ),
    ],
)
def test_what_makes_a_conversation_shorter(text: str, hook: object, read: Read) -> None:
    """A word is its `by`, which is `trim` where it is not said; the options are those of the function."""
    assert hook == only(read(AGENT_A + text)).compact


def test_when_it_is_made_shorter(read: Read) -> None:
    """The agent's own settings stand in the same table, for a function of one's own too."""
    spec = only(read(AGENT_A + 'compact = { by = "json:loads", at_tokens = 500, max_compactions = 2 }'))

    assert spec.compact is cast("Any", json.loads)
    assert (500, 2) == (spec.compact_at_tokens, spec.max_compactions)


def test_plain_settings_of_an_agent(read: Read) -> None:
    """Each option is set as it is written; `none` is None."""
    spec = only(
        read(
            AGENT_A
            + """
            system_file = "prompt.md"
            temperature = 0.5
            max_tokens = 100
            provider_options = { user = "x" }
            max_reasks = 0
            max_continues = 2
            automatic_continuation = false
            max_hops = 4
            max_parallel_tools = 1
            tool_timeout_seconds = 7
            max_tool_output_chars = 1000
            callback_timeout_seconds = 8
            cancel_grace_seconds = 1.5
            tool_choice = { tool = "add" }
            tools = ["own:add"]
            [agents.limits]
            max_tool_iterations = "none"
            max_llm_calls = 9
            max_tool_calls = 8
            max_total_tokens = 7
            wall_clock_seconds = 6.5
            [agents.gate]
            by = "ask"
            timeout_seconds = "none"
            on_timeout = "approve"
            limits = ["llm_calls"]
            max_grant = 2
            [agents.approval]
            by = "deny"
            timeout_seconds = 3
            tools = ["add"]
            [agents.finalization]
            tool_iteration_limit = true
            llm_call_limit = "Answer now."
            budget = false
            stop = true
            window_seconds = 4
            retry = true
            [agents.hooks]
            on_step = "own:decide"
            """
        )
    )
    expected: dict[str, Any] = {
        "system": "You audit.\n",
        "temperature": 0.5,
        "max_tokens": 100,
        "provider_options": {"user": "x"},
        "max_reasks": 0,
        "max_continues": 2,
        "automatic_continuation": False,
        "max_hops": 4,
        "max_parallel_tools": 1,
        "tool_timeout_seconds": 7,
        "max_tool_output_chars": 1000,
        "callback_timeout_seconds": 8,
        "cancel_grace_seconds": 1.5,
        "tool_choice": ForceTool("add"),
        "max_tool_iterations": None,
        "max_llm_calls": 9,
        "max_tool_calls": 8,
        "max_total_tokens": 7,
        "wall_clock_seconds": 6.5,
        "continuation_timeout_seconds": None,
        "continuation_on_timeout": "approve",
        "gate_on": ["llm_calls"],
        "max_grant": 2,
        "approval_timeout_seconds": 3,
        "tool_iteration_limit_finalization": "",
        "llm_call_limit_finalization": "Answer now.",
        "budget_finalization": None,
        "finalize_on_stop": "",
        "finalization_window_seconds": 4,
        "finalization_retry": True,
    }

    assert expected == {name: getattr(spec, name) for name in expected}
    assert [("add", True)] == [(tool.name, tool.needs_approval) for tool in spec.tools]
    assert callable(spec.on_step)


@pytest.mark.parametrize(
    ("gate", "name"),
    [
        ('"approve"', "policy_always"),
        ('"decline"', "policy_never"),
        ("{ up_to = 5 }", "policy_up_to"),
        ("{ within = { tokens = 10, seconds = 3 } }", "policy_within"),
        ('"own:decide"', "decide"),
        ('{ by = "own:decide" }', "decide"),
    ],
)
def test_policies_of_the_gate(read: Read, gate: str, name: str) -> None:
    """By a word, by a bound, or by a function of one's own."""
    spec = only(read(f"{AGENT_A}gate = {gate}"))

    assert name == getattr(spec.continuation, "__name__", "")


def test_nobody_is_asked(read: Read) -> None:
    """`finalize` makes the last call without tools, unless the file says otherwise; `stop` makes none."""
    finalized = only(read(AGENT_A + 'gate = "finalize"\nfinalization = { llm_call_limit = "Now." }'))
    stopped = only(read(AGENT_A + 'gate = "stop"'))

    assert (None, "", "Now.") == (
        finalized.continuation,
        finalized.tool_iteration_limit_finalization,
        finalized.llm_call_limit_finalization,
    )
    assert (None, None, None) == (
        stopped.continuation,
        stopped.tool_iteration_limit_finalization,
        stopped.llm_call_limit_finalization,
    )


def test_stop_conditions(read: Read) -> None:
    """Each key is a condition, in the words of the functions that make them."""
    text = """
        prices = { rules-v1 = { input = 1, output = 2 } }
        [[agents]]
        name = "a"
        [agents.stop_when]
        max_steps = 4
        has_tool_call = ["x"]
        has_tool_result = ["y", "z"]
        no_progress = 2
        consecutive_errors = 3
        token_budget = 10
        cost_budget = 0.5
        time_budget = 6
        is_loop_finished = true
        functions = ["own:decide"]
    """
    spec = only(read(text))

    assert spec.stop_when is not None
    assert {
        "decide",
        "max_steps_reached",
        "tool_was_called",
        "tool_returned",
        "no_progress_made",
        "consecutive_errors_reached",
        "token_budget_reached",
        "cost_budget_reached",
        "time_budget_reached",
        "loop_finished",
    } == {getattr(condition, "__name__", "") for condition in spec.stop_when}


def test_models_are_shared(read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that has a name is one object, with its address, key, times and profile."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OUR_KEY", "key-of-ours")
    monkeypatch.setenv("OUR_HEADER", "a-header")
    (folder / "key").write_text("key-in-a-file\n")
    (folder / "key").chmod(0o600)
    host = read(
        """
        [models.fast]
        model = "openai:m"
        base_url = "http://127.0.0.1:1/v1"
        api_key_env = "OUR_KEY"
        headers = { x-ours = "1" }
        headers_env = { x-more = "OUR_HEADER" }
        call_timeout_seconds = 5
        retries = 0
        delivery = "replay"
        max_connections = 3
        max_tokens_field = "max_tokens"
        extra_body = { seed = 1 }
        profile = { context_window = 1000, takes_temperature = false }
        [models.other]
        model = "anthropic:m"
        base_url = "http://127.0.0.1:1"
        api_key_file = "key"
        [models.mine]
        import = "own:MODEL"
        [models.made]
        import = "own:script"
        arguments = { text = "Bye." }
        [[agents]]
        name = "a"
        model = "fast"
        [[agents]]
        name = "b"
        model = "fast"
        [[agents]]
        name = "c"
        model = { model = "ollama:llama", hop_timeout_seconds = 3 }
        [[agents]]
        name = "d"
        model = "mine"
        [[agents]]
        name = "e"
        model = "made"
        [[agents]]
        name = "f"
        model = "other"
        [[agents]]
        name = "g"
        model = { model = "openai:at-home", api_key_env = "OUR_KEY" }
        """
    )
    a, b, c, d, e, f, g = host.agents.values()
    client: Any = a.model._client  # type: ignore[attr-defined]

    assert a.model is b.model is host.models["fast"]
    assert ["openai:m", "ollama:llama", "scripted", "scripted", "anthropic:m", "openai:at-home"] == [
        spec.model.name for spec in (a, c, d, e, f, g)
    ]
    assert (1000, False) == (a.model.profile.context_window, a.model.profile.takes_temperature)
    assert {
        "authorization": "Bearer key-of-ours",
        "x-ours": "1",
        "x-more": "a-header",
    }.items() <= client._headers.items()
    assert "key-in-a-file" == f.model._client._headers["x-api-key"]  # type: ignore[attr-defined]
    assert "key-of-ours" not in repr(host)


def test_tools(read: Read) -> None:
    """Built in and one's own, by word and by table; what a table says of approval, time and end holds."""
    host = read(
        """
        [tools.repo]
        files = "data"
        only = ["search", "list_dir"]
        needs_approval = ["search"]
        timeout_seconds = 4
        [tools.mine]
        import = "own:TOOLS"
        needs_approval = ["add"]
        ends_run = ["add"]
        [tools.free]
        import = "own:wipe"
        needs_approval = false
        [[agents]]
        name = "a"
        tools = ["repo", "mine", { import = "own:multiplier", arguments = { by = 3 } }]
        [[agents]]
        name = "b"
        tools = ["files:data"]
        [[agents]]
        name = "c"
        tools = ["free", "own:add"]
        """
    )
    a, b, c = host.agents.values()

    assert [
        ("search", True, False, 4),
        ("list_dir", False, False, 4),
        ("add", True, True, None),
        ("wipe", True, False, None),
        ("multiply", False, False, None),
    ] == [(tool.name, tool.needs_approval, tool.ends_run, tool.timeout_seconds) for tool in a.tools]
    assert ["list_dir", "read_text", "count_lines", "search"] == [tool.name for tool in b.tools]
    assert [("wipe", False), ("add", False)] == [(tool.name, tool.needs_approval) for tool in c.tools]


def test_budgets(read: Read) -> None:
    """Who names one draws on it together with the others; one may be a part of another, or all agents' own."""
    host = read(
        """
        runtime = { budget = "house" }
        prices = "genai-prices"
        [budgets.team]
        parent = "house"
        max_llm_calls = 5
        max_tool_calls = "none"
        [budgets.house]
        max_llm_calls = 10
        max_total_tokens = 100
        max_cost = 3
        wall_clock_seconds = 60
        [[agents]]
        name = "a"
        budget = "team"
        [[agents]]
        name = "b"
        budget = "team"
        """
    )
    a, b = host.agents.values()
    house = host.budgets["house"]

    assert a.budget is b.budget is host.budgets["team"]
    assert ("team", 5, None, house) == (a.budget.name, a.budget.max_llm_calls, a.budget.max_tool_calls, a.budget.parent)
    assert (10, 100, 3, 60) == (house.max_llm_calls, house.max_total_tokens, house.max_cost, house.wall_clock_seconds)
    assert {"budget": house} == host.runtime


def test_agents_of_agents(read: Read) -> None:
    """As tools, in the background, and in each other's place, in whatever order they stand; circles of hand-offs too."""
    host = read(
        """
        [[agents]]
        name = "boss"
        sub_agents = [
          "reader",
          { agent = "writer", name = "write", description = "Writes.", timeout_seconds = 9, needs_approval = true },
          { agent = "reader", name = "r2", background = true },
        ]
        handoffs = ["desk"]
        [[agents]]
        name = "desk"
        handoffs = [{ agent = "boss", description = "The boss." }]
        [[agents]]
        name = "reader"
        spawn = false
        [[agents]]
        name = "writer"
        sub_agents = ["reader"]
        """
    )
    boss, desk, _, writer = host.agents.values()
    named = {tool.name: tool for tool in boss.tools}

    assert ["ask_reader", "write", "start_r2", "wait_for_r2", "transfer_to_desk"] == list(named)
    assert ("Writes.", 9, True) == (
        named["write"].description,
        named["write"].timeout_seconds,
        named["write"].needs_approval,
    )
    assert boss.agent_named("desk") is desk
    assert desk.agent_named("boss") is boss
    assert (boss, desk, writer) == host.spawned


def test_templates(read: Read) -> None:
    """Of an agent, whose limits a client may only lower; or of a function of one's own."""
    host = read(
        """
        [templates.audit]
        agent = "a"
        overrides = ["system", "max_llm_calls"]
        [templates.own]
        import = "own:worker"
        overrides = ["size"]
        [[agents]]
        name = "a"
        limits = { max_llm_calls = 30 }
        """
    )
    made = host.templates["audit"].make({"system": "x", "max_llm_calls": 99}, "n")

    assert ("n", "x", 30) == (made.name, made.system, made.max_llm_calls)
    assert "big" == host.templates["own"].make({"size": "big"}, None).name


def test_who_gets_in(read: Read, folder: Path) -> None:
    """Address, tokens and roles, what each may see, names, origins and limits."""
    host = read(
        """
        [gateway]
        bind = "[::1]:0"
        token_file = "tokens"
        sees = { guest = ["a"] }
        hosts = ["agents.example.org"]
        origins = ["https://pages.example.org"]
        limits = { connections = 5, queue_bytes = 4096 }
        [[agents]]
        name = "a"
        [[agents]]
        name = "b"
        """
    )
    options = host.gateway_options()
    guest = options["tokens"].by_token("another-token-of-the-tests")[0]
    anna = options["tokens"].by_token("a-token-of-the-tests")[0]

    assert ("::1", 0, folder / "tokens") == (host.gateway.host, host.gateway.port, host.gateway.token_file)
    assert ([True, False], [True, True]) == (
        [guest.may_see(name) for name in "ab"],
        [anna.may_see(name) for name in "ab"],
    )
    assert (True, False) == (anna.holds("operate"), guest.holds("decide"))
    assert (DoorLimits(connections=5), WireLimits(queue_bytes=4096)) == (options["door_limits"], options["limits"])
    assert (("agents.example.org",), ("https://pages.example.org",)) == (options["hosts"], options["origins"])
    assert set(options) <= set(inspect.signature(inspect.unwrap(open_gateway)).parameters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8000", ("127.0.0.1", 8000)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("[::1]", ("::1", 8765)),
        ("agents.example.org", ("agents.example.org", 8765)),
        (":80", ("127.0.0.1", 80)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    """A port, a host, or both."""
    assert expected == address_of(text)


async def test_the_runtime(read: Read, folder: Path) -> None:
    """Its options are those of `open_runtime()`, and it opens with them."""
    host = read(
        """
        [runtime]
        journal = "onward.db"
        tool_threads = 3
        event_log_bytes = 4096
        stop_grace_seconds = 0.5
        [[agents]]
        name = "a"
        """
    )
    async with open_runtime(**host.runtime) as runtime:
        agent = await runtime.spawn(host.spawned[0])
        threads = runtime.statistics().tool_threads

    assert {
        "journal": folder / "onward.db",
        "tool_threads": 3,
        "event_log_bytes": 4096,
        "stop_grace_seconds": 0.5,
    } == host.runtime
    assert ("a", 3) == (agent.name, threads.total)


def test_options_of_a_runtime_come_with_their_types() -> None:
    """An option that `open_runtime()` gets later is there by itself; what no file can give is not."""

    @attrs.frozen(kw_only=True)
    class Settings:
        most: int = 3
        names: tuple[str, ...] = ()

    def opened(
        *,
        many: int = 1,
        slow: float | None = None,
        loud: bool = False,
        settings: Settings | None = None,
        what: Any = None,
    ) -> None: ...

    opened.__annotations__ = {
        "many": int,
        "slow": float | None,
        "loud": bool,
        "settings": Settings | None,
        "what": Callable[[], int],
        "return": type(None),
    }
    table = runtime_table(opened)

    assert ["many", "slow", "loud", "settings"] == [key.name for key in table.keys]
    assert kind_of(dict[str, int]) is None
    assert {"journal", "tool_threads", "event_log_bytes", "stop_grace_seconds", "budget"} <= {
        key.name for key in RUNTIME.keys
    }


NOT_IN_FILES = {
    AgentSpec: {
        "model", "tools", "prices", "budget", "continuation", "approval", "compact", "stop_when",  # by what the file names
        "max_steps",  # see stop_when
    },
    Profile: {"count_tokens", "reports_sending"},
    Budget: {"parent", "name"},
    Limits: set[str](),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "tables"),
    [
        (AgentSpec, (AGENT, LIMITS, GATE, APPROVAL, COMPACT, FINALIZATION, HOOKS)),
        (Limits, (LIMITS,)),
        (Budget, (BUDGET,)),
        (Profile, (PROFILE,)),
    ],
)
def test_every_option_is_in_a_table(kind: type, tables: tuple[Any, ...]) -> None:
    """A new one is a line in the table of its kind (actors/hostfile), or is named here as one that no file can give."""
    known = {key.parameter for table in tables for key in table.keys if key.parameter}
    options = {field.name for field in attrs.fields(kind) if field.init and not field.name.startswith("_")}

    assert options == known | NOT_IN_FILES[kind]


def test_every_option_of_a_connection_is_in_the_table() -> None:
    """All that a model over HTTP takes, but a transport of one's own."""
    known = {key.parameter for key in MODEL.keys}

    assert set(ConnectionOptions.__annotations__) - {"transport"} <= known


def test_without_imports_nothing_is_run(folder: Path) -> None:
    """The file is checked but for what it names by import path, which no module is loaded for."""
    path = folder / "host.toml"
    path.write_text(
        """
        [models.m]
        import = "broken:model"
        [tools.t]
        import = "broken:tool"
        needs_approval = ["x"]
        [[agents]]
        name = "a"
        model = "m"
        tools = ["t", "leaves:x"]
        gate = "broken:gate"
        tool_choice = { tool = "x" }
        approval = { tools = ["x"] }
        [agents.hooks]
        on_step = "broken:x"
        """
    )
    host = read_host_file(path, imports=False)

    assert ("a", "broken:model") == (only(host).name, only(host).model.name)


def test_modules_beside_it_hide_none(read: Read, folder: Path) -> None:
    """A module is Python's own first, and one beside the file only where there is no other."""
    (folder / "colorsys.py").write_text("def mine(): ...\n")
    sys.modules.pop("colorsys", None)

    with pytest.raises(HostFileError, match="colorsys has no mine"):
        read(AGENT_A + "tools = ['colorsys:mine']")
    assert "add" == only(read(AGENT_A + "tools = ['own:add']")).tools[0].name
