"""The keys of what an agent may call: tools, and other agents."""

from __future__ import annotations

from ._kinds import Either
from ._table import Key, Table
from ._values import FLAG, JSON_TABLE, NAME, OBJECT, REFERENCE, SECONDS, TEXT, texts

__all__ = ("HANDOFF", "SUB_AGENT", "TOOL")

SUB_AGENT = Table(
    title="SubAgent",
    what='an agent as a tool: its name, or a table such as { agent = "reader", background = true }',
    keys=(
        Key("agent", REFERENCE, "The agent, by its name.", to="", needed=True),
        Key("name", NAME, "The tool's name. Default: `ask_` and the agent's name."),
        Key("description", TEXT, "What the model is told of it."),
        Key("timeout_seconds", SECONDS, "How long one task may take."),
        Key("needs_approval", FLAG, "Whether somebody must allow a task before it begins. Default false."),
        Key("background", FLAG, "Two tools, one that starts a task and one that waits for its answer.", to=""),
    ),
)
"""[[agents.sub_agents]]"""

HANDOFF = Table(
    title="Handoff",
    what='an agent that goes on in this one\'s place: its name, or a table such as { agent = "billing" }',
    keys=(
        Key("agent", REFERENCE, "The agent, by its name.", to="", needed=True),
        Key("description", TEXT, "What the model is told of it."),
    ),
)
"""[[agents.handoffs]]"""

TOOL_NAMES = Either(what="true, false, or a list of tools", kinds=(FLAG, texts("a list of tools")))
TOOL = Table(
    title="Tool",
    what='a set of tools: a table, such as { files = "." } or { import = "package.module:name" }',
    keys=(
        Key("files", TEXT, "The tools that look at the files below this folder.", to=""),
        Key("import", OBJECT, "Tools of your own: a function, a tool, or a list of them, as an import path.", to=""),
        Key("arguments", JSON_TABLE, "What `import` names makes the tools: it is called with these.", to=""),
        Key("only", texts("a list of tools"), "Which of them, by name. Default: all.", to=""),
        Key("needs_approval", TOOL_NAMES, "Whether calls must be allowed before they run; or which, by name.", to=""),
        Key("timeout_seconds", SECONDS, "How long one call may take.", to=""),
        Key("ends_run", TOOL_NAMES, "Whether a call that succeeds ends the run; or of which tools, by name.", to=""),
    ),
)
"""[tools.NAME]"""
