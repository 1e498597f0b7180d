"""A host file that is wrong: all of it is told, each with line and key, and what would be right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from actors.hostfile import HostFileError, read_host_file

Refused = Callable[[str], list[str]]
A = '[[agents]]\nname = "a"\n'
M = '[models.m]\nmodel = "openai:x"\nbase_url = "http://127.0.0.1:1/v1"\n'
T = "[tools.t]\n"
G = "[gateway]\n"
P = "[templates.t]\n"
NO_KEY = "no key and no password stands in a host file"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # the file as a whole
        ("", "line 1: : lacks agents: The agents."),
        ("agents = []", "line 1: agents: must hold one [[agents]] or more"),
        ("agents = 3", "line 1: agents: must be tables, [[agents]]; it is 3"),
        ("agents = [3]", "line 1: agents[0]: must be an agent: a table, [[agents]]; it is 3"),
        ("\n[[agent]]\n" + A, "line 2: agent: is unknown (did you mean agents?); there are: agents, models,"),
        ("max_llm_calls = 1\n" + A, "line 1: max_llm_calls: is unknown; there are:"),
        # agents
        ("[[agents]]\n", "line 1: agents[0]: lacks name: Its name, such as name ="),
        (A + "\n# so\nmodle = 'rules'\n", "line 5: agents[0].modle: is unknown (did you mean model?); there are: name,"),
        (A + "max_llm_calls = 3", "line 3: agents[0].max_llm_calls: is unknown (it is a key of limits: limits.max_llm_c"),
        (A + A, "line 4: agents[1].name: there is an agent 'a' already"),
        ("[[agents]]\nname = 3", "line 2: agents[0].name: must be a name of 1 to 64 letters, digits, _ or -; it is 3"),
        ("[[agents]]\nname = 'a b'", "line 2: agents[0].name: must be a name of 1 to 64 letters, digits, _ or -"),
        (A + "system = ' '", "line 3: agents[0].system: must be a text that is not empty; it is ' '"),
        (A + "system = 'x'\nsystem_file = 'prompt.md'", "line 4: agents[0].system_file: is one way to give the system"),
        (A + "system_file = 'none.md'", "line 3: agents[0].system_file: none.md cannot be read: No such file"),
        (A + "system_file = 'data'", "line 3: agents[0].system_file: data cannot be read: Is a directory"),
        (A + "spawn = 1", "line 3: agents[0].spawn: must be true or false; it is 1"),
        (A + "temperature = true", "line 3: agents[0].temperature: must be a number; it is true"),
        (A + "temperature = nan", "line 3: agents[0].temperature: must be a number; it is nan"),
        (A + "max_tokens = 0", "line 3: agents[0].max_tokens: must be a whole number of 1 or more; it is 0"),
        (A + "max_reasks = -1", "line 3: agents[0].max_reasks: must be a whole number of 0 or more; it is -1"),
        (A + "cancel_grace_seconds = 0", "line 3: agents[0].cancel_grace_seconds: must be a number of seconds above 0"),
        (A + "provider_options = { at = 2020-01-01 }", "line 3: agents[0].provider_options: must be a table of JSON"),
        (A + "provider_options = 3", "line 3: agents[0].provider_options: must be a table of JSON values"),
        (A + "provider_options = { n = 99999999999999999999 }", "line 3: agents[0].provider_options: must be a table of"),
        (A + "tool_choice = 'never'", "line 3: agents[0].tool_choice: must be one of auto, none, required; it is 'never'"),
        (A + "tool_choice = { tool = 'x' }", "line 3: agents[0].tool_choice: tool_choice forces 'x', which is no tool"),
        (A + "tool_choice = { }", "line 3: agents[0].tool_choice: lacks tool: Its name."),
        (A + "max_hops = 1979-05-27", "line 3: agents[0].max_hops: must be a whole number of 1 or more; it is a date"),
        (A + 'system = """\nmodle = 1\n"""\nmodle = 1', "line 6: agents[0].modle: is unknown"),
        # limits, gate, approval, finalization, conditions, hooks
        (A + "limits = 3", "line 3: agents[0].limits: must be the limits of a run: a table, such as"),
        (A + "[agents.limits]\nmax_tool_calls = 2\nmax_llm_calls = 0", "line 5: agents[0].limits.max_llm_calls: must be a"),
        (A + "limits = { max_llm_calls = 'many' }", 'limits.max_llm_calls: must be a whole number of 1 or more, or "none";'),
        (A + "limits = { max_tool_iteration = 1 }", "limits.max_tool_iteration: is unknown (did you mean max_tool_iter"),
        (A + "limits = { max_cost = 1 }", "line 3: agents[0].limits.max_cost: max_cost needs prices"),
        (A + "gate = 'aks'", "line 3: agents[0].gate: must be one of ask, approve, decline, finalize, stop, or an import"),
        (A + "gate = 'aks'", "it is 'aks' (did you mean ask?)"),
        (A + "gate = 3", "line 3: agents[0].gate: must be who decides at the limit: a table, such as"),
        (A + "gate = 'own:NUMBER'", "line 3: agents[0].gate: must be a function; own:NUMBER is a int"),
        (A + "compact = { instructions = 'x' }", "line 3: agents[0].compact.instructions: is not for trim"),
        (A + "compact = { by = 'json:loads', keep_last = 2 }", "line 3: agents[0].compact.keep_last: is not for a function"),
        (A + "compact = 'trin'", "line 3: agents[0].compact: "),
        (A + "gate = { limits = ['history_bytes'] }", "line 3: agents[0].gate.limits[0]: "),
        (A + "gate = { by = 'ask', up_to = 3 }", "line 3: agents[0].gate.up_to: and by are two answers"),
        (A + "gate = { within = {} }", "line 3: agents[0].gate.within: within() needs at least one of cost"),
        (A + "gate = { on_timeout = 'aprove' }", "gate.on_timeout: must be one of decline, approve; it is 'aprove' (did"),
        (A + "gate = { limits = ['llm_cals'] }", "line 3: agents[0].gate.limits[0]: must be one of llm_calls, tool_calls,"),
        (A + "gate = { by = 'stop', limits = ['cost'] }", "line 3: agents[0].gate.limits: gate_on names limits to ask"),
        (A + "approval = 'yes'", "line 3: agents[0].approval: must be one of ask, approve, deny, or an import path"),
        (A + "approval = { tools = ['x'] }", "line 3: agents[0].approval.tools: there is no tool 'x'; there are: none"),
        (A + "finalization = { budget = 3 }", "finalization.budget: must be true (the built-in instruction), false, or"),
        (A + "stop_when = {}", "line 3: agents[0].stop_when: has no condition: to run until the model is done, say is_l"),
        (A + "stop_when = { has_tool_call = [] }", "line 3: agents[0].stop_when.has_tool_call: has_tool_call"),
        (A + "stop_when = { is_loop_finished = false }", "stop_when.is_loop_finished: must be true, or not there"),
        (A + "hooks = { on_step = 'own:NUMBER' }", "line 3: agents[0].hooks.on_step: must be a function; own:NUMBER is"),
        (
            A + "hooks = { prepare_call = 'own:decide', prepare_step = 'own:decide' }",
            "line 3: agents[0].hooks.prepare_call: prepare_call and prepare_step are two forms of one hook",
        ),
        # models
        (A + "model = 'ruls'", "line 3: agents[0].model: there is no model 'ruls' (did you mean rules?); there are: rules,"),
        (M + A + "model = 'n'", "line 6: agents[0].model: there is no model 'n'; there are: rules, m, and KIND:NAME"),
        (A + "model = 'opnai:x'", "line 3: agents[0].model: there is no model 'opnai:x' (did you mean openai:x?)"),
        (A + "model = 'openai:'", "line 3: agents[0].model: lacks the model's name, as the server knows"),
        (A + "model = 'openai:x'", "line 3: agents[0].model: openai:x needs a key in OPENAI_API_KEY, or in what api_key_env"),
        (A + "model = {}", 'line 3: agents[0].model: lacks its model: model = "KIND:NAME"'),
        (A + "base_url = 'http://x/v1'", "line 3: agents[0].base_url: is unknown (it is a key of model: model.base_url)"),
        (A + "model = { model = 'rules', retries = 1 }", "line 3: agents[0].model.retries: is for a model server"),
        (A + "model = 3", "line 3: agents[0].model: must be a model: `rules`, KIND:NAME, the name of one of [models], or"),
        (M + "retries = 1.5\n" + A, "line 4: models.m.retries: must be a whole number of 0 or more; it is 1.5"),
        (M + "version = '1'\n" + A, "line 4: models.m.version: version is no option of openai models"),
        (M + "call_timeout_seconds = 0\n" + A, "line 4: models.m.call_timeout_seconds: must be a number of seconds above"),
        (M + "delivery = 'lose'\n" + A, "line 4: models.m.delivery: must be one of strict, replay; it is 'lose'"),
        (M + "headers = { 'a b' = 'x' }\n" + A, "line 4: models.m.headers"),
        (M + "headers = 3\n" + A, "line 4: models.m.headers: must be a table of texts; it is 3"),
        (M + "arguments = {}\n" + A, "line 4: models.m.arguments: goes with import"),
        (M + "import = 'own:MODEL'\n" + A, "line 1: models.m: has model and import"),
        (M + "verify = 'none.pem'\n" + A, "line 4: models.m.verify: there is no file none.pem"),
        (M + "extra_body = { model = 'y' }\n" + A, "line 4: models.m.extra_body: extra_body must not set model"),
        (M + "profile = { context_window = 0 }\n" + A, "line 4: models.m.profile.context_window: must be a whole number"),
        ("[models.'a b']\nmodel='rules'\n" + A, "line 1: models.'a b': must be a name of 1 to 64 letters"),
        ("[models.m]\nmodel = 'openai:x'\nbase_url = 'nowhere'\n" + A, "line 3: models.m.base_url"),
        ("[models.m]\nimport = 'own:NUMBER'\n" + A, "line 2: models.m.import: must name a model, or what makes one; it"),
        ("[models.m]\nimport = 'own:decide'\n" + A, "line 2: models.m.import: made no model: TypeError"),
        ("[models.m]\nimport = 'own:multiplier'\narguments = { by = 1 }\n" + A, "line 2: models.m.import: must give a model"),
        # prices and budgets
        ("prices = 'free'\n" + A, "line 1: prices: must be one of genai-prices; it is 'free'"),
        ("prices = { x = { input = 1 } }\n" + A, "line 1: prices.x: lacks output: US dollars per million tokens of output"),
        ("prices = { x = { input = 1, output = -1 } }\n" + A, "line 1: prices.x: Price.output must be a finite number >= 0"),
        (A + "budget = 'b'", "line 3: agents[0].budget: there is no budget 'b'; there are: none"),
        ("[budgets.team]\n" + A + "budget = 'taem'", "line 4: agents[0].budget: there is no budget 'taem' (did you mean"),
        ("[budgets.b]\nmax_llm_calls = 0\n" + A, "line 2: budgets.b.max_llm_calls: must be a whole number of 1 or more"),
        ("[budgets.b]\nparent = 'c'\n" + A, "line 2: budgets.b.parent: there is no budget 'c'; there are: b"),
        ("[budgets.b]\nparent = 'b'\n" + A, "line 2: budgets.b.parent: a budget cannot be a part of itself, through oth"),
        ("runtime = { budget = 'b' }\n" + A, "line 1: runtime.budget: there is no budget 'b'; there are: none"),
        # tools
        (A + "tools = 'files:.'", 'line 3: agents[0].tools: must be a list, such as ["files:."]; it is'),
        (A + "tools = [3]", "line 3: agents[0].tools[0]: must be a set of tools: a table, such as"),
        (A + "tools = [\n  'files:dat',\n]", "line 3: agents[0].tools[0]: there is no folder dat (did you mean data?)"),
        (A + "tools = ['files:tokens']", "line 3: agents[0].tools[0]: tokens is a file, not a folder"),
        (A + "tools = ['files:']", "line 3: agents[0].tools[0]: lacks its folder, as in files:."),
        (A + "tools = ['files:data', 'files:.']", "line 3: agents[0].tools: count_lines, list_dir, read_text, search is there"),
        (A + "tools = ['repo']", "line 3: agents[0].tools[0]: there is no tool set 'repo'; a tool is files:FOLDER, package"),
        (A + "tools = ['own:ad']", "line 3: agents[0].tools[0]: own has no ad (did you mean add?)"),
        (A + "tools = ['onw:add']", "line 3: agents[0].tools[0]: there is no module onw: it is looked for where Python"),
        (A + "tools = ['broken:add']", "line 3: agents[0].tools[0]: broken cannot be imported: ZeroDivisionError"),
        (A + "tools = ['leaves:add']", "line 3: agents[0].tools[0]: leaves cannot be imported: SystemExit: 7"),
        (A + "tools = ['a b:c']", 'line 3: agents[0].tools[0]: must be an import path, "package.module:name"; it is'),
        (A + "tools = ['own:NUMBER']", "line 3: agents[0].tools[0]: a tool is made of a function"),
        (A + "tools = ['math:sqrt']", "line 3: agents[0].tools[0]: tool 'sqrt': parameter 'x' is positional-only"),
        (T + "import = 'own:nothing'\n" + A, "line 2: tools.t.import: own has no nothing"),
        ("[models.m]\nmodel = 3\n" + A, "line 2: models.m.model: must be a text that is not empty; it is 3"),
        (P + "agent = 3\n" + A, "line 2: templates.t.agent: must be the name of something in this file; it is 3"),
        (T + A, 'line 1: tools.t: lacks its tools: files = "FOLDER", or import'),
        (T + "files = '.'\nimport = 'own:add'\n" + A, "line 1: tools.t: has two kinds of tools"),
        (T + "files = '.'\narguments = {}\n" + A, "line 3: tools.t.arguments: goes with import"),
        (T + "import = 'own:NUMBER'\narguments = {}\n" + A, "line 2: tools.t.import: must be a function that makes the"),
        (T + "import = 'own:multiplier'\narguments = { buy = 1 }\n" + A, "line 2: tools.t.import: made no tools: TypeErr"),
        (T + "import = 'own:worker'\narguments = {}\n" + A, "line 2: tools.t.import: is an agent, and no tool: see sub_a"),
        (T + "files = '.'\nonly = ['serch']\n" + A, "line 3: tools.t.only: there is no tool 'serch' (did you mean search?)"),
        (T + "files = '.'\nneeds_approval = 3\n" + A, "line 3: tools.t.needs_approval: must be true, false, or a list of"),
        (T + "files = '.'\nends_run = ['x']\n" + A, "line 3: tools.t.ends_run: there is no tool 'x'"),
        # agents of agents
        (A + "sub_agents = ['b']", "line 3: agents[0].sub_agents[0]: there is no agent 'b'; there are: a"),
        (A + "sub_agents = ['a']", "line 3: agents[0].sub_agents[0]: is a circle: a asks a; agents that go on in each"),
        (A + "sub_agents = ['b']\n[[agents]]\nname = 'b'\nsub_agents = ['a']", "is a circle: a asks b asks a"),
        (A + "sub_agents = [{}]", "line 3: agents[0].sub_agents[0]: lacks agent: The agent, by its name."),
        (A + "sub_agents = 3", "line 3: agents[0].sub_agents: must be a list of agents; it is 3"),
        (
            A + "sub_agents = [{ agent = 'b', background = true, timeout_seconds = 1 }]\n[[agents]]\nname = 'b'",
            "line 3: agents[0].sub_agents[0].timeout_seconds: is for a task that is waited for",
        ),
        (A + "handoffs = ['aa']", "line 3: agents[0].handoffs[0]: there is no agent 'aa' (did you mean a?)"),
        # templates
        (P + A, 'line 1: templates.t: lacks its agent: agent = "NAME"'),
        (P + "agent = 'b'\n" + A, "line 2: templates.t.agent: there is no agent 'b'; there are: a"),
        (P + "agent = 'a'\nimport = 'own:worker'\n" + A, "line 1: templates.t: has agent and import: give one"),
        (P + "agent = 'a'\noverrides = ['model']\n" + A, "line 3: templates.t.overrides: Template(overrides=): a client c"),
        # the runtime
        ("[runtime]\ntool_threads = 0\n" + A, "line 2: runtime.tool_threads: must be a whole number of 1 or more; it is 0"),
        ("[runtime]\nthreads = 0\n" + A, "line 2: runtime.threads: is unknown (did you mean tool_threads?)"),
        ("[runtime]\njournal = 'no/x.db'\n" + A, "line 2: runtime.journal: must be a file, there or still to be made: no"),
        ("[runtime]\njournal = 'data'\n" + A, "line 2: runtime.journal: must be a file, there or still to be made: data is"),
        # the gateway
        (G + "bind = 'x:y'\n" + A, "line 2: gateway.bind: 'x:y' is no address; one is 127.0.0.1:8765 or [::1]:8765"),
        (G + "bind = '65536'\n" + A, "line 2: gateway.bind: '65536': a port is a number from 0 (any free one)"),
        (G + "bind = '0.0.0.0'\n" + A, "line 2: gateway.bind: 0.0.0.0 can be reached by others: say who gets in by token_fi"),
        (G + "token_file = 'none'\n" + A, "line 2: gateway.token_file: there is no file none"),
        (G + "token_file = 'prompt.md'\n" + A, "line 2: gateway.token_file: the token file prompt.md can be read by others"),
        (G + "tls_key = 'tokens'\n" + A, "line 2: gateway.tls_key: goes with tls_cert, the file of the certificate"),
        (G + "tls_cert = 'prompt.md'\n" + A, "line 2: gateway.tls_cert: tls_cert prompt.md: no certificate in"),
        (G + "hosts = ['a b']\n" + A, "line 2: gateway.hosts: 'a b' is no name; one is 'agents.example.org'"),
        (G + "origins = ['x']\n" + A, "line 2: gateway.origins: 'x' is no origin; one is 'https://agents.example.org'"),
        (G + "sees = { gest = ['a'] }\ntoken_file = 'tokens'\n" + A, "line 2: gateway.sees.gest: the token file has no 'ges"),
        (G + "sees = { guest = ['b'] }\ntoken_file = 'tokens'\n" + A, "line 2: gateway.sees.guest: there is no agent 'b'"),
        (G + "limits = { connections = 0 }\n" + A, "line 2: gateway.limits.connections: must be a whole number of 1 or"),
        (G + "queue_bytes = 3\n" + A, "line 2: gateway.queue_bytes: is unknown (it is a key of limits: limits.queue_bytes)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    """The line on which the key begins, the key as it is written, and what would be right; and of one fault, that alone."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = refused(text)

    assert [True] == [expected in line for line in said], said
    assert said[0].startswith("host.toml, line ")


