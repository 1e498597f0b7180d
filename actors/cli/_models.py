"""`onward models`: what can be used here, as lines or as one JSON object on stdout."""

from __future__ import annotations

import attrs
import trio

from protocol.codec import encode

from ._arguments import ModelsArguments
from ._output import Output
from ._status import ANSWERED, FAILED
from ._style import Style, style_for
from ._survey import KeyState, LocalServer, Survey, survey

__all__ = ("lines_of", "models_command")

_SHOWN = 10
"""Models of one server that are shown; more are counted."""

_STATES = {
    "running": "running",
    "wants_key": "answers, but wants its key: --api-key-env names the variable that holds it",
    "silent": "takes connections, but does not answer",
    "other": "something else answers",
    "absent": "nothing listens",
}


def models_command(arguments: ModelsArguments) -> int:
    """Show it; the exit status."""
    return trio.run(_models, arguments)


async def _models(arguments: ModelsArguments) -> int:
    output = Output(1)
    found = await survey()
    if arguments.json:
        text = encode({
            "kinds": [attrs.asdict(key) for key in found.keys],
            "local": [attrs.asdict(one) for one in found.local],
        })
    else:
        text = "\n".join(lines_of(found, style_for(is_terminal=output.is_terminal))).encode()
    try:
        await output.write_bytes(text + b"\n")
    except OSError:
        return FAILED  # whoever read the output has left
    return ANSWERED


def lines_of(found: Survey, style: Style) -> list[str]:
    """The survey as a person reads it."""
    wide = max(len(key.kind) for key in found.keys)
    lines = [style.bold("Without a key")]
    lines.append(f"  {'rules':<{wide}}  a rule-based planner, no language model: onward run PROMPT")
    lines += ["", style.bold("On this machine")]
    for server in found.local:
        lines += _server_lines(server, style, wide)
    lines += ["", style.bold("With a key")]
    lines += [_key_line(key, style, wide) for key in found.keys]
    lines += ["", style.dim("Nothing was spent: no key was sent, and servers were asked for their list alone.")]
    return lines


def _server_lines(server: LocalServer, style: Style, wide: int) -> list[str]:
    state = _STATES[server.state]
    is_there = server.state == "running"
    lines = [f"  {server.kind:<{wide}}  {server.base_url}  {style.green(state) if is_there else style.dim(state)}"]
    lines += [f"    {model.command}" for model in server.models[:_SHOWN]]
    rest = len(server.models) - len(server.models[:_SHOWN]) + server.more
    if rest:
        lines.append(style.dim(f"    ... and {rest} more"))
    return lines


def _key_line(key: KeyState, style: Style, wide: int) -> str:
    if key.found is None:
        said = style.dim(f"{key.title}; no key in {' or '.join(key.variables)}")
    else:
        said = f"{style.green(f'{key.found} is set')}: {key.command}"
    return f"  {key.kind:<{wide}}  {said}"
