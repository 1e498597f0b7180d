"""The gateway of a host file: where it listens, who gets in, and what clients may make agents from."""

from __future__ import annotations

import functools
import re
import ssl
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from protocol.errors import SpecError
from protocol.text import guess
from protocol.wire import WireLimits

from ..agent import AgentSpec
from ..gateway import Access, Door, DoorLimits, Principal, Template, is_loopback, read_token_file
from ._faults import Bad, Reading
from ._host_tables import DOOR_KEYS, GATEWAY
from ._places import Place

__all__ = (
    "DEFAULT_PORT",
    "GatewaySettings",
    "access_of",
    "address_of",
    "make_gateway",
    "make_templates",
    "tls_context",
)

DEFAULT_PORT = 8765
"""Where a gateway listens unless it is told otherwise."""
_BIND = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]*))(?::(?P<port>[0-9]+))?", re.ASCII)


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """Where a gateway listens, and who gets in."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any free one."""
    token_file: Path | None = None
    """Who gets in; `None`: whoever started it, by a token that is made for the time it runs."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """`None`: it stands in the file of the certificate."""
    hosts: tuple[str, ...] = ()
    """Names that it is reached by, beside `localhost` and addresses."""
    origins: tuple[str, ...] = ()
    """Origins of foreign pages that may connect."""
    sees: Mapping[str, Collection[str]] = attrs.field(factory=dict[str, Any])
    """The agents that somebody may see, by the names of the token file; who is not there sees all."""
    limits: WireLimits = attrs.field(factory=WireLimits)
    door_limits: DoorLimits = attrs.field(factory=DoorLimits)

    def options(self) -> dict[str, Any]:
        """What `open_gateway()` takes of it. Reads token file and certificate; raises `SpecError` for what they lack."""
        return {
            "host": self.host,
            "port": self.port,
            "tokens": None if self.token_file is None else access_of(self.token_file, self.sees),
            "hosts": self.hosts,
            "origins": self.origins,
            "ssl_context": tls_context(self.tls_cert, self.tls_key),
            "limits": self.limits,
            "door_limits": self.door_limits,
        }


def access_of(token_file: Path, sees: Mapping[str, Collection[str]]) -> Access:
    """Who gets in by a token file, each with the agents that he may see. Raises `SpecError`."""
    return Access.of({token: _seeing(who, sees) for token, who in read_token_file(token_file).items()})


def _seeing(principal: Principal, sees: Mapping[str, Collection[str]]) -> Principal:
    names = sees.get(principal.name)
    return principal if names is None else attrs.evolve(principal, sees=frozenset(names).__contains__)


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`, or of one of the two. Raises `SpecError`, whose text says what is one."""
    read = _BIND.fullmatch(f":{text}" if text.isascii() and text.isdecimal() else text)
    if read is None or not text:
        raise SpecError(f"{text!r} is no address; one is 127.0.0.1:{DEFAULT_PORT} or [::1]:{DEFAULT_PORT}")
    port = read["port"]
    if port is not None and (len(port) > 5 or int(port) > 65_535):
        raise SpecError(f"{text!r}: a port is a number from 0 (any free one) to 65535; it is {port!r}")
    return read["v6"] or read["host"] or "127.0.0.1", DEFAULT_PORT if port is None else int(port)


def tls_context(
    certificate: Path | None, key: Path | None, *, names: tuple[str, str] = ("tls_cert", "tls_key")
) -> ssl.SSLContext | None:
    """TLS by these files; `names` are what an error calls them. Raises `SpecError`."""
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for name, path in zip(names, (certificate, key), strict=True):
        if path is not None and not path.is_file():
            raise SpecError(f"{name} {path}: there is no such file")
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except OSError as error:  # what TLS raises is one
        what = f"{names[0]} {certificate}" if key is None else f"{names[0]} {certificate} and {names[1]} {key}"
        reason = getattr(error, "reason", None) or error.strerror
        raise SpecError(
            f"{what}: no certificate in PEM with the key that belongs to it, without a passphrase ({reason})"
        ) from None
    return context


def _no_password() -> str:
    """Asked for a passphrase by the library, which would ask the terminal."""
    return ""


