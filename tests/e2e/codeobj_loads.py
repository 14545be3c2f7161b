# SPDX-License-Identifier: BSD-2-Clause
"""Code objects made by hand, the program that gives them to stand-in runtimes, and what was captured of it."""

import hashlib
import json
import os
import random
import signal
import struct
import urllib.parse

from harness import BESIDE, SLOW, WAITING, XPUTRACE, Process, library_path, need, scratch, workload_path

KB, MB = 1 << 10, 1 << 20

LIBRARIES = {
    "hip": "libamdhip64.so.6",
    "hsa": "libhsa-runtime64.so.1",
    "cuda": "libcuda.so.1",
    "cudart": "libcudart.so.12",
    "nrt": "libnrt.so.1",
    "qaic": "libQAic.so",
    "level_zero": "libze_loader.so.1",
    "pjrt": "pjrt_plugin.so",
    "ggml": "libggml-base.so.0",
}

AMDGPU, CUDA = 224, 190  # machines of ELF
WAIT_LIMIT = 30 if SLOW > 1 else 5 if BESIDE else 0.5  # seconds that a call waits until its object has been read


# ---- objects ----

def noise(size, seed):
    """Bytes that repeat after a prime number of them: no two pages near each other are the same."""
    block = random.Random(seed).randbytes(4099)
    return (block * (size // len(block) + 1))[:size]


def words(size, seed, begin=""):
    """Text without a 0 byte."""
    letters = bytes(random.Random(seed).choices(b"abcdefghijklmnopqrstuvwxyz     \n", k=4099))
    return (begin.encode() + letters * (size // len(letters) + 1))[:size]


def elf(size, seed, machine=AMDGPU):
    """A shared object that ends with its section headers; or with names behind those, where it keeps them aligned."""
    names = b"\0.text\0.names\0"
    behind = size % 8 != 0
    headers = (size - 3 * 64 - (len(names) if behind else 0)) // 8 * 8
    first = headers + 3 * 64 if behind else 64
    room = size - first if behind else len(names)
    text = 64 + (0 if behind else room)
    flags, system, version = {AMDGPU: (0x3f, 64, 3), CUDA: (80 << 16 | 80, 51, 7)}[machine]  # gfx90a; sm_80
    header = struct.pack("<4s5B7x", b"\x7fELF", 2, 1, 1, system, version)
    header += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, headers, flags, 64, 0, 0, 64, 3, 2)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0x1000, text, headers - text, 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, first, room, 0, 0, 1, 0)
    names = names.ljust(room, b"\0")
    body = noise(headers - text, seed)
    return header + body + sections + names if behind else header + names + body + sections


def cubin(size, seed):
    return elf(size, seed, CUDA)


def ptx(size, seed):
    return words(size, seed, ".version 8.0\n.target sm_80\n.address_size 64\n// ")


def fatbin(size, seed):
    """One cubin inside."""
    inner = cubin((size - 16 - 64) // 8 * 8, seed)
    rest = size - 16 - 64 - len(inner)
    entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(inner) + rest, 0, 0, 0, 8, 80, 0, 0, 0, 0, 0)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, size - 16) + entry + inner + bytes(rest)


def bundle(size, seed):
    """An empty object for the host, one for a GPU."""
    names = (b"host-x86_64-unknown-linux-gnu-", b"hipv4-amdgcn-amd-amdhsa--gfx90a")
    begin = (24 + 8 + sum(24 + len(name) for name in names) + 63) // 64 * 64
    places = ((begin, 0), (begin, size - begin))
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(names))
    for name, place in zip(names, places):
        head += struct.pack("<QQQ", *place, len(name)) + name
    return head.ljust(begin, b"\0") + elf(size - begin, seed)


def neff(size, seed):
    if size < 1024 + 64:
        return noise(size, seed)
    return struct.pack("<QQQQQ", 2, 1024, size - 1024, 2, 0).ljust(1024, b"\0") + noise(size - 1024, seed)


def spirv(size, seed):
    return struct.pack("<IIIII", 0x07230203, 0x10000, 0, 100, 0) + noise(size - 20, seed)


def mlir(size, seed):
    return words(size, seed, "module @jit_f {\n")