def test_a_circle_of_budgets(refused: Refused) -> None:
    """Each of them is told; one that hangs below a circle is not."""
    said = refused("budgets = { b = { parent = 'c' }, c = { parent = 'b' }, d = { parent = 'b' } }\n" + A)

    assert ["budgets.b.parent", "budgets.c.parent"] == [line.split(": ")[1] for line in said]


def test_all_of_it_is_told_at_once(refused: Refused) -> None:
    """Line by line, and nothing that only follows from something else."""
    said = refused(
        """
        modle = 1
        [models.m]
        model = "openai:x"
        base_url = "http://127.0.0.1:1/v1"
        retries = -1
        [tools.t]
        files = "nowhere"
        [budgets.b]
        max_tool_calls = 0
        [[agents]]
        name = "a"
        model = "m"
        tools = ["t"]
        approval = { tools = ["search"] }
        budget = "b"
        sub_agents = ["b"]
        limits = { max_llm_calls = 0, max_tool_calls = -1 }
        [[agents]]
        name = "b"
        tools = ["own:nothing"]
        [templates.t]
        agent = "b"
        [gateway]
        bind = "x:y"
        """
    )

    assert [
        "host.toml, line 2: modle",
        "host.toml, line 6: models.m.retries",
        "host.toml, line 8: tools.t.files",
        "host.toml, line 10: budgets.b.max_tool_calls",
        "host.toml, line 18: agents[0].limits.max_llm_calls",
        "host.toml, line 18: agents[0].limits.max_tool_calls",
        "host.toml, line 21: agents[1].tools[0]",
        "host.toml, line 25: gateway.bind",
    ] == [": ".join(line.split(": ")[:2]) for line in said]


