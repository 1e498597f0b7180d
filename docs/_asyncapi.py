"""The wire as an AsyncAPI 3 document: one channel, commands with their replies, notifications, and who gets in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from docs._texts import about
from protocol.wire import METHODS, SUBPROTOCOL
from protocol.wire.notifications import NOTIFICATIONS
from protocol.wire.schema import frame_of
from protocol.wire.words import ERRORS_OF_ALL

Document = dict[str, Any]

INFO = """\
What a remote client and the gateway of a runtime say to each other: one WebSocket per client, text frames, JSON. A client
sends commands, one in each frame, and gets one reply to each; a server's frame holds one message, or an array of them.
"""
CORRELATION = {"location": "$message.payload#/id", "description": "A reply carries the id of its command."}


def asyncapi(schema: Mapping[str, Any]) -> Document:
    """The document, with the definitions of the JSON Schema as its components."""
    messages = _messages(schema["$defs"])
    document = {
        "asyncapi": "3.0.0",
        "info": {"title": SUBPROTOCOL, "version": "1.0.0", "description": INFO},
        "defaultContentType": "application/json",
        "servers": {
            "gateway": {
                "host": "127.0.0.1:8765",
                "protocol": "ws",
                "description": f"Where a gateway listens unless it is told otherwise; the subprotocol is {SUBPROTOCOL}.",
                "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in SECURITY],
            }
        },
        "channels": {
            "ws": {
                "address": "/ws",
                "title": "The WebSocket",
                "messages": messages,
                "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0", "headers": HEADERS}},
            }
        },
        "operations": {**_commands(schema["$defs"]), **_notifications()},
        "components": {"schemas": schema["$defs"], "securitySchemes": SECURITY},
    }
    moved: Document = json.loads(json.dumps(document).replace('"#/$defs/', '"#/components/schemas/'))
    return moved


SECURITY: Document = {
    "token": {"type": "http", "scheme": "bearer", "description": "For programs: a token of the gateway."},
    "session": {
        "type": "httpApiKey",
        "in": "cookie",
        "name": "onward_session_8765",
        "description": "For pages of the gateway's own origin: POST /session changes a one-time ticket for this cookie."
        " The number is the port.",
    },
}
HEADERS: Document = {
    "type": "object",
    "properties": {"Sec-WebSocket-Protocol": {"type": "string", "const": SUBPROTOCOL}},
    "required": ["Sec-WebSocket-Protocol"],
}


def _messages(schemas: Mapping[str, Any]) -> Document:
    found: Document = {}
    for name in METHODS:
        result = schemas["Results"]["properties"][name]
        payload = schemas["ResultMessage"]
        found[_key(name)] = {"name": name, "payload": frame_of(name), "correlationId": CORRELATION}
        found[_key(name, "Result")] = {
            "name": f"{name} result",
            "payload": {**payload, "properties": {**payload["properties"], "result": result}},
            "correlationId": CORRELATION,
        }
    found["error"] = {
        "name": "error",
        "payload": {"$ref": "#/$defs/ErrorMessage"},
        "correlationId": CORRELATION,
    }
    for name, kind in NOTIFICATIONS.items():
        found[name] = {"name": name, "payload": {"$ref": f"#/$defs/{kind.__name__}Message"}}
    return found


def _commands(schemas: Mapping[str, Any]) -> Document:
    """What the gateway receives, and answers."""
    return {
        _key(name): {
            "action": "receive",
            "channel": {"$ref": "#/channels/ws"},
            "title": name,
            "summary": about(name, schemas),
            "description": f"Needs the role {method.role}. May be refused with:"
            f" {', '.join(dict.fromkeys([*method.errors, *ERRORS_OF_ALL]))}.",
            "messages": [_message(_key(name))],
            "reply": {
                "channel": {"$ref": "#/channels/ws"},
                "messages": [_message(_key(name, "Result")), _message("error")],
            },
        }
        for name, method in METHODS.items()
    }


def _notifications() -> Document:
    """What the gateway sends on its own."""
    return {
        name: {
            "action": "send",
            "channel": {"$ref": "#/channels/ws"},
            "title": name,
            "summary": (kind.__doc__ or "").splitlines()[0],
            "messages": [_message(name)],
        }
        for name, kind in NOTIFICATIONS.items()
    }


def _message(key: str) -> Document:
    return {"$ref": f"#/channels/ws/messages/{key}"}


def _key(method: str, suffix: str = "") -> str:
    """A method's name as a key: `agent.list` is `agentList`."""
    first, *rest = method.split(".")
    return first + "".join(word.capitalize() for word in rest) + suffix
