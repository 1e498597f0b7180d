"""The file tools: what they answer, checked with wc and grep, and that nothing leaves the root."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.tools import ArgumentsInvalid, files, render_error, render_output
from actors.tools import _root as root_module  # noqa: PLC2701  # one of its two ways is this system's, both are tested
from actors.tools import _search as search_module  # noqa: PLC2701  # its limits are too high for a test
from actors.tools._match import open_matcher  # noqa: PLC2701  # its time limit is no argument of the tool
from protocol.errors import SpecError, ToolError

SECRET = "the secret outside"


@pytest.fixture(params=[True, False], ids=["stepwise", "by path"])
def tree(request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A root with one of everything, beside a secret; opened stepwise, and as where the system cannot do that."""
    monkeypatch.setattr(root_module, "_STEPWISE", request.param)
    return planted(tmp_path)


def open_handles() -> int:
    """How many file descriptors this process has open."""
    return sum(1 for number in range(256) if is_open(number))


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def planted(place: pathlib.Path) -> pathlib.Path:
    root = place / "root"
    for folder in ("src/deep", ".git", "empty"):
        (root / folder).mkdir(parents=True)
    outside = place / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(f"{SECRET}\n", encoding="utf-8")
    (place / "root-secret").write_text(f"{SECRET}\n", encoding="utf-8")
    (root / "a.txt").write_text("one\ntwo\nthree", encoding="utf-8")
    (root / "src" / "b.py").write_text("import one\r\n# One ONE\n\nlast = f('one')\n", encoding="utf-8")
    (root / "src" / "deep" / "c.py").write_text("none\n" * 3, encoding="utf-8")
    (root / "latin.txt").write_bytes("café one\n".encode("latin-1"))
    (root / "blob.bin").write_bytes(b"one\n\0two\n")
    (root / "nothing").touch()
    (root / ".git" / "config").write_text("one = two\n", encoding="utf-8")
    (root / ".env").write_text("one\n", encoding="utf-8")
    (root / "link.txt").symlink_to("a.txt")
    (root / "src" / "up").symlink_to("..")
    (root / "out").symlink_to(outside)
    (root / "out.txt").symlink_to("../outside/secret.txt")
    (root / "absolute.txt").symlink_to(outside / "secret.txt")
    (root / "dangling").symlink_to("nowhere")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    return root


