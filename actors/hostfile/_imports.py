"""What a host file names by import path: `package.module:name`. Importing runs the module, and nothing else is run."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from protocol.text import guess

from ._faults import Reading
from ._places import Place

__all__ = ("IMPORT_PATH", "Unread", "find_beside", "imported")

IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
"""`package.module:name`."""


class Unread:
    """Stands for what was not imported, because that was not wanted; to be called, as what it stands for may be."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Never reached: nothing is run of a file that was read without its imports."""
        raise RuntimeError(f"{self.path} was not imported")


def imported(path: str, place: Place, reading: Reading) -> Any:
    """The object that an import path names."""
    if not reading.imports:
        return Unread(path)
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            return reading.fault(
                place, f"there is no module {error.name}: it is looked for where Python looks, and beside this file"
            )
        return reading.fault(place, f"{module_name} cannot be imported: {_said(error)}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  somebody else's module, and what it does when it is run
        return reading.fault(place, f"{module_name} cannot be imported: {_said(error)}")
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except Exception:  # noqa: BLE001  a module may have a __getattr__ of its own
            near = guess(part, [each for each in dir(found) if not each.startswith("_")])
            return reading.fault(place, f"{module_name} has no {name}{near}")
    return found


def find_beside(path: Path) -> None:
    """Let Python find modules that stand beside a host file too: after all others, so that they hide none."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def _said(error: BaseException) -> str:
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