SECRET = "f00dcafe-very-secret"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"[models.m]\nmodel = 'openai:x'\napi_key = '{SECRET}'\n" + A, 'api_key_env = "VARIABLE", or api_key_file = "FILE"'),
        (A + f"api_key = '{SECRET}'", "api_key_env"),
        (A + f"model = {{ model = 'openai:x', apikey = '{SECRET}' }}", "api_key_env"),
        (M + f"headers = {{ Authorization = '{SECRET}' }}\n" + A, "headers_env"),
        (M + f"headers = {{ x-api-key = '{SECRET}' }}\n" + A, "headers_env"),
        (M + f"extra_body = {{ deep = [{{ password = '{SECRET}' }}] }}\n" + A, "api_key_env"),
        (G + f"token = '{SECRET}'\n" + A, "token_file"),
        (G + f"tokens = ['{SECRET}']\n" + A, ""),
        (T + f"import = 'own:multiplier'\narguments = {{ client_secret = '{SECRET}' }}\n" + A, "code of your own finds it"),
        (A + "provider_options = { user = 'sk-f00dcafe01234567890123456789' }", "code of your own"),
        (f"[models.m]\nmodel = 'openai:x'\nbase_url = 'https://u:{SECRET}@x/v1'\n" + A, "no user and no password stands"),
        (M + f"proxy = 'http://u:{SECRET}@x'\n" + A, "no user and no password stands in an address here"),
        (M + f"api_key_env = '{SECRET}'\n" + A, "must be the name of an environment variable; what stands there is not"),
        (M + "api_key_env = 'f00dcafe0123456789'\n" + A, "the environment variable that it names is not set, or empty"),
        (M + "api_key_env = 'NO_SUCH_KEY'\n" + A, "the environment variable NO_SUCH_KEY that it names is not set, or empty"),
        (M + "api_key_file = 'nowhere'\n" + A, "nowhere cannot be read: No such file"),
        (M + "api_key_file = 'own.py'\n" + A, "own.py must hold one key, and nothing else"),
        (M + "api_key_file = 'k'\napi_key_env = 'HOME'\n" + A, "is one way to give the key, and api_key_env the other"),
        (M + "headers_env = { x = 'NO_SUCH_KEY' }\n" + A, "NO_SUCH_KEY that it names is not set"),
    ],
)  # fmt: skip
def test_no_secret_stands_in_it(refused: Refused, folder: Path, text: str, expected: str) -> None:
    """What is one, by the name of its key or by its looks, is refused with the way to give it, and never shown."""
    (folder / "k").write_text("a-key\n")
    (folder / "k").chmod(0o600)
    said = "\n".join(refused(text))

    assert expected in said
    assert "f00dcafe" not in said