def call(root: pathlib.Path, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool as an agent does: bind, run, render, read."""
    made = {each.name: each for each in files(root)}[name]
    bound = made.bind(arguments)
    value = made.call(bound.arguments)

    assert not bound.repaired
    found: dict[str, Any] = json.loads(render_output(value, tool_name=name, max_chars=100_000))
    return found


def test_four_tools_run_in_threads(tree: pathlib.Path) -> None:
    """They block on the disk, so they are sync, and all are described."""
    made = files(str(tree))

    assert [each.name for each in made] == ["list_dir", "read_text", "count_lines", "search"]
    assert all(each.in_thread and each.description for each in made)
    assert all(node["description"] for each in made for node in each.parameters["properties"].values())


@pytest.mark.parametrize(("name", "said"), [("nowhere", "does not exist"), ("root/a.txt", "is no directory")])
def test_the_root_must_be_a_directory(tmp_path: pathlib.Path, name: str, said: str) -> None:
    """A root that is none is an error at construction."""
    planted(tmp_path)
    with pytest.raises(SpecError, match=f"{name}' {said}; give a directory that exists"):
        files(tmp_path / name)


def test_list_dir(tree: pathlib.Path) -> None:
    """Every entry is there, sorted, with its kind, and its size if it is a file."""
    assert call(tree, "list_dir") == {
        "path": ".",
        "entries": [
            {"name": ".env", "kind": "file", "bytes": 4},
            {"name": ".git", "kind": "dir", "bytes": None},
            {"name": "a.txt", "kind": "file", "bytes": 13},
            {"name": "absolute.txt", "kind": "link", "bytes": None},
            {"name": "blob.bin", "kind": "file", "bytes": 9},
            {"name": "dangling", "kind": "link", "bytes": None},
            {"name": "empty", "kind": "dir", "bytes": None},
            {"name": "latin.txt", "kind": "file", "bytes": 9},
            {"name": "link.txt", "kind": "link", "bytes": None},
            {"name": "loop", "kind": "link", "bytes": None},
            {"name": "nothing", "kind": "file", "bytes": 0},
            {"name": "out", "kind": "link", "bytes": None},
            {"name": "out.txt", "kind": "link", "bytes": None},
            {"name": "pipe", "kind": "other", "bytes": None},
            {"name": "src", "kind": "dir", "bytes": None},
        ],
        "more": 0,
    }
    assert call(tree, "list_dir", path="empty/") == {"path": "empty", "entries": [], "more": 0}
    assert call(tree, "list_dir", path="src/up/./src//deep")["path"] == "src/deep"
    assert call(tree, "list_dir", path="") == call(tree, "list_dir", path=".")


@pytest.mark.slow
def test_list_dir_says_what_it_leaves_out(tmp_path: pathlib.Path) -> None:
    """A long list is cut at its end, and `more` says by how much; the JSON stays whole."""
    for i in range(1100):
        (tmp_path / f"{i:04}{'x' * 200}").touch()
    found = call(tmp_path, "list_dir")

    assert len(found["entries"]) + found["more"] == 1100
    assert found["entries"][0]["name"][:4] == "0000"
    assert 100 < len(found["entries"]) < 1000


def test_a_name_that_is_no_text_is_shown(tmp_path: pathlib.Path) -> None:
    """Names that are no UTF-8 are listed with U+FFFD, and nothing fails."""
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("one\n", encoding="utf-8")

    assert call(tmp_path, "list_dir")["entries"] == [{"name": "\ufffd.txt", "kind": "file", "bytes": 4}]
    assert call(tmp_path, "search", pattern="one")["matches"] == [{"path": "\ufffd.txt", "line": 1, "text": "one"}]


@pytest.mark.parametrize(
    ("arguments", "text", "start_line", "lines", "total_lines"),
    [
        ({"path": "a.txt"}, "one\ntwo\nthree", 1, 3, 3),
        ({"path": "link.txt", "start_line": 2, "max_lines": 1}, "two\n", 2, 1, 3),
        ({"path": "a.txt", "start_line": 3}, "three", 3, 1, 3),
        ({"path": "src/b.py", "max_lines": 1}, "import one\r\n", 1, 1, 4),
        ({"path": "src/up/src/../latin.txt"}, "caf\ufffd one\n", 1, 1, 1),
        ({"path": "nothing"}, "", 1, 0, 0),
    ],
)
def test_read_text(
    tree: pathlib.Path, arguments: dict[str, Any], text: str, start_line: int, lines: int, total_lines: int
) -> None:
    """The lines asked for, their ends kept, what is no UTF-8 replaced, and how many there are in all."""
    found = call(tree, "read_text", **arguments)

    assert (text, start_line, lines, total_lines) == (
        found["text"],
        found["start_line"],
        found["lines"],
        found["total_lines"],
    )


@pytest.mark.slow
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_large_file_is_read_page_by_page(tmp_path: pathlib.Path, end: str) -> None:
    """Going on at `start_line + lines` reads every line once, long ones cut, short ones as they are."""
    lines = [f"{i} " + "é" * (i % 977) for i in range(5000)] + ["y" * 3_000_000, "last"]
    (tmp_path / "big").write_text("\n".join(lines) + end, encoding="utf-8")
    seen: list[str] = []
    start = 1
    while True:
        page = call(tmp_path, "read_text", path="big", start_line=start, max_lines=400)
        seen += page["text"].splitlines()
        start += page["lines"]
        if start > page["total_lines"]:
            break

    assert page["total_lines"] == len(lines)
    assert seen[5000] == "y" * 50_000 + " [... cut: the line has 3000001 bytes in full]"
    assert seen[:5000] + seen[5001:] == lines[:5000] + lines[5001:]


def test_a_line_is_found_wherever_a_chunk_begins(tmp_path: pathlib.Path) -> None:
    """Files are read in chunks of 1 MiB; a line that begins, ends or lies across there is found all the same."""
    chunk = 1 << 20
    for before in (chunk - 2, chunk - 1, chunk, chunk + 1):
        (tmp_path / "big").write_bytes(b"x" * (before - 1) + b"\nsecond\n" + b"z" * chunk + b"\nfourth")

        assert call(tmp_path, "read_text", path="big", start_line=2, max_lines=1)["text"] == "second\n"
        assert call(tmp_path, "read_text", path="big", start_line=4)["text"] == "fourth"


def test_count_lines_is_what_wc_says(tree: pathlib.Path) -> None:
    """Newline bytes and bytes, of any regular file."""
    for path in ("a.txt", "src/b.py", "blob.bin", "nothing", "latin.txt", "link.txt"):
        counted = subprocess.run(
            ["wc", "-lc", path], cwd=tree, capture_output=True, text=True, check=True
        ).stdout.split()
        found = call(tree, "count_lines", path=path)

        assert [int(counted[0]), int(counted[1])] == [found["lines"], found["bytes"]]
        assert found["path"] == path.replace("link", "a")


def test_search(tree: pathlib.Path) -> None:
    """Lines with the text, files before directories, and what was not searched."""
    assert call(tree, "search", pattern="one") == {
        "pattern": "one",
        "path": ".",
        "matches": [
            {"path": ".env", "line": 1, "text": "one"},
            {"path": "a.txt", "line": 1, "text": "one"},
            {"path": "latin.txt", "line": 1, "text": "caf\ufffd one"},
            {"path": "src/b.py", "line": 1, "text": "import one\r"},
            {"path": "src/b.py", "line": 4, "text": "last = f('one')"},
            {"path": "src/deep/c.py", "line": 1, "text": "none"},
            {"path": "src/deep/c.py", "line": 2, "text": "none"},
            {"path": "src/deep/c.py", "line": 3, "text": "none"},
        ],
        "total": 8,
        "files_searched": 6,
        "skipped": {
            "binary": 1,
            "hidden_dirs": 1,
            "links": 7,
            "special": 1,
            "too_large": 0,
            "unreadable": 0,
            "over_limit": 0,
        },
    }


@pytest.mark.peer
@pytest.mark.parametrize(
    ("arguments", "flags"),
    [
        ({"pattern": "one"}, ["-F", "--exclude-dir=.?*"]),
        ({"pattern": "one", "include_hidden": True}, ["-F"]),
        ({"pattern": "one", "ignore_case": True}, ["-F", "-i", "--exclude-dir=.?*"]),
        ({"pattern": "f('one')"}, ["-F", "--exclude-dir=.?*"]),
        ({"pattern": "o.e", "regex": True}, ["-P", "--exclude-dir=.?*"]),
        ({"pattern": "^(one|import)", "regex": True}, ["-P", "--exclude-dir=.?*"]),
        ({"pattern": "ONE$", "regex": True, "ignore_case": True}, ["-P", "-i", "--exclude-dir=.?*"]),
        ({"pattern": "^$", "regex": True}, ["-P", "--exclude-dir=.?*"]),
        ({"pattern": "one", "name_glob": "*.py"}, ["-F", "--include=*.py", "--exclude-dir=.?*"]),
        ({"pattern": "one", "path": "src"}, ["-F", "--exclude-dir=.?*"]),
        ({"pattern": "none", "path": "src/deep/c.py"}, ["-F"]),
    ],
)
def test_search_counts_what_grep_counts(tree: pathlib.Path, arguments: dict[str, Any], flags: list[str]) -> None:
    """`total` and the lines are those of `grep -rnI`."""
    path = arguments.get("path", ".")
    (tree / "pipe").unlink()  # grep would wait for a writer
    ran = subprocess.run(
        ["grep", "-rHnI", "--null", *flags, "--", arguments["pattern"], path],
        cwd=tree,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    lines = [line.decode(errors="replace") for line in ran.stdout.split(b"\n")[:-1]]
    found = call(tree, "search", **arguments)

    assert found["total"] == len(lines) > 0
    assert sorted(f"{each['path']}\0{each['line']}:{each['text']}" for each in found["matches"]) == sorted(
        line.removeprefix("./") for line in lines
    )


def test_search_is_bounded_but_counts_all(tmp_path: pathlib.Path) -> None:
    """Few or long matches are shown; the total counts every matching line."""
    (tmp_path / "many").write_text("hit\n" * 5000 + "hit" + "é" * 10_000 + "\n", encoding="utf-8")
    (tmp_path / "wide").write_text(("hit" + "w" * 500 + "\n") * 5000, encoding="utf-8")
    few = call(tmp_path, "search", pattern="hit", max_matches=2)
    wide = call(tmp_path, "search", pattern="hit", path="wide", max_matches=1000)
    last = call(tmp_path, "search", pattern="hité")

    assert (few["total"], [each["line"] for each in few["matches"]]) == (10_001, [1, 2])
    assert (wide["total"], 100 < len(wide["matches"]) < 1000) == (5000, True)
    assert last["matches"][0]["text"] == "hit" + "é" * 297 + " [... cut: 20003 bytes in full]"


def test_search_ignores_case_of_any_alphabet(tmp_path: pathlib.Path) -> None:
    """Upper and lower case match each other beyond ASCII."""
    (tmp_path / "f").write_text("ÜBER\n", encoding="utf-8")

    assert call(tmp_path, "search", pattern="über", ignore_case=True)["total"] == 1
    assert call(tmp_path, "search", pattern="über", ignore_case=True, regex=True)["total"] == 1
    assert call(tmp_path, "search", pattern="über")["total"] == 0


def test_search_skips_large_files_and_says_so(tmp_path: pathlib.Path) -> None:
    """A file of more than 32 MiB is counted as skipped."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate((32 << 20) + 1)

    assert call(tmp_path, "search", pattern="x")["skipped"]["too_large"] == 1


def test_search_says_where_it_stopped(tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files beyond the limit are counted, and so is what cannot be read."""
    monkeypatch.setattr(search_module, "_MOST_FILES", 2)
    limited = call(tree, "search", pattern="one")
    monkeypatch.setattr(root_module, "_FILE", root_module._DIRECTORY)
    unreadable = call(tree, "search", pattern="one")

    assert (limited["files_searched"], limited["skipped"]["over_limit"], limited["total"]) == (2, 5, 2)
    assert (unreadable["files_searched"], unreadable["skipped"]["unreadable"], unreadable["total"]) == (0, 7, 0)


def test_search_goes_on_where_a_directory_went_away(tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What vanishes while it is searched is counted as unreadable."""
    scan = os.scandir

    def scandir(place: Any) -> Any:
        if isinstance(place, str) and place.endswith("deep"):
            shutil.rmtree(tree / "src" / "deep")
        return scan(place)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(root_module, "_STEPWISE", False)
    found = call(tree, "search", pattern="one", path="src")

    assert (found["files_searched"], found["skipped"]["unreadable"]) == (1, 1)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("/no/such/program", r"regular expressions cannot be matched here; search for a fixed text \(regex=false\)"),
        (shutil.which("true"), "matching the regular expression was interrupted; try again"),
    ],
)
def test_a_regular_expression_without_a_process_is_an_error(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """A process that cannot be started, or dies, is told."""
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(ToolError, match=said):
        call(tree, "search", pattern="one", regex=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": ""}, "the pattern is empty; give a text to look for"),
        ({"pattern": "a\nb"}, "the pattern holds a newline"),
        ({"pattern": "(", "regex": True}, "the pattern is no regular expression: missing ), unterminated subpattern"),
        ({"pattern": "a", "name_glob": "src/*.py"}, "name_glob matches names, not paths"),
        ({"pattern": "a", "path": "gone"}, "'gone': no such file or directory; list_dir shows what there is"),
        ({"pattern": "a", "path": "pipe"}, "'pipe' is a special file"),
    ],
)
def test_a_search_that_cannot_be_made_says_why(tree: pathlib.Path, arguments: dict[str, Any], said: str) -> None:
    """A `ToolError` says what would be right."""
    with pytest.raises(ToolError) as caught:
        call(tree, "search", **arguments)

    assert str(caught.value)[: len(said)] == said


