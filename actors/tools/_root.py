"""A directory tree, and nothing outside of it.

A path is resolved, checked to lie in the tree, and then opened step by step from the root, each step refusing to
follow a link: what the check saw is what is opened, even if somebody swaps a directory for a link in between. Files
are opened only if they are regular ones, so nothing blocks. Where the system has no such calls (Windows), the
resolved path is opened as a whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import stat
from collections.abc import Generator, Iterator
from typing import IO, Literal, TypeAlias

import attrs

from protocol.errors import SpecError, ToolError

__all__ = ("Entry", "Kind", "Place", "Root", "open_root")

Kind: TypeAlias = Literal["file", "dir", "link", "other"]

_STEPWISE = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# O_NONBLOCK: should a FIFO take the file's place after it was looked at, opening it does not wait for a writer.
_FILE: int = (
    os.O_RDONLY | _NO_LINK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_MOST_SHOWN = 200


@attrs.frozen
class Place:
    """A resolved place in the tree: no `..`, no links."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def below(self, name: str) -> Place:
        """The place of an entry of this directory."""
        return Place((*self.parts, name))


@attrs.frozen
class Entry:
    """One entry of a directory; links are not followed."""

    name: str
    kind: Kind
    size: int
    """In bytes; of use for files alone."""


@attrs.frozen
class Root:
    """The tree. Its methods raise `ToolError`, whose text names paths relative to the root and never the root."""

    path: str = attrs.field(repr=False)

    def place(self, path: str) -> Place:
        """Where `path`, relative to the root, leads; links inside the tree are followed."""
        shown = repr(path[:_MOST_SHOWN])
        if pathlib.PurePath(path).anchor:
            raise ToolError(f"{shown} is absolute; give a path relative to the root, which is '.'")
        outside = ToolError(f"{shown} leads outside the root, where nothing can be read")
        if pathlib.PurePath(os.path.normpath(path)).parts[:1] == (os.pardir,):
            raise outside
        try:
            real = os.path.realpath(os.path.join(self.path, path))  # noqa: PTH118  # pathlib has no lenient realpath
        except (OSError, ValueError) as error:  # ValueError: a NUL, or half of a surrogate pair
            raise ToolError(f"{shown} is no usable path: {_reason(error)}") from error
        if real == self.path:
            return Place(())
        if not real.startswith(self.path.rstrip(os.sep) + os.sep):
            raise outside
        return Place(pathlib.PurePath(real).relative_to(self.path).parts)

    def look(self, place: Place) -> Entry:
        """What stands at `place`."""
        if not place.parts:
            return Entry(".", "dir", 0)
        with _told(place), self._folder(place.parts[:-1]) as folder:
            return _entry(place.parts[-1], folder.stat(place.parts[-1]))

    def entries(self, place: Place) -> list[Entry]:
        """The entries of the directory at `place`, by name; one that vanishes meanwhile is left out."""
        with _told(place), self._folder(place.parts) as folder:
            return list(itertools.starmap(_entry, sorted(folder.statuses())))

    @contextlib.contextmanager
    def open(self, place: Place) -> Generator[tuple[IO[bytes], int]]:
        """Open the regular file at `place`, and tell its size; anything else is refused, without waiting."""
        if not place.parts:
            raise _not_a_file(place, "dir")
        with _told(place), self._folder(place.parts[:-1]) as folder:
            kind = _kind(folder.stat(place.parts[-1]))
            if kind != "file":  # opening a device may do something, so it is looked at first
                raise _not_a_file(place, kind)
            handle = folder.open(place.parts[-1])
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise _not_a_file(place, _kind(status))
        with os.fdopen(handle, "rb") as file, _told(place):
            yield file, status.st_size

    @contextlib.contextmanager
    def _folder(self, parts: tuple[str, ...]) -> Generator[_Folder]:
        if not _STEPWISE:
            yield _Folder(None, os.path.join(self.path, *parts))  # noqa: PTH118  # a name of pathlib's own may be a link
            return
        handle = os.open(self.path, _DIRECTORY)
        try:
            for part in parts:
                below = os.open(part, _DIRECTORY | _NO_LINK, dir_fd=handle)
                os.close(handle)
                handle = below
            yield _Folder(handle, "")
        finally:
            os.close(handle)


@attrs.frozen
class _Folder:
    """An open directory; by its path where the system cannot open one."""

    handle: int | None
    path: str

    def statuses(self) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self.path if self.handle is None else self.handle) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False)

    def stat(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self.handle, follow_symlinks=False)

    def open(self, name: str) -> int:
        return os.open(self._at(name), _FILE, dir_fd=self.handle)

    def _at(self, name: str) -> str:
        return name if self.handle is not None else os.path.join(self.path, name)  # noqa: PTH118


def open_root(root: str | os.PathLike[str]) -> Root:
    """The tree below `root`. Raises `SpecError` if that is no directory."""
    path = os.path.realpath(root)
    if not os.path.isdir(path):  # noqa: PTH112
        what = "is no directory" if os.path.exists(path) else "does not exist"  # noqa: PTH110
        raise SpecError(f"files(root): {os.fspath(root)!r} {what}; give a directory that exists")
    return Root(path)


@contextlib.contextmanager
def _told(place: Place) -> Generator[None]:
    """Say an `OSError` in words for a model: its own text may name the root."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{str(place)[:_MOST_SHOWN]!r}: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file or directory; list_dir shows what there is"
        case NotADirectoryError():
            return "a part of the path is no directory"
        case OSError():
            return (error.strerror or type(error).__name__).lower()
        case UnicodeError():
            return "it holds half of a surrogate pair"
        case _:
            return str(error)


def _not_a_file(place: Place, kind: Kind) -> ToolError:
    what = {
        "dir": "is a directory; list_dir shows what is in it",
        "link": "is a link that leads nowhere",
        "other": "is a special file (a pipe, a socket or a device), which is never opened",
        "file": "was changed meanwhile; try again",
    }
    return ToolError(f"{str(place)[:_MOST_SHOWN]!r} {what[kind]}")


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(name, _kind(status), status.st_size)


def _kind(status: os.stat_result) -> Kind:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "other"
