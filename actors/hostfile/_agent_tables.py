"""The keys of an agent: an option more is a line more."""

from __future__ import annotations

from typing import get_args

from protocol.limits import LimitName

from ._kinds import Either, Kind, ListOf, Placed, Plain
from ._model_tables import MODEL
from ._table import Key, Table
from ._tool_tables import HANDOFF, SUB_AGENT, TOOL
from ._values import (
    COUNT,
    FLAG,
    FUNCTION,
    JSON_TABLE,
    NAME,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    REFERENCE,
    SECONDS,
    TEXT,
    TEXT_OF_FILE,
    choice,
    optional,
    texts,
)

__all__ = (
    "AGENT",
    "APPROVAL",
    "COMPACT",
    "COMPACT_OPTIONS",
    "FINALIZATION",
    "FINALIZE",
    "GATE",
    "HOOKS",
    "LIMITS",
    "STOP_WHEN",
    "WITHIN",
)

FINALIZE = "finalize"
"""What `gate` says where nobody is asked, and the last call is made with tools off."""
_FUNCTION_TEXT = "a function, as an import path"


def _list(what: str, word: Kind, table: Table) -> ListOf:
    """A list of words, or of tables that say more."""
    return ListOf(what=what, item=Placed(kind=Either(what=table.what, kinds=(word, table))))


LIMITS = Table(
    title="Limits",
    what="the limits of a run: a table, such as { max_tool_iterations = 3 }",
    keys=(
        Key("max_tool_iterations", optional(COUNT), "Rounds of tool calls before the gate is asked. Default 20."),
        Key("max_llm_calls", optional(COUNT), "Model calls of a run and all that it starts, whatever is approved."),
        Key("max_tool_calls", optional(COUNT), "Tool calls of a run and all that it starts."),
        Key("max_total_tokens", optional(COUNT), "Tokens of a run and all that it starts."),
        Key("max_cost", optional(POSITIVE), "US dollars; needs prices."),
        Key("wall_clock_seconds", optional(SECONDS), "Seconds of work; waits for a decision do not count."),
    ),
)
"""[agents.limits]"""

WITHIN = Table(
    title="Within",
    what="bounds for approvals: a table, such as { tokens = 50000 }",
    keys=(
        Key("cost", POSITIVE, "US dollars."),
        Key("tokens", COUNT, "Tokens."),
        Key("seconds", SECONDS, "Seconds since the run began."),
    ),
)
"""[agents.gate.within]"""

GATE_BY = choice("ask", "approve", "decline", FINALIZE, "stop", otherwise=FUNCTION)
GATE = Table(
    title="Gate",
    what='who decides at the limit: a table, such as { by = "ask", timeout_seconds = 600 }',
    keys=(
        Key(
            "by",
            GATE_BY,
            f"`ask`: clients (the default). `approve`, `decline`: always. `{FINALIZE}`: no question, the last call is made"
            " with tools off. `stop`: no question and no last call. Or a function, as an import path.",
            to="",
        ),
        Key("up_to", COUNT, "In place of `by`: approved until so many rounds were made in all, then declined.", to=""),
        Key("within", WITHIN, "In place of `by`: approved while the run has used less than all of this.", to=""),
        Key(
            "timeout_seconds",
            optional(SECONDS),
            "How long an answer is waited for. Default 600.",
            to="continuation_timeout_seconds",
        ),
        Key(
            "on_timeout",
            choice("decline", "approve"),
            "What becomes of it then. Default `decline`.",
            to="continuation_on_timeout",
        ),
        Key(
            "limits",
            texts(
                "a list of limits",
                choice(*[name for name in get_args(LimitName) if name not in {"tool_iterations", "history_bytes"}]),
            ),
            "Further limits that are asked about before a run ends at them.",
            to="gate_on",
        ),
        Key("max_grant", COUNT, "The most that one decision of a client may grant. Default: the limit's own value."),
    ),
)
"""[agents.gate]"""

APPROVAL_BY = choice("ask", "approve", "deny", otherwise=FUNCTION)
APPROVAL = Table(
    title="Approval",
    what='who allows calls of tools that need it: a table, such as { by = "ask", timeout_seconds = 60 }',
    keys=(
        Key("by", APPROVAL_BY, f"`ask`: clients (the default). `approve`, `deny`: always. Or {_FUNCTION_TEXT}.", to=""),
        Key(
            "timeout_seconds",
            optional(SECONDS),
            "How long an answer is waited for; then it is denied. Default 600.",
            to="approval_timeout_seconds",
        ),
        Key("tools", texts("a list of tools", TEXT), "Tools of this agent whose calls need it, by name.", to=""),
    ),
)
"""[agents.approval]"""

