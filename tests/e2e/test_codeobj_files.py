# SPDX-License-Identifier: BSD-2-Clause
"""Code objects that are given as files, and the folder that captured ones are written into."""

import os
import shutil
import signal

from codeobj_loads import FROM_FILES, KB, MB, Capture, Captured, Loads, check_whole, elf, find, make, neff, noise
from harness import NOBODY, Skip, cases, run, scratch
from test_endings import small_file_system


def capture_paths(program, *paths, function="hipModuleLoad", **options):
    """One load of each path. What was captured, and the loads that were made."""
    capture = Capture("-p", program.pid, **options)
    lines = [line for path in paths for line in program.load(function, path)]
    captured = capture.stop()
    program.quit()
    return captured, lines


# ---- files that are loaded ----

@cases(*sorted(FROM_FILES))
def test_functions(function):
    """Each function that takes a file, small and large ones."""
    runtime, form = FROM_FILES[function]
    given = [make(form, size, seed) for seed, size in enumerate((KB, 64 * KB + 1, 20 * MB))]
    captured, lines = capture_paths(Loads(runtime), *given, function=function)
    for line, one in zip(lines, given):
        load = check_whole(captured, line, one)
        # A descriptor may be closed directly after the call: its file is opened while the process stands still.
        assert bool(load.get("waited_ns")) == (function == "hsa_code_object_reader_create_from_file"), load


def test_relative_path():
    """The path is relative to the process's working directory, which is not ours."""
    folder = scratch()
    given = make(elf, 64 * KB, name="kernels.hsaco", folder=folder)
    os.mkdir(os.path.join(folder, "below"))
    paths = ("kernels.hsaco", "./below/../kernels.hsaco")
    captured, lines = capture_paths(Loads("hip", cwd=folder), *paths)
    for line in lines:
        load = check_whole(captured, line, given)
        assert load["uri"].startswith("file:///") and load["uri"].endswith("/kernels.hsaco"), load["uri"]


def in_namespace(script, *arguments):
    if run(["unshare", "-m", "true"]).status != 0:
        raise Skip("no new mount namespace can be made here")
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", *arguments]


@cases("hidden", "other file at the path")
def test_mount_namespace(what):
    """The file lies on a file system that only the process has mounted; at its path we have none, or another one."""
    folder = scratch()
    given = make(elf, 64 * KB, 1)
    path = os.path.join(folder, "kernels.hsaco")
    if what != "hidden":
        make(elf, 64 * KB, 2, name="kernels.hsaco", folder=folder)
    script = "mount -t tmpfs none \"$1\"; cp \"$2\" \"$1/kernels.hsaco\"; shift 2; exec \"$@\""
    captured, lines = capture_paths(Loads("hip", prefix=in_namespace(script, folder, given.path)), path)
    assert os.path.exists(path) == (what != "hidden")
    check_whole(captured, lines[0], given)


@cases("a new\nline.hsaco", "slash\\back", "\"quoted\", {1}", "per%cent%0a", "caf\u00e9", b"not\xffutf8", "../dots",
       "x" * 250)
def test_names(name):
    """Names of files that would mislead a careless writer."""
    folder = scratch()
    given = make(elf, 4 * KB, folder=folder)
    inner = os.path.join(folder, "inner")
    os.mkdir(inner)
    path = os.path.join(inner, os.fsdecode(name) if isinstance(name, bytes) else name)
    shutil.copy(given.path, path)
    captured, lines = capture_paths(Loads("hip"), path)
    load = check_whole(captured, lines[0], given)
    assert "\n" not in load["uri"] and load["uri"].isascii(), load["uri"]
    assert sorted(os.listdir(folder)) == sorted({os.path.basename(given.path), "inner"} |
                                                ({"dots"} if name == "../dots" else set()))


@cases("missing", "folder", "fifo", "device", "empty")
def test_no_object(what):
    """What stands at the path is no file with an object: an entry with an error, nobody waits."""
    folder = scratch()
    path = os.path.join(folder, what)
    if what == "folder":
        os.mkdir(path)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "device":
        path = "/dev/zero"
    elif what == "empty":
        make(noise, 0, folder=folder, name=what)
    captured, lines = capture_paths(Loads("qaic"), path, function="qaicOpenQpcFile")
    load = find(captured, lines[0])
    one = captured.object_of(load)
    assert load.get("error") or one.get("error") or (what == "empty" and not one.get("size")), (load, one)
    assert not captured.files() or what == "empty", captured.files()


def test_link_stays_in_root():
    """A link in the process's own root leads to what is there, not to ours."""
    folder = scratch()
    inside, outside = make(elf, 4 * KB, 1), make(elf, 4 * KB, 2, name="kernels.hsaco", folder=folder)
    script = ("mount -t tmpfs none \"$1\"; cd \"$1\"; mkdir -p proc opt/lib \".${3%/*}\"; mount -t proc proc proc;"
              "for each in /lib /lib64 /usr; do mkdir -p \".$each\"; mount --bind \"$each\" \".$each\"; done;"
              "cp \"$4\" opt; cp \"${4%/*}\"/lib/* opt/lib; cp \"$2\" \".$3\"; ln -s \"$3\" link;"
              "shift 4; exec chroot . /opt/code_loads \"$@\"")
    prefix = in_namespace(script, scratch(), inside.path, outside.path)
    captured, lines = capture_paths(Loads("hip", prefix=prefix), "/link", outside.path)
    for line in lines:
        check_whole(captured, line, inside)