@pytest.mark.slow
def test_a_regular_expression_that_never_ends_is_stopped() -> None:
    """Its process is killed after the time allowed; the host goes on meanwhile."""
    with (
        pytest.raises(ToolError, match=r"took longer than 0.2 s and was stopped; simplify it"),
        open_matcher("(a|aa)+$", regex=True, ignore_case=False, regex_seconds=0.2) as match,
    ):
        match(b"a" * 10_000 + b"!", 1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_text", {"path": "a.txt", "start_line": 0}),
        ("read_text", {"path": "a.txt", "max_lines": 0}),
        ("search", {"pattern": "a", "max_matches": 1001}),
        ("list_dir", {"path": 5}),
        ("count_lines", {}),
    ],
)
def test_arguments_out_of_range_are_refused(tree: pathlib.Path, name: str, arguments: dict[str, Any]) -> None:
    """The schema's bounds hold before a file is touched."""
    with pytest.raises(ArgumentsInvalid):
        call(tree, name, **arguments)


OUTSIDE = "leads outside the root, where nothing can be read"
ABSOLUTE = "is absolute; give a path relative to the root, which is '.'"
GONE = "no such file or directory; list_dir shows what there is"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("..", f"'..' {OUTSIDE}"),
        ("../outside/secret.txt", f"'../outside/secret.txt' {OUTSIDE}"),
        ("../outside/nowhere", f"'../outside/nowhere' {OUTSIDE}"),
        ("../root/a.txt", f"'../root/a.txt' {OUTSIDE}"),
        ("src/../../root-secret", f"'src/../../root-secret' {OUTSIDE}"),
        ("../root-secret", f"'../root-secret' {OUTSIDE}"),
        ("src/up/../outside/secret.txt", f"'src/up/../outside/secret.txt' {OUTSIDE}"),
        ("out/secret.txt", f"'out/secret.txt' {OUTSIDE}"),
        ("out/nowhere", f"'out/nowhere' {OUTSIDE}"),
        ("out.txt", f"'out.txt' {OUTSIDE}"),
        ("absolute.txt", f"'absolute.txt' {OUTSIDE}"),
        ("/etc/passwd", f"'/etc/passwd' {ABSOLUTE}"),
        ("/", f"'/' {ABSOLUTE}"),
        ("dangling", f"'nowhere': {GONE}"),
        ("loop", "'loop' is a link that leads nowhere"),
        ("a.txt/b", "'a.txt/b': a part of the path is no directory"),
        ("gone", f"'gone': {GONE}"),
        ("a\0b", "'a\\x00b' is no usable path: embedded null byte"),
        ("x" * 5000, f"'{'x' * 199}"),
        ("pipe", "'pipe' is a special file (a pipe, a socket or a device), which is never opened"),
        ("src", "'src' is a directory; list_dir shows what is in it"),
        (".", "'.' is a directory; list_dir shows what is in it"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(tree: pathlib.Path, path: str, said: str) -> None:
    """The error names the path relative to the root; whether something exists outside is not told."""
    for name in ("read_text", "count_lines"):
        with pytest.raises(ToolError) as caught:
            call(tree, name, path=path)

        assert str(caught.value)[: len(said)] == said
        assert str(tree) not in render_error(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_text", {"path": "\ud83d"}, "'\\ud83d' is no usable path: it holds half of a surrogate pair"),
        (
            "search",
            {"pattern": "\ud83d"},
            "the pattern holds half of a surrogate pair; give whole characters",
        ),
    ],
)
def test_half_a_character_is_told(tree: pathlib.Path, name: str, arguments: dict[str, Any], said: str) -> None:
    """Who calls a tool's function without binding has an answer too, and no `UnicodeEncodeError`."""
    made = {each.name: each for each in files(tree)}[name]
    with pytest.raises(ToolError) as caught:
        made.call(arguments)

    assert said == str(caught.value)