COMPACT_BY = choice("trim", "summarise", otherwise=FUNCTION)
COMPACT = Table(
    title="Compact",
    what='what makes a conversation shorter: a table, such as { by = "trim", at_tokens = 100000 }',
    keys=(
        Key(
            "by",
            COMPACT_BY,
            "`trim` lets the oldest exchanges go (the default), `summarise` puts a summary in their place."
            f" Or {_FUNCTION_TEXT}.",
            to="",
        ),
        Key(
            "at_tokens",
            optional(COUNT),
            "From how many tokens on, by estimate. Default: four fifths of the window, if it is known.",
            to="compact_at_tokens",
        ),
        Key("max_compactions", COUNT, "How often it may be tried after a refusal for length. Default 3."),
        Key("keep_last", COUNT, "Messages at the end that stay. Default 1.", to=""),
        Key("max_tokens", COUNT, "What is aimed at. Default: what there is room for.", to=""),
        Key("clear_results_over_chars", COUNT, "Longer results of tools are cleared first.", to=""),
        Key("instructions", TEXT, "How a summary is to be made; for `summarise`.", to=""),
        Key("summary_max_tokens", COUNT, "The cap on a summary; for `summarise`. Default 1024.", to=""),
    ),
)
"""[agents.compact]"""
COMPACT_OPTIONS = {
    "trim": ("keep_last", "max_tokens", "clear_results_over_chars"),
    "summarise": ("keep_last", "max_tokens", "clear_results_over_chars", "instructions", "summary_max_tokens"),
}
"""What can be said of those that are built in."""

_INSTRUCTION = Either(
    what="true (the built-in instruction), false, or the instruction",
    kinds=(
        Plain(
            what="true or false",
            form=bool,
            fits=lambda _: True,
            schema_={"type": "boolean"},
            meaning=lambda is_on, _place, _reading: "" if is_on else None,
        ),
        TEXT,
    ),
)
FINALIZATION = Table(
    title="Finalization",
    what="last calls with tools off: a table, such as { tool_iteration_limit = true }",
    keys=(
        Key(
            "tool_iteration_limit",
            _INSTRUCTION,
            "When the window of rounds is full, or the tool calls are used up.",
            to="tool_iteration_limit_finalization",
        ),
        Key(
            "llm_call_limit",
            _INSTRUCTION,
            "The last allowed model call is the final one.",
            to="llm_call_limit_finalization",
        ),
        Key("budget", _INSTRUCTION, "Before tokens, cost or time run out.", to="budget_finalization"),
        Key("stop", _INSTRUCTION, "When a stop condition is met.", to="finalize_on_stop"),
        Key(
            "window_seconds",
            SECONDS,
            "The last seconds of wall_clock_seconds: a step that ends in them is the last. Default 30.",
            to="finalization_window_seconds",
        ),
        Key("retry", FLAG, "A final call without text is made once more. Default false.", to="finalization_retry"),
    ),
)
"""[agents.finalization]"""

STOP_WHEN = Table(
    title="StopWhen",
    what="conditions that end a run: a table, such as { max_steps = 20, no_progress = 3 }",
    keys=(
        Key("max_steps", COUNT, "So many steps are finished."),
        Key("has_tool_call", texts("a list of tools"), "The last step called one of these tools."),
        Key("has_tool_result", texts("a list of tools"), "A call of one of these tools succeeded."),
        Key("no_progress", COUNT, "The last so many calls are identical."),
        Key("consecutive_errors", COUNT, "The last so many results are failures."),
        Key("token_budget", COUNT, "So many tokens are used."),
        Key("cost_budget", POSITIVE, "So many US dollars are spent."),
        Key("time_budget", SECONDS, "The run has lasted so many seconds; a step that goes on is not cut."),
        Key("is_loop_finished", FLAG, "`true`: nothing but the model, and the limits, ends the run."),
        Key("functions", texts("a list of import paths", FUNCTION), "Conditions of your own."),
    ),
)
"""[agents.stop_when]"""