def gguf(size, seed):
    return struct.pack("<4sIQQ", b"GGUF", 3, 0, 0) + noise(size - 24, seed)


# Functions that take bytes: of which runtime, and an object that fits them.
FROM_MEMORY = {
    "hipModuleLoadData": ("hip", elf),
    "hipModuleLoadDataEx": ("hip", bundle),
    "__hipRegisterFatBinary": ("hip", bundle),
    "cuModuleLoadData": ("cuda", cubin),
    "cuModuleLoadDataEx": ("cuda", ptx),
    "cuModuleLoadFatBinary": ("cuda", fatbin),
    "cuLibraryLoadData": ("cuda", fatbin),
    "__cudaRegisterFatBinary": ("cudart", fatbin),
    "hsa_code_object_reader_create_from_memory": ("hsa", elf),
    "nrt_load": ("nrt", neff),
    "nrt_load_collectives": ("nrt", neff),
    "qaicOpenQpc": ("qaic", noise),
    "zeModuleCreate": ("level_zero", spirv),
    "PJRT_Client_Compile": ("pjrt", mlir),
    "PJRT_Executable_DeserializeAndLoad": ("pjrt", noise),
}

# The same for those that take a path, or an open file.
FROM_FILES = {
    "hipModuleLoad": ("hip", elf),
    "cuModuleLoad": ("cuda", cubin),
    "cuLibraryLoadFromFile": ("cuda", fatbin),
    "hsa_code_object_reader_create_from_file": ("hsa", elf),
    "qaicOpenQpcFile": ("qaic", noise),
    "gguf_init_from_file": ("ggml", gguf),
}

KINDS = {elf: "hsaco", cubin: "cubin", ptx: "ptx", fatbin: "fatbin", bundle: "bundle", spirv: "spirv", gguf: "gguf"}


class Object:
    """One that is given, in a file."""

    def __init__(self, content, name=None, folder=None):
        self.size = len(content)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.path = os.path.join(folder or scratch(passing=True), name or self.sha256[:16])
        with open(self.path, "wb") as file:
            file.write(content)


def make(form, size, seed=1, **where):
    content = form(size, seed)
    assert len(content) == size, "%s makes %d bytes instead of %d" % (form.__name__, len(content), size)
    return Object(content, **where)


# ---- the program ----

def coded(path):
    return urllib.parse.quote(os.fsencode(path), safe="/")


class Loads(Process):
    """code_loads with stand-ins; in a session of its own: what runs in a terminal's foreground is never stopped."""

    def __init__(self, *runtimes, options=(), prefix=(), program=None, **settings):
        names = [LIBRARIES[runtime] for runtime in runtimes]
        for name in names:
            library_path(name)
        super().__init__([*prefix, program or workload_path("code_loads"), *options, *names], start_new_session=True, **settings)
        self.inside_pid = json.loads(self.wait_line("stdout", '"ready"'))["pid"]
        self._commands = self._children = 0
        self.continued = 0

    def begin(self, function, *objects, **options):
        """Tells it to load objects, or paths; does not wait."""
        paths = [coded(one.path if isinstance(one, Object) else one) for one in objects]
        self._commands += 1
        self.send(" ".join([function, ",".join(paths)] + ["%s=%s" % option for option in options.items()]) + "\n")

    def finish(self):
        """The loads of the command that was begun, when it has ended."""
        self.wait_line("stdout", '"done"', self._commands)
        commands = self.stdout.split('{"done"')
        self.continued = json.loads('{"done"' + commands[self._commands].partition("\n")[0])["continued"]
        lines = commands[self._commands - 1].splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"function"')]

    def load(self, function, *objects, **options):
        self.begin(function, *objects, **options)
        return self.finish()

    def fork(self):
        """From now on a child makes the loads; its PID."""
        self._children += 1
        self.send("fork\n")
        return json.loads(self.wait_line("stdout", '"child"', self._children))["child"]

    def leave(self):
        """The child ends; the parent goes on."""
        self.send("quit\n")
        self.wait_line("stdout", '"left"', self._children)

    def quit(self):
        self.send("quit\n")
        status = self.wait()
        assert status == 0, "code_loads ended with %d: %s" % (status, self.stderr)


