"""What the planner writes: the report of an audit with the commands that check it, and the answers to single questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ._audit import LEFT_OUT, MARKS, Survey
from ._rules import Lookup, Narrowing
from ._tools import Count, Found, Listing, Page, read

__all__ = ("answer_text", "progress_text", "report_text")

_LARGEST = 5
_SHOWN = 20
"""Of a list that may be long, the entries that are shown."""


def progress_text(survey: Survey, calls: int) -> str:
    """One line beside a turn's calls."""
    if not survey.folders:
        return f"Auditing {survey.root}: {_count(calls, 'call')} to begin with.\n"
    done = f"{len(survey.counted)} of {_count(survey.files, 'known file')} counted"
    return f"{done}, {_count(survey.folders, 'folder')} listed; {_count(calls, 'more call')}.\n"


def report_text(survey: Survey, remarks: Iterable[str]) -> str:
    """The report, whole or partial; it says which."""
    blocks = [
        [_headline(survey), *_scope(survey)],
        _largest(survey),
        _marks(survey),
        _listed("Could not be found out:", [f"{what}: {_line(why)}" for what, why in sorted(survey.given_up.items())]),
        _listed("Said meanwhile, and no rule of mine matches it:", [_line(remark) for remark in remarks]),
        _checks(survey),
    ]
    return "\n\n".join(["\n".join(block) for block in blocks if block]) + "\n"


def _headline(survey: Survey) -> str:
    counted, files = len(survey.counted), survey.files
    if survey.whole:
        said = f"Audit of {survey.root}: {_count(counted, 'file')} in {_count(survey.folders, 'folder')}"
    else:
        said = f"Partial audit of {survey.root}: {counted} of {_count(files, 'known file')} counted"
        said += f", {_count(survey.folders, 'folder')} listed"
        if survey.unlisted:
            said += f" and {_count(survey.unlisted, 'folder')} not yet looked into"
    return f"{said}; {_count(survey.lines, 'line')}, {_count(survey.bytes, 'byte')}."


def _scope(survey: Survey) -> list[str]:
    lines = ["Passed over: hidden files and folders, __pycache__, node_modules, links."]
    if survey.narrowing.skipped:
        lines.append(f"Skipped as asked: {', '.join(survey.narrowing.skipped)}.")
    if survey.narrowing.only:
        lines.append(f"Only files named as asked: {', '.join(survey.narrowing.only)}.")
    return lines


def _largest(survey: Survey) -> list[str]:
    ranked = sorted(survey.counted.items(), key=lambda item: (-item[1].lines, -item[1].bytes, item[0]))
    rows = [f"  {count.lines:>8,} lines {count.bytes:>12,} bytes  {path}" for path, count in ranked[:_LARGEST]]
    return ["Largest files:", *rows] if rows else []


def _marks(survey: Survey) -> list[str]:
    words = " or ".join(MARKS)
    if not survey.marks:
        return [f"Lines with {words}: 0"] if survey.searched else [f"Lines with {words}: not known."]
    head = f"Lines with {words}: {len(survey.marks)}" + ("" if survey.searched else " known, there may be more")
    matches = sorted(survey.marks.values())
    return _listed(head, [f"{match.path}:{match.line}: {_line(match.text)}" for match in matches])


def _checks(survey: Survey) -> list[str]:
    """The commands that count the same without this program."""
    if not survey.counted:
        return []
    find = _find_command(survey.root, survey.narrowing)
    lines = ["To check it, in the folder that the tools see:" if survey.whole else "To check the whole, not this part:"]
    lines += [
        f"  {find} -print0 | xargs -0 cat | wc -lc",
        f"  {find} -print0 | LC_ALL=C xargs -0 grep -IhE '{'|'.join(MARKS)}' | wc -l",
    ]
    return lines


def _find_command(root: str, narrowing: Narrowing) -> str:
    start = f"./{root}" if root.startswith("-") else root
    pruned = [f"-name {shlex.quote(name)}" for name in LEFT_OUT]
    pruned += [_test(glob, start) for glob in narrowing.skipped]
    wanted = ["-type f"]
    if narrowing.only:
        wanted.append(_either([_test(glob, start) for glob in narrowing.only]))
    return f"find {shlex.quote(start)} -mindepth 1 {_either(pruned)} -prune -o {' '.join(wanted)}"


def _test(glob: str, start: str) -> str:
    if "/" not in glob:
        return f"-name {shlex.quote(glob)}"
    return f"-path {shlex.quote('./' + glob if start == '.' else glob)}"


def _either(tests: list[str]) -> str:
    return rf"\( {' -o '.join(tests)} \)"


def answer_text(task: Lookup, result: str) -> str:
    """The answer to a question that one call answers; the bare result if it is not of the expected form."""
    path = shlex.quote(task.path)
    match task.tool:
        case "count_lines" if counted := read(result, Count):
            said = f"{task.path}: {_count(counted.lines, 'line')}, {_count(counted.bytes, 'byte')}."
            return f"{said}\n\nTo check it: wc -lc {path}\n"
        case "read_text" if page := read(result, Page):
            if page.lines >= page.total_lines:
                return page.text or f"{task.path} is empty.\n"
            return f"{page.text}\n(the first {page.lines} of {_count(page.total_lines, 'line')} of {task.path})\n"
        case "list_dir" if listing := read(result, Listing):
            rows = [_entry(entry.name, entry.kind, entry.bytes) for entry in listing.entries]
            head = f"{task.path}: {_count(len(rows) + listing.more, 'entr', 'y', 'ies')}"
            return "\n".join([head, *rows, *([f"  ... and {listing.more} more"] if listing.more else [])]) + "\n"
        case "search" if found := read(result, Found):
            rows = [f"  {match.path}:{match.line}: {_line(match.text)}" for match in found.matches]
            more = found.total - len(rows)
            head = f"{_count(found.total, 'line')} with {task.pattern!r} in {_count(found.files_searched, 'file')}"
            check = f"To check it: grep -rnIF --exclude-dir='.?*' -- {shlex.quote(task.pattern)} {path} | wc -l"
            return "\n".join([head, *rows, *([f"  ... and {more} more"] if more else []), "", check]) + "\n"
        case _:
            return result + "\n"


def _entry(name: str, kind: str, size: int | None) -> str:
    return f"  {'' if size is None else f'{size:,}':>14}  {name}{'/' if kind == 'dir' else ''}"


def _listed(head: str, rows: list[str]) -> list[str]:
    if not rows:
        return []
    more = len(rows) - _SHOWN
    return [head, *[f"  {row}" for row in rows[:_SHOWN]], *([f"  ... and {more} more"] if more > 0 else [])]


def _line(text: str, max_chars: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 3] + "..."


def _count(number: int, thing: str, one: str = "", many: str = "s") -> str:
    return f"{number:,} {thing}{one if number == 1 else many}"
