#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks who includes whom: layers.py [ROOT]. Prints FILE:LINE: REASON for each breach, exit status 1 if there is one.

The rules are those of the layout: a folder of user/ includes only folders before it, model/, report/ and profile/ know
neither kernel nor target, control/ knows base/ only, only kern/ sees the BPF skeletons, the command sees the public headers
and base/, public headers see each other, and the library neither prints nor exits. Inside a folder the same holds of its
folders: there is no third level, and files of the folder itself come after all of them, or where "" stands.

A folder has at most 25 sources.
"""
import pathlib
import re
import sys

ORDER = ["base", "code", "describe", "target", "stack", "kern", "model", "record", "counter", "report", "profile", "analysis", "page", "control",
         "session", "cli"]
INSIDE = {
    "base": ["core", "format", "file"],
    "code": ["format", "store"],
    "describe": ["reader", "runtime", "driver"],
    "target": ["elf", "tracepoint", "process", "probe"],
    "report": ["trace", "chrome", "perfetto", "merge", "latency", "table", "flame", "sql"],
    "profile": ["trace", "trigger", "handle"],
    "session": ["reader", "attach", "collect", "code", "core", "offline", "continuous", "inspect"],
    "cli": ["", "continuous", "agent", "top"],
    "model": ["stream", "stats", "program", "operator", "device", "inference", "core"],
}
FILES_MAX = 25
NEVER = {
    "model": {"target", "kern"},
    "report": {"target", "kern"},
    "profile": {"target", "kern"},
    "analysis": {"target", "kern"},
    "page": {"target", "kern"},
    "control": set(ORDER) - {"base", "control"},
    "cli": set(ORDER) - {"base", "cli"},
}
# Only the record formats cross from the BPF side to user space.
SHARED_BPF = {"bpf/wire.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
FORBIDDEN_CALL = re.compile(r"(?<![\w.>])(exit|abort|printf|vprintf|puts|putchar|perror|warn|warnx|err|errx)\s*\("
                            r"|\bfprintf\s*\(\s*stderr|\bfputs\s*\([^;]*,\s*stderr")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def blank(match):
    """The same number of lines with nothing on them."""
    return re.sub(r"[^\n]", " ", match.group(0))


def folder_of(path):
    """The layer of a path relative to user/."""
    return path.parts[0] if len(path.parts) > 1 else "session"


def place_inside(path):
    """Where a path relative to user/ stands among the folders of its layer, those that are not known last."""
    order = INSIDE.get(folder_of(path), [])
    name = path.parts[1] if len(path.parts) > 2 else ""
    return order.index(name) if name in order else len(order)


def unknown_folder(path):
    """What is wrong with where a path relative to user/ lies; None: nothing."""
    layer = folder_of(path)
    if layer not in ORDER:
        return f"{layer}/ has no place in the order of folders"
    if len(path.parts) > 2 and path.parts[1] not in INSIDE.get(layer, []):
        return f"{path.parent}/ has no place in the order of folders"
    return f"{path.parent}/ is a third level" if len(path.parts) > 3 else None


def user_include(path, name, root):
    """Why a file, path relative to user/, must not include "name"; None when it may."""
    layer = folder_of(path)
    if name in SHARED_BPF:
        return None if layer != "cli" else "the command must not know the records"
    if name.startswith("bpf/"):
        return "only bpf/wire.h is shared with user space"
    if name.endswith(".skel.h"):
        return None if layer == "kern" else "only kern/ sees the skeletons"
    if ".." in name:
        return "includes are written from user/"
    if not (root / "user" / name).is_file():
        return "no such file in user/" if "/" in name else "includes are written \"folder/file.h\""
    included = pathlib.Path(name)
    other = folder_of(included)
    if unknown_folder(included):
        return unknown_folder(included)
    if other in NEVER.get(layer, ()):
        return f"{layer} must not include {other}/"
    if ORDER.index(other) > ORDER.index(layer):
        return f"{layer} comes before {other}/"
    if other == layer and place_inside(included) > place_inside(path):
        return f"{path.parent} comes before {included.parent}/"
    return None


def includes(text):
    """(line number, quoted name or None, angle name or None) of each include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_user(root, path, text):
    inside = path.relative_to(root / "user")
    layer = folder_of(inside)
    if unknown_folder(inside):
        yield 1, f"user/{unknown_folder(inside)}"
        return
    for number, quoted, angle in includes(text):
        reason = None
        if quoted:
            reason = user_include(inside, quoted, root)
        elif angle.startswith("bpf/") and layer != "kern":
            reason = "only kern/ uses libbpf"
        elif angle.startswith("xputrace/") and not (root / "include" / angle).is_file():
            reason = "no such public header"
        if reason:
            yield number, f"{quoted or angle}: {reason}"
    if layer != "cli":
        code = STRING.sub('""', COMMENT.sub(blank, text))
        for number, line in enumerate(code.splitlines(), 1):
            match = FORBIDDEN_CALL.search(line)
            if match:
                yield number, f"{match.group(0).strip()}: the library neither prints nor exits"


def check_public(root, path, text):
    for number, quoted, angle in includes(text):
        if quoted:
            yield number, f"{quoted}: public headers are included as <xputrace/name.h>"
        elif angle.startswith("xputrace/"):
            if path.name == "region.h":
                yield number, f"{angle}: region.h stands alone"
            elif not (root / "include" / angle).is_file():
                yield number, f"{angle}: no such public header"
        elif angle.startswith("bpf/"):
            yield number, f"{angle}: public headers do not show libbpf"


def check_bpf(root, path, text):
    for number, quoted, angle in includes(text):
        if quoted and quoted != "vmlinux.h":
            if not (path.parent / quoted).is_file():
                yield number, f"{quoted}: the kernel side includes only its own folder and vmlinux.h"
        elif angle and not angle.startswith("bpf/"):
            yield number, f"{angle}: the kernel side takes its types from vmlinux.h"


def check_sizes(root):
    """(folder, number of sources) of the folders of user/ that have too many."""
    for folder in sorted(path for path in (root / "user").rglob("*") if path.is_dir()):
        files = len(list(folder.glob("*.[ch]")))
        if files > FILES_MAX:
            yield folder.relative_to(root).as_posix(), f"{files} sources, at most {FILES_MAX}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    breaches = files = 0
    for folder, check in (("user", check_user), ("include/xputrace", check_public), ("bpf", check_bpf)):
        for path in sorted((root / folder).rglob("*.[ch]")):
            files += 1
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, reason in check(root, path, text):
                print(f"{path.relative_to(root)}:{number}: {reason}")
                breaches += 1
    for folder, reason in check_sizes(root):
        print(f"{folder}: {reason}")
        breaches += 1
    if files == 0:
        print(f"{root}: no sources found")
        return 1
    print(f"layers: {files} files, {breaches} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
