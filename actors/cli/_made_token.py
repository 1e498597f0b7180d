"""The token of a server that was given none: kept in a file for the user who started it, as long as it serves.

A server with a journal comes back, and so do its clients: the next one on its port takes up its token.

`onward attach` on the same machine finds it by the port, so that a token has to be copied by nobody. The folder and the
file belong to the user and are closed to all others; what is not so is not used.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Generator
from pathlib import Path

from ._usage import UsageError

__all__ = ("find_made_token", "kept")

_TELL = "give --token-file FILE, with a line TOKEN"


@contextlib.contextmanager
def kept(token: str, port: int, *, stays: bool = False) -> Generator[Path]:
    """Keep a token inside the block, or beyond it; its file. Raises `UsageError` if there is no safe place for it."""
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(folder):
            raise UsageError(f"{folder} belongs to somebody else, or is open to others, and can keep no token: {_TELL}")
        path = folder / _name(port)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
    except OSError as error:
        raise UsageError(f"{folder} can keep no token ({error.strerror}): {_TELL}") from None
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            # One that is not ours is that of a server that came later.
            if not stays and path.read_text(encoding="ascii").strip() == token:
                path.unlink()


def find_made_token(port: int) -> str | None:
    """The token of this user's server on a port of this machine, if it has made one."""
    folder = _folder()
    path = folder / _name(port)
    try:
        if _is_private(folder) and _is_private(path):
            return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _folder() -> Path:
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    if own and Path(own).is_dir():
        return Path(own) / "onward"
    return Path(tempfile.gettempdir()) / f"onward-{os.getuid()}"


def _name(port: int) -> str:
    return f"token-{port}"


def _is_private(path: Path) -> bool:
    """Whether it is this user's own, and no link."""
    found = path.lstat()
    return found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode) and not found.st_mode & 0o077
