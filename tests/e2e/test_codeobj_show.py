# SPDX-License-Identifier: BSD-2-Clause
"""xputrace codeobj show: objects in files, and folders that anybody may have made. No root, no process."""

import hashlib
import json
import os

from harness import XPUTRACE, need, run, scratch

CONTENT = b"__kernel void add(__global int *x) { *x += 1; }\n"
HASH = hashlib.sha256(CONTENT).hexdigest()


def show(path, *options, status=0):
    result = run([need(XPUTRACE, "command"), "codeobj", "show", str(path)] + list(options))
    assert result.status == status, "ended with %d instead of %d: %s" % (result.status, status, result.stderr)
    return result


def objects_of(path):
    return json.loads(show(path, "--json").stdout)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)
    return path


def made_folder(name, loads=1, **members):
    """A folder with one object, as its description in FILES of xputrace-codeobj(1) says, and not by xputrace."""
    folder = os.path.join(scratch(), name)
    os.mkdir(folder)
    write(os.path.join(folder, HASH + ".cl"), CONTENT)
    known = dict({"id": HASH, "kind": "opencl", "size": len(CONTENT), "sha256": HASH, "file": HASH + ".cl",
                  "functions": [{"name": "add", "kernel": True}]}, **members)
    index = {"schema": 1, "objects": [known],
             "loads": [{"object": HASH, "uri": "memory://7#offset=0x10&size=%d" % len(CONTENT), "runtime": "opencl",
                        "function": "clCreateProgramWithSource", "pid": 7, "loaded_ns": 5000000000 + i}
                       for i in range(loads)]}
    write(os.path.join(folder, "index.json"), json.dumps(index).encode())
    return folder


def test_file():
    """Size, hash and place of a file, with what hashlib and the file system say."""
    path = write(os.path.join(scratch(), "a b.bin"), os.urandom(3 << 20))
    index = objects_of(path)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    (known,) = index["objects"]
    assert (known["sha256"], known["size"], known["id"]) == (digest, 3 << 20, digest), known
    (load,) = index["loads"]
    assert load == {"object": digest, "uri": "file://" + path.replace(" ", "%20")}, load
    assert digest[:12] in show(path).stdout


def test_folder():
    """One line for 1,000 loads, and every load in the JSON."""
    folder = made_folder("many", loads=1000)
    lines = show(folder, "--functions").stdout.splitlines()
    assert lines[1].split()[:4] == ["0.000000", "1000", "opencl", "-"], lines[1]
    assert lines[2].split()[-2:] == ["kernel", "add"], lines[2]
    assert lines[-1] == "1 objects, 1000 loads", lines[-1]
    index = objects_of(folder)
    assert len(index["objects"]) == 1 and index["objects"][0]["file"] == HASH + ".cl", index["objects"]
    assert [load["loaded_ns"] for load in index["loads"]] == [5000000000 + i for i in range(1000)]


def test_terminal():
    """Names that would move the cursor."""
    lines = show(made_folder("ugly", machine="\x1b[2J\u202e", error="\x1b]0;x\x07\n")).stdout
    assert "\x1b" not in lines and "\x07" not in lines and "\u202e" not in lines, repr(lines)


def test_hostile_folder():
    """Files that lie elsewhere, are links, or have another size: an entry with an error, and no file."""
    outside = write(os.path.join(scratch(), "outside"), CONTENT)
    linked = made_folder("linked")
    os.unlink(os.path.join(linked, HASH + ".cl"))
    os.symlink(outside, os.path.join(linked, HASH + ".cl"))
    for folder in (linked, made_folder("above", file="../outside"), made_folder("absolute", file=outside),
                   made_folder("size", size=1 << 60), made_folder("hash", sha256="0" * 64)):
        (known,) = objects_of(folder)["objects"]
        assert known["error"] and "file" not in known, known
        assert known["error"][:20] in show(folder).stdout, known


def test_no_index():
    """What is no object and no folder of objects is refused, with a message."""
    empty = os.path.join(scratch(), "empty")
    os.mkdir(empty)
    for path, content in ((empty, None), (empty, b"{}"), (empty, b"\xff"), ("/dev/null", None),
                          (os.path.join(scratch(), "missing"), None)):
        if content is not None:
            write(os.path.join(empty, "index.json"), content)
        result = show(path, status=1)
        assert result.stderr.startswith("xputrace: error: "), result.stderr