# ---- the capture ----

class Captured:
    """index.json, read with Python's own parser, and the files that lie beside it."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "index.json"), encoding="utf-8", errors="strict") as file:
            self.index = json.load(file)
        assert self.index["schema"] == 1, self.index
        self.objects = {one["id"]: one for one in self.index["objects"]}
        assert len(self.objects) == len(self.index["objects"]), "two objects have the same id"

    def loads(self, function=None, pid=None):
        """Those that were seen, not found."""
        return [load for load in self.index["loads"] if "function" in load and function in (None, load["function"])
                and pid in (None, load["pid"])]

    def object_of(self, load):
        return self.objects[load["object"]]

    def path_of(self, load):
        """The file with the bytes; None: they were not kept."""
        name = self.object_of(load).get("file")
        if name is None:
            return None
        assert name == os.path.basename(name), "a file that is not in the folder: " + name
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(set(os.listdir(self.folder)) - {"index.json"})

    def check(self):
        """What must be true of every folder: files are what their names and the index say, and private."""
        named = {one["file"] for one in self.objects.values() if "file" in one}
        assert set(self.files()) == named, "files %s, index %s" % (self.files(), sorted(named))
        for one in self.objects.values():
            if "file" not in one:
                continue
            path = os.path.join(self.folder, one["file"])
            about = os.lstat(path)
            assert about.st_mode == 0o100600, "%s has mode %o" % (path, about.st_mode)
            assert about.st_size == one["size"], one
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
                    hashlib.sha256(file.read()).hexdigest()
            assert digest == one["sha256"] == one["id"] == one["file"].partition(".")[0], one


class Capture(Process):
    """xputrace codeobj; waits until it has attached."""

    def __init__(self, *arguments, mode="all", output=None, wait=True, prefix=(), **settings):
        self.output = output or os.path.join(scratch(passing=True), "objects")
        super().__init__([*prefix, need(XPUTRACE, "collector"), "codeobj", "--mode", mode, "-o", self.output,
                          *WAITING, *(["--code-wait-limit", "%ds" % WAIT_LIMIT] if WAITING else []),
                          *[str(word) for word in arguments]], **settings)
        if wait:
            self.wait_line("stderr", "attached")

    def finish(self, status=0):
        result = self.wait()
        assert result == status, "xputrace codeobj ended with %d instead of %d:\n%s%s" % (
            result, status, self.stdout, self.stderr)
        return Captured(self.output)

    def stop(self, status=0):
        self.signal(signal.SIGINT)
        captured = self.finish(status)
        captured.check()
        return captured


def fits(load, made):
    """Is this the load that was made? By thread, function and time."""
    return (load.get("tid"), load["function"]) == (made["tid"], made["function"]) and \
        made["begin_ns"] <= load.get("loaded_ns", 0) <= made["end_ns"]


def find(captured, made):
    """The captured load of one that was made."""
    found = [load for load in captured.loads() if fits(load, made)]
    assert len(found) == 1, "%d loads were captured of %s:\n%s" % (len(found), made, captured.loads(made["function"]))
    return found[0]


def check_whole(captured, made, given, kept=True):
    """The bytes that were captured of a load are those that were given."""
    load = find(captured, made)
    one = captured.object_of(load)
    assert one.get("sha256") == given.sha256, "other bytes: %s as %s; given %d bytes %s" % (
        load, one, given.size, given.sha256)
    assert one["size"] == given.size and not load.get("missing"), (load, one)
    assert (captured.path_of(load) is not None) == kept, (load, one)
    if made["status"] == 0:
        assert "handle" in load and int(load["handle"], 16) == int(made["handle"], 16), (
            load, made, len(captured.loads()), {name: value for name, value in captured.index.items() if name not in ("loads", "objects")})
    assert bool(load.get("status", 0)) == bool(made["status"]), (load, made)
    return load


def states(pid):
    """Of all threads, a letter each, as in ps."""
    letters = ""
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/stat" % (pid, tid), encoding="utf-8", errors="replace") as file:
                letters += file.read().rpartition(") ")[2][:1]
        except OSError:  # it has just ended
            pass
    return letters