def test_list_dir_of_a_file_says_what_to_call(tree: pathlib.Path) -> None:
    """The error names the right tool."""
    with pytest.raises(ToolError, match=r"'a.txt' is a file; read_text shows its lines, count_lines its size"):
        call(tree, "list_dir", path="a.txt")
    with pytest.raises(ToolError, match=r"'pipe': a part of the path is no directory"):
        call(tree, "list_dir", path="pipe")


def test_a_binary_file_is_named_as_such(tree: pathlib.Path) -> None:
    """It is not shown, wherever its NUL stands."""
    (tree / "late").write_bytes(b"x\n" * 1_000_000 + b"\0")
    with pytest.raises(ToolError, match=r"'blob.bin' is a binary file of 9 bytes, which is not shown"):
        call(tree, "read_text", path="blob.bin")
    with pytest.raises(ToolError, match="'late' is a binary file of 2000001 bytes"):
        call(tree, "read_text", path="late")


def test_a_line_beyond_the_end_is_told(tree: pathlib.Path) -> None:
    """The error says how many lines there are."""
    with pytest.raises(ToolError, match=r"'a.txt' has 3 lines; there is no line 4"):
        call(tree, "read_text", path="a.txt", start_line=4)


def test_a_socket_is_never_opened(tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Special files of any kind are refused by what they are."""
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(ToolError, match="'socket' is a special file"):
            call(tree, "count_lines", path="socket")


def test_a_root_that_is_a_link_is_its_target(tree: pathlib.Path) -> None:
    """The root is resolved once; links to it work."""
    link = tree.parent / "link-to-root"
    link.symlink_to(tree)

    assert call(link, "count_lines", path="a.txt")["lines"] == 2


def test_a_root_that_went_away_is_told(tree: pathlib.Path) -> None:
    """A root that is gone gives tool errors, without its name."""
    made = files(tree)[0]
    shutil.rmtree(tree)
    with pytest.raises(ToolError, match="no such file or directory") as caught:
        made.call({})

    assert str(tree) not in str(caught.value)


def swapped(tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[], None]) -> None:
    """Let `swap` happen between the check of a path and its opening."""
    resolve = os.path.realpath

    def realpath(path: str) -> str:
        found = resolve(path)
        if found != str(tree):
            swap()
        return found

    monkeypatch.setattr(os.path, "realpath", realpath)


def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what is opened: in both ways the last step follows no link."""

    def swap() -> None:
        (tree / "a.txt").unlink(missing_ok=True)
        (tree / "a.txt").symlink_to("../outside/secret.txt")

    swapped(tree, monkeypatch, swap)
    with pytest.raises(ToolError, match="'a.txt' is a link that leads nowhere"):
        call(tree, "read_text", path="a.txt")


@pytest.mark.parametrize(
    ("make", "said"), [(os.mkfifo, "'a.txt' is a special file"), (os.mkdir, "'a.txt' is a directory")]
)
def test_a_file_swapped_for_something_else_is_refused(
    tree: pathlib.Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[pathlib.Path], None], said: str
) -> None:
    """Opened without waiting, looked at again, refused, and closed."""
    before = open_handles()
    open_ = os.open

    def swapping(path: Any, flags: int, **settings: Any) -> int:
        if pathlib.PurePath(path).name == "a.txt":
            (tree / "a.txt").unlink()
            make(tree / "a.txt")
        return open_(path, flags, **settings)

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(ToolError, match=said):
        call(tree, "read_text", path="a.txt")

    assert before == open_handles()