# ---- the folder ----

def test_owner():
    """Files belong to the user who called sudo, and nobody else can read them."""
    environment = dict(os.environ, SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY))
    given = make(elf, 64 * KB)
    captured, lines = capture_paths(Loads("hip"), given, env=environment)
    check_whole(captured, lines[0], given)
    for name in ["", "index.json", *captured.files()]:
        about = os.lstat(os.path.join(captured.folder, name))
        assert (about.st_uid, about.st_gid) == (NOBODY, NOBODY) and not about.st_mode & 0o77, (name, about)


def test_again():
    """The same folder again: what is there is not written again, the index is the new one."""
    first, second = make(elf, 64 * KB, 1), make(elf, 64 * KB, 2)
    captured, _ = capture_paths(Loads("hip"), first)
    before = os.stat(os.path.join(captured.folder, captured.files()[0]))
    program = Loads("hip")
    capture = Capture("-p", program.pid, output=captured.folder)
    lines = program.load("hipModuleLoad", first) + program.load("hipModuleLoad", second)
    capture.stop()
    program.quit()
    captured = Captured(captured.folder)
    for line, one in zip(lines, (first, second)):
        check_whole(captured, line, one)
    after = os.stat(os.path.join(captured.folder, captured.object_of(find(captured, lines[0]))["file"]))
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it was written twice"


@cases("link", "link to nothing", "folder", "other size")
def test_name_taken(what):
    """Something else has an object's name in the folder: nothing outside is written, bytes are right or not kept."""
    given = make(elf, 64 * KB)
    folder, elsewhere = scratch(), os.path.join(scratch(), "elsewhere")
    path = os.path.join(folder, given.sha256 + ".hsaco")
    if what == "folder":
        os.mkdir(path)
    elif what == "other size":
        with open(path, "w", encoding="ascii") as file:
            file.write("other")
    else:
        os.symlink(elsewhere, path)
    if what == "link":
        with open(elsewhere, "w", encoding="ascii") as file:
            file.write("mine")
    program = Loads("hip")
    capture = Capture("-p", program.pid, output=folder)
    line, = program.load("hipModuleLoad", given)
    capture.signal(signal.SIGINT)
    capture.wait()
    program.quit()
    captured = Captured(folder)
    load = find(captured, line)
    one = captured.object_of(load)
    if what == "link to nothing":
        assert not os.path.lexists(elsewhere), "a file was made through the link"
    elif what == "link":
        with open(elsewhere, encoding="ascii") as file:
            assert file.read() == "mine"
    if "file" in one:
        captured_path = captured.path_of(load)
        assert os.path.isfile(captured_path) and not os.path.islink(captured_path), one
        with open(captured_path, "rb") as file, open(given.path, "rb") as mine:
            assert file.read() == mine.read()
    else:
        assert one.get("error") or load.get("error"), (one, load)


def test_folder_of_others():
    """Another user's link, a folder that everybody may write into and another user's where everybody may make some are
    refused; another user's own is used elsewhere."""
    program = Loads("hip")
    folder = scratch()
    os.chmod(folder, 0o1777)
    link, everybody, theirs = (os.path.join(folder, name) for name in ("link", "everybody", "theirs"))
    other = os.path.join(scratch(), "other")
    target = scratch()
    os.symlink(target, link)
    os.lchown(link, NOBODY, NOBODY)
    os.mkdir(everybody)
    os.chmod(everybody, 0o777)
    os.mkdir(theirs, 0o755)
    os.chown(theirs, NOBODY, NOBODY)
    for path, word in ((link, "link"), (everybody, everybody), (theirs, "another user")):
        capture = Capture("-p", program.pid, output=path, wait=False)
        assert capture.wait() == 1 and word in capture.stderr, capture.stderr
        assert not os.listdir(everybody) and not os.listdir(target) and not os.listdir(theirs)
    os.mkdir(other, 0o755)
    os.chown(other, NOBODY, NOBODY)
    given = make(elf, 4 * KB)
    captured, lines = capture_paths(program, given, output=other)
    check_whole(captured, lines[0], given)


def test_full_disk():
    """No room for an object: said so, no half file, smaller ones are there, and the process is not harmed."""
    small, large = make(neff, 64 * KB), make(neff, 8 * MB)
    with small_file_system("2m") as folder:
        program = Loads("nrt")
        capture = Capture("-p", program.pid, output=os.path.join(folder, "objects"))
        lines = program.load("nrt_load", large) + program.load("nrt_load", small)
        capture.signal(signal.SIGINT)
        status = capture.wait()
        assert status == 1 and "no space left" in capture.stderr.lower(), (status, capture.stderr)
        captured = Captured(capture.output)
        captured.check()
        check_whole(captured, lines[1], small)
        one = captured.object_of(find(captured, lines[0]))
        assert "file" not in one and one.get("sha256", large.sha256) == large.sha256, one
        assert program.load("nrt_load", small)[0]["status"] == 0
        program.quit()
