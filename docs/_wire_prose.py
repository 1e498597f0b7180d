"""What the reference page of the wire says beside its tables."""

HEAD = """\
What a remote client and the gateway of a runtime say to each other. Written by `docs/wire.py` from the types in
`protocol/`: change those, run it, and commit both. The same for machines:
[JSON Schema](onward.v1.schema.json) (a gateway serves it at `/schema`), [AsyncAPI](onward.v1.asyncapi.json) and
[TypeScript](../../actors/client/js/protocol.d.ts). Recorded conversations are in `tests/protocol/wire/transcripts/`.
"""

DOOR = """\
One WebSocket per client, at `/ws`, with the subprotocol `onward.v1` and text messages. A program shows
`Authorization: Bearer TOKEN`; a page of the gateway's own origin shows the cookie that `POST /session` gave it for a
one-time ticket. No secret stands in an address.

| status | why |
|---|---|
| 401 | no credential, or one that is not known |
| 403 | another origin, or a principal without a role |
| 404, 405 | nothing is at this path, or not with this method |
| 421 | `Host` is not a name of this gateway |
| 426 | `/ws` without an upgrade to a WebSocket |
| 431 | the head is too long |
| 503 | too many connections: `Retry-After` says when to come again |

`/healthz`, `/readyz` and `/schema` ask for nothing; `/metrics`, in the text format of Prometheus, asks for `observe`.
Roles: `observe` (read), `decide` (answer questions), `operate` (spawn, run, steer, cancel), `admin` (all of these).
Whoever holds any of them may observe.
"""

FRAMES = """\
JSON-RPC 2.0. A client sends one command in each frame; each gets exactly one reply, with its `id`:

```json
{"jsonrpc": "2.0", "id": 1, "method": "agent.list", "params": {}}
{"jsonrpc": "2.0", "id": 1, "result": {"agents": []}}
{"jsonrpc": "2.0", "id": 1, "error": {"code": -32010, "message": "...", "data": {"code": "not_found", "retryable": false}}}
```

An `id` is an integer within 2^53 or a string of 1 to 64 characters. The server sends no commands, only notifications;
one frame of it may hold an array of messages. `hello` comes first, within five seconds. Parameters that are not known
are ignored. JSON is strict: no NaN, no duplicate keys, no lone surrogates, no byte order mark, nothing deeper than 64.
"""

DECIDING = """\
A question is open until one answer closes it; the answer is an event that everybody gets. A `decide` command is judged
in this order, and the first that fits is its reply:

1. There is no such request, or not for this principal: `not_found`.
2. The principal does not hold `decide`: `forbidden`.
3. The same principal has used this `idem`: the stored answer, with `replayed`; with other content, `idem_conflict`.
4. The request is closed: `already_resolved`, with its `resolution`.
5. The digest is not the request's: `stale_view`.
6. What is decided was not offered, names calls that do not wait, or has arguments that the tool's schema refuses:
   `invalid_argument`. The request stays open.
7. Else the request is closed, and when that is on disk the reply is `accepted`. The event may come before the reply.

A client that has lost its connection attaches again and sends the same `idem`: the answer is the same, and nothing is
decided twice. Refusals are not kept. Expiry, cancel and the end of the agent close requests too.
"""

NUMBERS = """\
The events of an agent are numbered from 1, without a gap. `events` carries the number of its first event; each further
event has the number before it plus that event's `n`, which is 1 where it is absent. Only deltas and `skipped` carry one:
a delta with `n` is several joined, and `skipped` stands for what was left out.

A client keeps the last number it has applied. The number it expects: apply; a lower one: drop what it has already; a
higher one: attach again from its position. A new `epoch` means that the numbers begin anew. Recovery is whole or not at
all: either everything behind the position follows, or `recovered` is false and a snapshot says how things are. The reply
to `agent.attach` comes before the first events, and names all requests that are open.

`heartbeat` comes at every interval with the heads that moved: whoever has less, and gets nothing, has lost something.
"""

EVENTS = """\
An event carries `run`, and `agent_path` where a sub-agent speaks; those of an agent as a whole carry `agent`. A field
that is absent has its default. Events of types that a client does not know are to be ignored.
"""

CODES = """\
A frame that is no command gets an error with a code of JSON-RPC, and nothing happened. A command that is refused gets
the one application code, and `data`. Every command may be refused with {of_all}.
"""

VERSIONS = """\
Within `onward.v1` no field is renamed and none changes its type; there may be new fields, events, notices and commands,
and whoever does not know them goes on. What does not fit that is another subprotocol.
"""
