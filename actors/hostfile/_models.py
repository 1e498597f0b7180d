"""Models, prices and budgets of a host file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import attrs

from protocol.errors import SpecError
from protocol.prices import Price, Prices, PriceTable
from protocol.text import guess

from ..agent import Budget
from ..models.named import KINDS, named_model
from ..models.planner import Planner
from ..prices import genai_prices
from ._faults import BAD, Bad, Reading
from ._imports import Unread
from ._model_tables import BUDGET, MODEL
from ._places import Place

__all__ = ("RULES", "make_budgets", "make_model", "make_prices", "model_of")

RULES = "rules"
"""What is no language model."""


def model_of(word: str, known: Mapping[str, Any], place: Place, reading: Reading) -> Any:
    """The model that an agent means by a word."""
    if word in known:
        return known[word]
    if word == RULES:
        return Planner()
    if ":" in word:
        return _of_a_server(word, {}, {}, place, reading)
    names = [RULES, *known]
    return reading.fault(
        place,
        f"there is no model {word!r}{guess(word, names)}; there are: {', '.join(names)}, and KIND:NAME, such as ollama:NAME",
    )


def make_model(values: Mapping[str, Any], place: Place, reading: Reading) -> Any:
    """A model of its table; `BAD` if it is wrong."""
    given = [key for key in ("model", "import") if key in values]
    if reading.is_faulty(place):
        return BAD
    if len(given) != 1:
        return reading.fault(place, 'lacks its model: model = "KIND:NAME"' if not given else _ONE_OF_TWO)
    if given == ["model"] and "arguments" in values:
        return reading.fault((*place, "arguments"), "goes with import")
    options, places = _options(values, place, reading)
    word = values.get("model", RULES)
    if word != RULES:
        return _of_a_server(word, options, places, (*place, "model"), reading)
    for name in options:
        reading.fault(places[name], 'is for a model server; it goes with a model such as "openai:NAME"')
    if options:
        return BAD
    if given == ["model"]:
        return Planner()
    return _own(values["import"], values.get("arguments"), (*place, "import"), reading)


_ONE_OF_TWO = "has model and import: a model is one or the other"


def _options(values: Mapping[str, Any], place: Place, reading: Reading) -> tuple[dict[str, Any], dict[str, Place]]:
    """What the model's class is given, and where each stands."""
    options, places = MODEL.parameters(values, place)
    if "api_key_env" in values and "api_key_file" in values:
        reading.fault((*place, "api_key_file"), "is one way to give the key, and api_key_env the other: give one")
    if "headers_env" in values:
        options["headers"] = {**options.get("headers", {}), **values["headers_env"]}
        places.setdefault("headers", (*place, "headers_env"))
    if "verify" in options:
        options["verify"] = str(options["verify"])
    if "profile" in values:
        places["profile"] = (*place, "profile")
        options["profile"] = values["profile"]
    return options, places


def _of_a_server(word: str, options: dict[str, Any], places: dict[str, Place], at: Place, reading: Reading) -> Any:
    if not {"api_key", "base_url"} & options.keys() and (lacking := _lacks_key(word)):
        return reading.fault(
            at,
            f"{word} needs a key in {lacking}, or in what api_key_env or api_key_file names; or a base_url of your own",
        )
    make = functools.partial(named_model, word)
    profile = options.pop("profile", {})
    model = reading.make(make, options, places, at)
    if isinstance(model, Bad) or not profile:
        return model
    return reading.make(make, {**options, "profile": attrs.evolve(model.profile, **profile)}, places, at)


def _lacks_key(word: str) -> str:
    """The variables that would hold the key that is not there; empty where none is needed."""
    before, _, name = word.partition(":")
    kind = KINDS.get(before.strip())
    if kind is None or not name.strip() or kind.is_local or kind.key_variable() is not None:
        return ""
    return " or ".join(kind.key_variables)


def _own(found: Any, arguments: Mapping[str, Any] | None, place: Place, reading: Reading) -> Any:
    """A model of one's own: the object, or what the function or class makes."""
    if isinstance(found, Unread):
        return _Unread(found.path)
    if arguments is not None or isinstance(found, type) or not callable(getattr(found, "turn", None)):
        if not callable(found):
            return reading.fault(place, f"must name a model, or what makes one; it is a {type(found).__name__}")
        try:
            found = found(**(arguments or {}))
        except Exception as error:  # noqa: BLE001  somebody else's code
            return reading.fault(place, f"made no model: {type(error).__name__}: {error}")
    if not callable(getattr(found, "turn", None)):
        return reading.fault(place, f"must give a model, which has a method turn(); it gave a {type(found).__name__}")
    return found


@attrs.frozen
class _Unread:
    """Stands for a model that was not imported."""

    name: str

    def turn(self, *_: object) -> Any:
        """Never reached."""
        raise RuntimeError(f"{self.name} was not imported")


def make_prices(values: Any, place: Place, reading: Reading) -> PriceTable | None:
    """What models cost."""
    if values is None:
        return None
    if isinstance(values, str):
        try:
            return genai_prices()
        except SpecError as error:
            reading.fault(place, str(error))
            return None
    found: dict[str, Price] = {}
    for name, price in cast("dict[str, dict[str, Any]]", values).items():
        at = (*place, name)
        if {"input", "output"} <= set(price):
            made = reading.make(Price, price, {}, at)
            if not isinstance(made, Bad):
                found[name] = made
    return Prices(found)


def make_budgets(values: Mapping[str, Mapping[str, Any]], reading: Reading) -> dict[str, Budget]:
    """Budgets by their names, each below its parent."""
    made: dict[str, Budget] = {}
    waiting = dict(values)
    while waiting:
        ready = [name for name, given in waiting.items() if given.get("parent") in {None, *made}]
        if not ready:
            break
        for name in ready:
            given, place = waiting.pop(name), ("budgets", name)
            fields, places = BUDGET.parameters(given, place)
            if "parent" in given:
                fields["parent"] = made[given["parent"]]
            budget = reading.make(Budget, {"name": name, **fields}, places, place)
            if not isinstance(budget, Bad):
                made[name] = budget
    for name, given in waiting.items():
        parent: str = given["parent"]
        at = ("budgets", name, "parent")
        if parent not in values:
            names = ", ".join(values)
            reading.fault(at, f"there is no budget {parent!r}{guess(parent, values)}; there are: {names}")
        elif _leads_to(name, parent, waiting):
            reading.fault(at, "a budget cannot be a part of itself, through others either")
    return made


def _leads_to(name: str, parent: str, waiting: Mapping[str, Mapping[str, Any]]) -> bool:
    seen: set[str] = set()
    while parent in waiting and parent not in seen:
        if parent == name:
            return True
        seen.add(parent)
        parent = waiting[parent]["parent"]
    return False