HOOKS = Table(
    title="Hooks",
    what='functions of your own that take part in a run: a table, such as { on_step = "package.module:name" }',
    keys=(
        Key("prepare_call", FUNCTION, "Changes one model call."),
        Key("prepare_step", FUNCTION, "The fuller one; one of the two."),
        Key("continue_when", FUNCTION, "Asked on a natural end: a text goes on with the run."),
        Key("check_answer", FUNCTION, "Asked about every answer: a text is a complaint."),
        Key("around_tool", FUNCTION, "Stands around every tool call."),
        Key("on_context_overflow", FUNCTION, "Asked for a shorter conversation."),
        Key("on_step", FUNCTION, "Observes every step."),
        Key("on_run_end", FUNCTION, "Observes every result."),
    ),
)
"""[agents.hooks]"""

_TOOL_CHOICE = Either(
    what='`auto`, `none`, `required`, or a table such as { tool = "NAME" }',
    kinds=(
        choice("auto", "none", "required"),
        Table(
            title="ForcedTool",
            what='the tool that must be called: a table, such as { tool = "NAME" }',
            keys=(Key("tool", TEXT, "Its name.", needed=True),),
        ),
    ),
)

AGENT = Table(
    title="Agent",
    what="an agent: a table, [[agents]]",
    keys=(
        Key("name", NAME, 'Its name, such as name = "auditor".', needed=True),
        Key(
            "model",
            Either(what="a model: `rules`, KIND:NAME, the name of one of [models], or a table", kinds=(TEXT, MODEL)),
            "Who decides: `rules` (the default), `KIND:NAME`, the name of one of [models], or a table as there.",
            to="",
        ),
        Key("system", TEXT, "The system prompt."),
        Key("system_file", TEXT_OF_FILE, "A file with the system prompt.", to="system"),
        Key(
            "tools",
            _list('a list, such as ["files:."]', TEXT, TOOL),
            "What it may call: `files:FOLDER`, `package.module:name`, the names of some of [tools], or tables as there.",
            to="",
        ),
        Key("limits", LIMITS, "How far a run goes.", to=""),
        Key(
            "gate",
            Either(what=GATE.what, kinds=(GATE_BY, GATE)),
            "Who decides at the limit; a word is its `by`.",
            to="",
        ),
        Key(
            "approval",
            Either(what=APPROVAL.what, kinds=(APPROVAL_BY, APPROVAL)),
            "Who allows calls of tools that need it; a word is its `by`.",
            to="",
        ),
        Key(
            "compact",
            Either(what=COMPACT.what, kinds=(COMPACT_BY, COMPACT)),
            "What makes a conversation shorter that outgrows the context window; a word is its `by`.",
            to="",
        ),
        Key("finalization", FINALIZATION, "Which limits end in a last call with tools off.", to=""),
        Key("stop_when", STOP_WHEN, "What else ends a run. Asked after every step.", to=""),
        Key("budget", REFERENCE, "What its runs draw on together with others: the name of one of [budgets].", to=""),
        Key(
            "sub_agents",
            _list("a list of agents", REFERENCE, SUB_AGENT),
            "Agents that it may give tasks to: each is a tool.",
            to="",
        ),
        Key(
            "handoffs",
            _list("a list of agents", REFERENCE, HANDOFF),
            "Agents that it may hand a run over to.",
            to="",
        ),
        Key("spawn", FLAG, "`false`: it is there for other agents and for templates alone. Default true.", to=""),
        Key("hooks", HOOKS, "Functions of your own.", to=""),
        Key("temperature", NUMBER, "How freely the model chooses."),
        Key("max_tokens", COUNT, "The cap on a reply's output tokens."),
        Key("tool_choice", _TOOL_CHOICE, "Whether the model must call a tool first. Default `auto`."),
        Key("provider_options", JSON_TABLE, "Further fields of the provider's own request."),
        Key("max_reasks", NOT_NEGATIVE, "How often in a row a bad turn is asked for again. Default 1."),
        Key("max_continues", NOT_NEGATIVE, "How often the hooks may keep a run going. Default 3."),
        Key("automatic_continuation", FLAG, "Whether a turn that a token limit cut goes on by itself."),
        Key("max_hops", COUNT, "How often one turn is continued. Default 32."),
        Key("max_parallel_tools", COUNT, "Calls of one turn that run at the same time. Default: all."),
        Key("tool_timeout_seconds", SECONDS, "For tools that set none of their own."),
        Key("max_tool_output_chars", COUNT, "What is kept of one result. Default 100000."),
        Key("callback_timeout_seconds", SECONDS, "For hooks and conditions that are async. Default 60."),
        Key("cancel_grace_seconds", SECONDS, "How long a cancelled run waits for its tools. Default 5."),
    ),
)
"""[[agents]]"""