def make_gateway(values: Mapping[str, Any], agents: Collection[str], reading: Reading) -> GatewaySettings:
    """The gateway of its table, with all that it names looked at."""
    place: Place = ("gateway",)
    fields, places = GATEWAY.parameters(values, place)
    for key in ("hosts", "origins"):
        if key in fields:
            fields[key] = tuple(fields[key])
            reading.make(functools.partial(Door, access=Access(), ports=tuple[int]), {key: fields[key]}, places, place)
    if "bind" in values:
        try:
            fields["host"], fields["port"] = address_of(values["bind"])
        except SpecError as error:
            reading.fault((*place, "bind"), str(error))
    limits: Mapping[str, Any] = values.get("limits", {})
    fields["limits"] = WireLimits(**{key: value for key, value in limits.items() if key not in DOOR_KEYS})
    fields["door_limits"] = DoorLimits(**{key: value for key, value in limits.items() if key in DOOR_KEYS})
    settings = GatewaySettings(**fields, sees=values.get("sees", {}))
    _check_tls(settings, place, reading)
    _check_access(settings, values, agents, reading)
    return settings


def _check_tls(settings: GatewaySettings, place: Place, reading: Reading) -> None:
    if settings.tls_key is not None and settings.tls_cert is None:
        reading.fault((*place, "tls_key"), "goes with tls_cert, the file of the certificate")
    try:
        tls_context(settings.tls_cert, settings.tls_key)
    except SpecError as error:
        reading.fault((*place, "tls_cert"), str(error))
    if not is_loopback(settings.host) and settings.tls_cert is None:
        reading.note(
            (*place, "bind"), f"{settings.host} is reached by others without TLS: tokens can be read on the way"
        )


def _check_access(
    settings: GatewaySettings, values: Mapping[str, Any], agents: Collection[str], reading: Reading
) -> None:
    place: Place = ("gateway",)
    people: dict[str, Principal] | None = None
    if settings.token_file is not None:
        try:
            access_of(settings.token_file, settings.sees)
            people = {who.name: who for who in read_token_file(settings.token_file).values()}
        except SpecError as error:
            reading.fault((*place, "token_file"), str(error))
            return
    elif not is_loopback(settings.host) and "token_file" not in values:
        reading.fault(
            (*place, "bind"),
            f'{settings.host} can be reached by others: say who gets in by token_file = "FILE", with lines of'
            " TOKEN [ROLE,ROLE...] [NAME]; or listen on 127.0.0.1",
        )
    for name, seen in settings.sees.items():
        at = (*place, "sees", name)
        known = {} if people is None else people
        if name not in known and "token_file" in values:
            reading.fault(at, f"the token file has no {name!r}{guess(name, known)}; there are: {', '.join(known)}")
        elif people is None:
            reading.note(at, "is nobody: without token_file whoever started it gets in, and sees all")
        for agent in seen:
            if agent not in agents:
                reading.fault(at, f"there is no agent {agent!r}{guess(agent, agents)}; there are: {', '.join(agents)}")


def make_templates(
    values: Mapping[str, Mapping[str, Any]], agents: Mapping[str, AgentSpec | None], reading: Reading
) -> dict[str, Template]:
    """What clients may make agents from, by name."""
    made: dict[str, Template] = {}
    for name, given in values.items():
        place = ("templates", name)
        ways = [key for key in ("agent", "import") if key in given]
        if reading.is_faulty(place):
            continue
        if len(ways) != 1:
            text = 'lacks its agent: agent = "NAME"' if not ways else "has agent and import: give one"
            reading.fault(place, text)
            continue
        spec: Any = given.get("import")
        if spec is None:
            word: str = given["agent"]
            if word not in agents:
                there = ", ".join(agents) or "none"
                reading.fault((*place, "agent"), f"there is no agent {word!r}{guess(word, agents)}; there are: {there}")
                continue
            spec = agents[word]
        if spec is None:
            continue  # what is wrong with it has been told
        at = (*place, "overrides") if "overrides" in given else place
        given_ones = {"overrides": given.get("overrides", ())}
        template = reading.make(functools.partial(Template, spec), given_ones, {}, at)
        if not isinstance(template, Bad):
            made[name] = template
    return made