def test_numbers_of_tokens_are_no_secrets(read: Callable[[str], object]) -> None:
    """Keys that only sound like it may stand."""
    read(
        A + "max_tokens = 5\nlimits = { max_total_tokens = 'none' }\nprovider_options = { max_tokens = 3, token = '' }"
    )


def test_keys_of_providers_do_not_show(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a model that was set up with a key has it nowhere."""
    monkeypatch.setenv("OPENAI_API_KEY", "f00dcafe\u00e9")
    said = "\n".join(refused(A + "model = 'openai:x'"))

    assert "f00dcafe" not in said


def test_a_certificate_is_loaded(folder: Path, read: Callable[[str], object]) -> None:
    """A right one passes, with its key in a file of its own or beside it."""
    authority = trustme.CA()
    made = authority.issue_cert("agents.example.org")
    made.private_key_and_cert_chain_pem.write_to_path(str(folder / "both.pem"))
    made.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    made.private_key_pem.write_to_path(str(folder / "key.pem"))

    assert read(G + "tls_cert = 'both.pem'\n" + A)
    assert read(G + "tls_cert = 'cert.pem'\ntls_key = 'key.pem'\n" + A)


def test_files_that_cannot_be_read(folder: Path) -> None:
    """A file that is missing, a folder, no text, or no TOML, is told in words."""
    (folder / "latin.toml").write_bytes(b"name = '\xe4'")
    (folder / "wrong.toml").write_text("x = ")
    (folder / "deep.toml").write_text(f"x = {'[' * 9999}")
    (folder / "long.toml").write_text(f"x = {'9' * 9999}")
    said: list[str] = []
    for name in ("none.toml", "latin.toml", ".", "wrong.toml", "deep.toml", "long.toml"):
        with pytest.raises(HostFileError) as caught:
            read_host_file(folder / name)
        said.append(str(caught.value).replace(str(folder), "X"))

    assert said == [
        "X/none.toml cannot be read: No such file or directory",
        "X/latin.toml is no text in UTF-8",
        "X cannot be read: Is a directory",
        "X/wrong.toml is no TOML: Invalid value (at end of document)",
        "X/deep.toml nests or counts too far",
        "X/long.toml nests or counts too far",
    ]
