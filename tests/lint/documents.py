#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the documents: documents.py [ROOT]. Prints FILE:LINE: REASON for each fault, exit status 1 if there is one.

Relative links in *.md lead to a file and, with #, to a heading in it. README.md has at most 160 lines, of 120 characters
outside of tables. docs/architecture.md names every folder of the sources, as `user/base/`, and no other one. Messages that
docs/troubleshooting.md quotes, lines with "xputrace: " or "xputrace COMMAND: ", begin as a string in user/ has it.
"""
import pathlib
import re
import sys

LINES_MAX = 160
COLUMNS_MAX = 120
MAP = "docs/architecture.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:\.?\w+/)+)`")
MESSAGES = "docs/troubleshooting.md"
QUOTED = re.compile(r"^    (xputrace(?: \w+)?: (?:error: |warning: )?)(.*)")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*"((?:[^"\\\n]|\\.)*)")*')
PART = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CONVERSION = re.compile(r"%[-+ #0]*[\d.*]*(?:hh?|ll?|z)?[a-zA-Z]")
FIXED_MIN = 12  # characters beside the conversions: "%s: %s" is like everything
TOP = ("bpf", "docs", "include", "tests", "user", "vmlinux")


def documents(root):
    """All but those in build/."""
    return sorted(root.glob("*.md")) + [path for top in TOP for path in sorted((root / top).rglob("*.md"))]


def anchors(path):
    """Of all headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(root):
    for path in documents(root):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for link in LINK.findall(line):
                if ":" in link:
                    continue
                file, _, anchor = link.partition("#")
                target = path.parent / file if file else path
                if not target.exists():
                    yield path, number, f"{link}: no such file"
                elif anchor and anchor not in anchors(target):
                    yield path, number, f"{link}: no such heading"


def check_length(root):
    path = root / "README.md"
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > LINES_MAX:
        yield path, len(lines), f"more than {LINES_MAX} lines: what is longer belongs into docs/"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX and not line.startswith("|"):
            yield path, number, f"more than {COLUMNS_MAX} characters"


def folders(root):
    """Those that hold sources: all of user/, and two levels of the others."""
    for top in TOP:
        below = (root / top).rglob("*") if top == "user" else (root / top).glob("*")
        for path in [root / top] + sorted(below):
            name = path.relative_to(root).as_posix() + "/"
            if path.is_dir() and path.name != "__pycache__" and any(one.is_file() for one in path.rglob("*")):
                yield name


def check_map(root):
    path = root / MAP
    text = path.read_text(encoding="utf-8")
    named = set(NAMED.findall(text))
    for name in folders(root):
        if name not in named:
            yield path, 1, f"`{name}` is not in it"
    for number, line in enumerate(text.splitlines(), 1):
        for name in NAMED.findall(line):
            if name.split("/")[0] in TOP and not (root / name).is_dir():
                yield path, number, f"{name}: no such folder"


def patterns(root):
    """Of the strings in the sources that may be messages: what they print."""
    for path in sorted((root / "user").rglob("*.c")):
        for match in STRING.finditer(path.read_text(encoding="utf-8")):
            text = "".join(PART.findall(match.group(0))).replace("\\n", "").replace('\\"', '"')
            fixed = CONVERSION.split(text.replace("%%", "%"))
            if sum(map(len, fixed)) >= FIXED_MIN:
                yield re.compile(".*?".join(map(re.escape, fixed)))


def check_messages(root):
    path = root / MESSAGES
    known = list(patterns(root))
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        quoted = QUOTED.match(line)
        if quoted and not any(one.match(quoted.group(2)) or one.match(line.strip()) for one in known):
            yield path, number, f"no such message: {quoted.group(2)}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    faults = 0
    for check in (check_links, check_length, check_map, check_messages):
        for path, number, reason in check(root):
            print(f"{path.relative_to(root)}:{number}: {reason}")
            faults += 1
    print(f"documents: {len(documents(root))} files, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
