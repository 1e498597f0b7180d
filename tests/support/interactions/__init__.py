r"""An Interactions server of the tests' own: it plays a scripted decode over real HTTP, and lies where it is told to.

A decode is a list of hops, a hop a list of pieces. A token stands for a place in the decode, and belongs to the
interaction that issued it; whoever presents it wrongly is refused with 400, as `_rules` says.

    server = interactions_server(
        [hop("Once ", Checkpoint("ck1"), "upon ", token="tk1"), hop("a time.")],   # the first decode
        [hop(Thought("s1"), Call("c1", "add", {"a": 1}, signature="s2"))],          # the next one
    )
    server.faults[1] = refuse(503, retry_after="1")        # the second request; or Cut(at_byte=40), Stall(seconds=9),
                                                           # raw() (closed without a word), answer(), stream()
In memory, in virtual time (`Network` of `tests/actors/models/_wire.py`):

    network = Network(nursery, server)
    GeminiInteractions("gemini-x", base_url="http://127.0.0.1:1/v1", transport=network.transport(), ...)

On a socket: `address = await nursery.start(server.listen)`, then `f"{address}/v1"`.

Interactions are called `i1`, `i2`, ... by the number of their request. `server.bodies` holds what was posted. Whether a
reply is a stream or whole is what the request asks for; `hop(form="json")` is a server that does otherwise. Lies:
`hop(status=...)`, `terminal=False`, `done=False`, `over={"steps": None}`, `leads_to=0` (tokens in a circle),
`Raw("data: {oops\n\n")`, `Raw(Pause(9))`. `single_use=True` refuses a token the second time. `issue()` hands out a token that a caller brings
along; `begin_again()` forgets everything, for tests that play one decode many times.
"""

from __future__ import annotations

from ._script import COUNTED, Call, Checkpoint, Hop, Piece, Raw, Step, Text, Thought, hop
from ._server import Cut, InteractionsServer, Stall, interactions_server, refuse, stream_bytes
from ._writing import events, steps_of, whole

__all__ = (
    "COUNTED",
    "Call",
    "Checkpoint",
    "Cut",
    "Hop",
    "InteractionsServer",
    "Piece",
    "Raw",
    "Stall",
    "Step",
    "Text",
    "Thought",
    "events",
    "hop",
    "interactions_server",
    "refuse",
    "steps_of",
    "stream_bytes",
    "whole",
)