def test_a_directory_swapped_for_a_link_after_the_check_is_not_followed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stepwise opening refuses a link at every step."""
    tree = planted(tmp_path)
    (tree / "empty" / "secret.txt").touch()

    def swap() -> None:
        if not (tree / "empty").is_symlink():
            shutil.rmtree(tree / "empty")
            (tree / "empty").symlink_to("../outside")

    swapped(tree, monkeypatch, swap)
    with pytest.raises(ToolError, match="'empty/secret.txt': (not a directory|a part of the path is no directory|too)"):
        call(tree, "read_text", path="empty/secret.txt")
    assert SECRET not in str(call(tree, "search", pattern="secret"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    yield planted(tmp_path_factory.mktemp("shared"))


steps = st.sampled_from([
    "..",
    ".",
    "",
    "/",
    "src",
    "deep",
    "up",
    "out",
    "out.txt",
    "absolute.txt",
    "link.txt",
    "a.txt",
    "secret.txt",
    "outside",
    "root",
    "root-secret",
    "loop",
    "dangling",
    "pipe",
    ".git",
    "nothing",
    "blob.bin",
    "//",
    "~",
    "\0",
])


@pytest.mark.slow
@given(st.lists(steps | st.text(max_size=3), max_size=7).map("/".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leads_out(shared: pathlib.Path, path: str) -> None:
    """Any path is answered from inside the root or refused by a `ToolError`; the secret never shows, nor the root."""
    arguments: dict[str, dict[str, Any]] = {
        "list_dir": {"path": path},
        "read_text": {"path": path},
        "count_lines": {"path": path},
        "search": {"path": path, "pattern": "e", "include_hidden": True},
    }
    for name, given_ in arguments.items():
        try:
            found = call(shared, name, **given_)
        except ToolError as error:
            said = render_error(error)
        else:
            said = json.dumps(found)
            real = os.path.realpath(shared / path)

            assert found["path"] == os.path.relpath(real, shared)
            assert real == str(shared) or real.startswith(f"{shared}/")
        assert SECRET not in said
        assert str(shared) not in said
