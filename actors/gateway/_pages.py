"""What is answered over plain HTTP: pages, and refusals. Nothing here is secret, and nothing may be framed or sniffed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from importlib import resources

import attrs

from protocol.wire import SUBPROTOCOL
from protocol.wire.schema import wire_schema_bytes

__all__ = ("Pages", "present_schema", "response")

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", _POLICY),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_TEXT = "text/plain; charset=utf-8"
_JSON = "application/schema+json"
_HTML = "text/html; charset=utf-8"
_SCRIPT = "text/javascript; charset=utf-8"
_ROOT = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Onward gateway</title></head>
<body>
<h1>Onward gateway</h1>
<p>A program that hosts agents is running here. Clients follow and steer them over a WebSocket at <code>/ws</code>, with the
subprotocol <code>{SUBPROTOCOL}</code> and a token; <a href="/schema">its schema</a> says what they send.
There is nothing to operate on this page.</p>
</body>
</html>
"""


def present_schema() -> bytes:
    """JSON Schema of exactly this version."""
    return wire_schema_bytes()


def _script() -> bytes | None:
    file = resources.files("actors.client") / "js" / "onward.mjs"
    return file.read_bytes() if file.is_file() else None


@attrs.frozen(kw_only=True)
class Pages:
    """What is served at each path."""

    schema: Callable[[], bytes] = present_schema
    script: Callable[[], bytes | None] = _script
    """The client for pages; `None` if it is not there."""
    ready: Callable[[], bool]
    """Whether clients are taken in."""

    def answer(self, path: str, *, head_only: bool) -> bytes:
        """The response to a GET of one of the paths that the door knows."""
        match path:
            case "/":
                return response(200, _ROOT, content_type=_HTML, head_only=head_only)
            case "/schema":
                return response(200, self.schema(), content_type=_JSON, head_only=head_only)
            case "/onward.js":
                script = self.script()
                if script is not None:
                    return response(200, script, content_type=_SCRIPT, head_only=head_only)
            case "/healthz":
                return response(200, "ok", head_only=head_only)
            case "/readyz":
                ready = self.ready()
                return response(200 if ready else 503, "ready" if ready else "closing", head_only=head_only)
            case _:
                pass
        return response(404, "there is nothing here", head_only=head_only)


def response(
    status: int,
    body: str | bytes = "",
    *,
    headers: Iterable[tuple[str, str]] = (),
    content_type: str = _TEXT,
    head_only: bool = False,
) -> bytes:
    """A whole response; the connection ends with it. Nothing that a client sent may stand in it."""
    data = body.encode() if isinstance(body, str) else body
    fields: Mapping[str, str] = {
        "Date": formatdate(usegmt=True),
        "Content-Type": content_type,
        "Content-Length": str(len(data)),
        **dict(_HEADERS),
        **dict(headers),
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *[f"{key}: {value}" for key, value in fields.items()]]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (b"" if head_only else data)
