# SPDX-License-Identifier: BSD-2-Clause
"""What the machines boot: a root file system for all of an architecture, made of this machine's own programs and libraries,
or of Debian's packages for another one, and of the build tree; and for each kernel its drivers and a small initial file
system that finds the root."""

import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import module
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INSIDE = "xputrace"  # the build tree in the root file system

# What the tests and the start script call; all of it is copied with the libraries it needs.
PROGRAMS = """sh apparmor_parser bash bpftool busybox cat chmod chroot cp dmesg env false grep head kill ln ls lsmod mkdir modprobe mount
    mv nm ps readelf rm rmdir rmmod setarch setpriv setsid sleep stat strace tail tee tmux touch true umount uname unshare wc""".split()
OPTIONAL = {"apparmor_parser", "strace", "tmux"}
TERMINAL = ("/usr/lib/locale/C.utf8", "/lib/terminfo")  # what tmux needs
# Where they are for another architecture.
PACKAGES = """bash binutils bpftool busybox-static coreutils dash grep kmod mount procps python3-minimal
    libpython3-stdlib strace util-linux""".split()
UNIT_PACKAGES = "g++ libcriterion3 sed".split()  # the same for unit tests: 200 MB
NEEDED = "xputrace libxputrace.so workload bench/loop test-code-read".split()  # below the build folder
UNITS = ("test-unit", "standin")  # the same of the unit tests, which differ between architectures only
WITH_LIBRARIES = ("libxputrace.so", "workload/operators/main")  # that need more than the C library
TREE = "python tests/e2e tests/vm/guest tests/vm/driver tests/workload/onnx tests/workload/python tests/workload/region include user/runtimes user/drivers user/cli/completion user/cli/man user/packaging".split()
FILES = ["docs/questions.md", "tests/bench/loop.json", "tests/workload/regions.py", "user/report/SCHEMA.md"]
# Of the workloads: what needs libraries that would make the image ten times as large.
NOT_COPIED = ("opencl", "opencl_loads", "onnx")
PYTHON_LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "site-packages",
                   "dist-packages", "config-*", "pydoc_data", "distutils")

# To find the root file system, and to report.
# crc32c: ext4 asks for it by another name than its file has.
BOOT_MODULES = "virtio_pci virtio_blk virtio_console crc32c_generic ext4 fuse overlay".split()
# Where a kernel keeps the drivers that can be described; below kernel/.
DRIVER_FOLDERS = ("drivers/accel", "drivers/misc/habanalabs", "drivers/gpu/drm/scheduler", "drivers/gpu/drm/amd",
                  "drivers/gpu/drm/i915", "drivers/gpu/drm/xe", "drivers/gpu/drm/virtio", "drivers/gpu/drm/vgem",
                  "drivers/gpu/drm/nouveau")


class Missing(Exception):
    """Something that the image is made of is not on this machine."""


# ---- programs and libraries ----

def needed_by(path):
    """Names of the shared libraries that a file of any architecture loads by itself."""
    listed = subprocess.run(["readelf", "-dW", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listed.stdout)


def libraries_of_arm64(path):
    """The same as libraries_of() of a file for AArch64: those that the cross compiler links."""
    found, waiting = {}, [path]
    while waiting:
        for name in needed_by(waiting.pop()):
            places = (os.path.join(place, name) for place in ("/usr/lib/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib"))
            library = next(filter(os.path.exists, places), None)
            if library and name not in found:
                found[name] = library
                waiting.append(library)
    return list(found.values())


def libraries_of(path):
    """The shared libraries that a file loads, the dynamic loader among them."""
    listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True)
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed.stdout, re.M)


class Tree:
    """A folder that becomes a file system; of: another one that it begins with."""

    libraries_of = staticmethod(libraries_of)

    def __init__(self, folder, of=None):
        self.folder = folder
        self._with_libraries = set()
        shutil.rmtree(folder, ignore_errors=True)
        if of:
            shutil.copytree(of, folder, symlinks=True)
        for each in ("usr/bin", "usr/sbin", "usr/lib/modules", "usr/lib64", "etc", "proc", "sys", "dev", "run", "tmp",
                     "root", "mnt", "var"):
            os.makedirs(self.path(each), exist_ok=True)
        for each in ("bin", "sbin", "lib", "lib64"):
            if not os.path.lexists(self.path(each)):
                os.symlink("usr/" + each, self.path(each))

    def path(self, inside):
        return os.path.join(self.folder, inside.lstrip("/"))

    def add(self, source, inside=None):
        """Copies a file, at the same path unless given otherwise, and the libraries that it needs."""
        target = self.path(inside or source)
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)
        self.add_libraries(source)

    def add_libraries(self, source, without=None):
        """without: a folder whose own libraries are left out."""
        for library in self.libraries_of(source):
            if library not in self._with_libraries and not (without and library.startswith(without)):
                self._with_libraries.add(library)
                self.add(library)

    def add_program(self, name):
        path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        if path:
            self.add(os.path.realpath(path), "usr/bin/" + name)
        elif name not in OPTIONAL:
            raise Missing("the program %s is not installed" % name)

    def add_folder(self, source, inside, ignore=()):
        # a package may put one file at two places by a symbolic link: what it leads to is copied
        shutil.copytree(source, self.path(inside), ignore=shutil.ignore_patterns(*ignore), dirs_exist_ok=True,
                        ignore_dangling_symlinks=True)

    def write(self, inside, text):
        path = self.path(inside)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class Arm64Tree(Tree):
    """One whose programs are those of packages, and whose libraries are those that the cross compiler links."""

    libraries_of = staticmethod(libraries_of_arm64)

    def add(self, source, inside=None):
        target = self.path(inside or source.replace("/usr/aarch64-linux-gnu/lib/", "/usr/lib/aarch64-linux-gnu/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.lexists(target):
            os.unlink(target)
        shutil.copy2(source, target)
        self.add_libraries(source)


def add_python(tree):
    """The interpreter that runs this, with its standard library, at the paths that it has here."""
    tree.add(os.path.realpath(sys.executable))
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        tree.add_folder(folder, folder, PYTHON_LEFT_OUT)
    for module in glob.glob(os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload", "*.so")):
        tree.add_libraries(module)
    os.symlink(os.path.realpath(sys.executable), tree.path("usr/bin/python3"))


def add_build_tree(tree, build, needed):
    for name in needed:
        path = os.path.join(build, name)
        if not os.path.exists(path):
            raise Missing("%s has not been built" % name)
        if os.path.isdir(path):
            tree.add_folder(path, "%s/build/%s" % (INSIDE, name), NOT_COPIED)
        else:
            tree.add(path, "%s/build/%s" % (INSIDE, name))
    for name in WITH_LIBRARIES:
        tree.add_libraries(os.path.join(build, name), build)
    for name in TREE:
        tree.add_folder(os.path.join(ROOT, name), "%s/%s" % (INSIDE, name), ("__pycache__",))
    for name in FILES:
        tree.add(os.path.join(ROOT, name), "%s/%s" % (INSIDE, name))
    # Compiled here: an emulated processor takes its time, and the file system inside is read-only.
    subprocess.run([sys.executable, "-m", "compileall", "-q", tree.path(INSIDE)], check=True)


def make_file_system(folder, path):
    """An ext4 image of a folder, a little larger than it must be."""
    used = sum(os.lstat(os.path.join(at, name)).st_size + 4096
               for at, folders, names in os.walk(folder) for name in folders + names)
    if os.path.exists(path):
        os.unlink(path)
    tool = shutil.which("mke2fs") or shutil.which("mke2fs", path="/usr/sbin:/sbin")
    if not tool:
        raise Missing("the program mke2fs is not installed")
    subprocess.run([tool, "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m", "0", "-N", "20000", "-E",
                    "root_owner=0:0", "-d", folder, path, "%dk" % (used * 12 // 10 // 1024 + 16384)], check=True,
                   stdout=subprocess.DEVNULL)


def make_root(build, folder):
    """The root file system of this machine's architecture; its path."""
    tree = Tree(os.path.join(folder, "root"))
    for name in PROGRAMS:
        tree.add_program(name)
    for name in packages.output_of(["busybox", "--list"]).split():  # what programs of the tests call besides
        if not os.path.lexists(tree.path("usr/bin/" + name)):
            os.symlink("busybox", tree.path("usr/bin/" + name))
    add_python(tree)
    for name in filter(os.path.isdir, TERMINAL):
        tree.add_folder(name, name)
    return finish_root(tree, build, os.path.join(folder, "root.img"))


def make_root_arm64(build, folder, refresh, units):
    """The one of AArch64; units: with the unit tests."""
    unpacked = os.path.join(folder, "packages-arm64" + "-units" * units)
    done = pathlib.Path(unpacked + ".done")
    wanted = PACKAGES + UNIT_PACKAGES * units
    if refresh or not done.exists() or done.read_text(encoding="ascii").split() != wanted:
        packages.fetch_root(unpacked, "bookworm", "arm64", wanted)
        done.write_text(" ".join(wanted), encoding="ascii")
    tree = Arm64Tree(os.path.join(folder, "root-arm64"), unpacked)
    if units:
        libraries = tree.path("usr/lib/aarch64-linux-gnu")
        subprocess.run(["make", "--no-print-directory", "-C", ROOT, "ARCH=arm64", "build/arm64/test-unit",
                        "UNIT_LIBS=-L%s -Wl,-rpath-link,%s -l:libcriterion.so.3" % (libraries, libraries)], check=True)
    for name in ("usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(tree.path(name), ignore_errors=True)
    return finish_root(tree, os.path.join(build, "arm64"), os.path.join(folder, "root-arm64.img"), UNITS * units)


def finish_root(tree, build, path, more=()):
    """Adds the build tree, more of it than what is needed, and makes the file system at path of it."""
    add_build_tree(tree, build, NEEDED + list(more))
    tree.write("etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    tree.write("etc/group", "root:x:0:\nnogroup:x:65534:\n")
    make_file_system(tree.folder, path)
    shutil.rmtree(tree.folder)
    return path


# ---- modules ----

def module_name(path):
    return os.path.basename(path).split(".ko")[0].replace("-", "_")


def module_data(path):
    for ending, tool in ((".xz", "xz"), (".zst", "zstd"), (".gz", "gzip")):
        if path.endswith(ending):
            return subprocess.run([tool, "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    with open(path, "rb") as file:
        return file.read()


class Modules:
    """The modules of a kernel; those that are wanted, and what they need, are unpacked into a folder."""

    def __init__(self, source, folder):
        self.source = source
        self.folder = folder
        self.paths = {module_name(path): path
                      for path in glob.glob(os.path.join(source, "kernel", "**", "*.ko*"), recursive=True)}
        self.needs = {}  # name to names, of what was unpacked
        os.makedirs(folder)
        for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):  # depmod complains without
            if os.path.exists(os.path.join(source, name)):
                shutil.copy(os.path.join(source, name), folder)
            else:
                open(os.path.join(folder, name), "wb").close()

    def target(self, name):
        inside = os.path.relpath(self.paths[name], self.source)
        return os.path.join(self.folder, inside.split(".ko")[0] + ".ko")

    def add(self, name):
        """Unpacks one module after what it needs. What the kernel has built in has no file."""
        if name in self.needs or name not in self.paths:
            return
        data = module_data(self.paths[name])
        needed = b",".join(re.findall(rb"\0depends=([^\0]*)", data)).decode().split(",")
        needed += b" ".join(re.findall(rb"\0softdep=pre: ([^\0]*)", data)).decode().split()
        self.needs[name] = [one.replace("-", "_") for one in needed if one]
        os.makedirs(os.path.dirname(self.target(name)), exist_ok=True)
        with open(self.target(name), "wb") as file:
            file.write(data)
        for one in self.needs[name]:
            self.add(one)

    def in_order(self, names):
        """Files of the named modules and of what they need, each after what it needs."""
        order = []

        def visit(name):
            if name in self.needs and name not in order:
                for one in self.needs[name]:
                    visit(one)
                order.append(name)
        for name in names:
            visit(name)
        return [self.target(name) for name in order]


def add_driver(kernel, folder, modules):
    """The tests' own module; or why there is none, for the tests in the machine to say."""
    place = os.path.join(modules.folder, "updates")
    os.makedirs(place)
    try:
        shutil.copy(module.build(kernel, folder), place)
    except module.Failed as reason:
        with open(os.path.join(place, module.NAME + ".txt"), "w", encoding="utf-8") as file:
            file.write(str(reason))


def make_modules(kernel, folder):
    """The file system with a kernel's drivers, for /lib/modules; its path, and the modules needed to get there."""
    place = os.path.join(folder, "modules")
    shutil.rmtree(place, ignore_errors=True)
    modules = Modules(kernel.modules, os.path.join(place, "lib", "modules", kernel.release))
    for name in BOOT_MODULES:
        modules.add(name)
    for name, path in modules.paths.items():
        inside = os.path.relpath(path, os.path.join(modules.source, "kernel"))
        if inside.startswith(tuple(each + "/" for each in DRIVER_FOLDERS)):
            modules.add(name)
    add_driver(kernel, folder, modules)
    tool = shutil.which("depmod") or shutil.which("depmod", path="/usr/sbin:/sbin")
    if not tool:
        raise Missing("the program depmod is not installed")
    subprocess.run([tool, "-b", place, kernel.release], check=True)
    path = os.path.join(folder, "modules.img")
    make_file_system(os.path.join(place, "lib", "modules"), path)
    return path, modules.in_order(BOOT_MODULES)


# ---- the initial file system ----

def archive_entry(name, mode, data=b"", number=0):
    """One entry of a cpio archive, as the kernel reads them."""
    encoded = name.encode() + b"\0"
    header = b"070701" + b"".join(b"%08X" % value for value in (
        number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0))
    entry = header + encoded
    entry += b"\0" * (-len(entry) % 4) + data
    return entry + b"\0" * (-len(entry) % 4)


def make_initial(modules, options, path, busybox):
    """The initial file system: busybox, the modules to load in order, the options of the run inside."""
    if not busybox:
        raise Missing("the program busybox is not installed")
    if needed_by(busybox):
        raise Missing("busybox is not a static program: the package busybox-static has one")
    entries = [(folder, 0o40755, b"") for folder in ("bin", "dev", "proc", "sys", "new", "modules")]
    with open(busybox, "rb") as file:
        entries.append(("bin/busybox", 0o100755, file.read()))
    with open(os.path.join(HERE, "guest", "init.sh"), "rb") as file:
        entries.append(("init", 0o100755, file.read()))
    for number, module in enumerate(modules):
        with open(module, "rb") as file:
            entries.append(("modules/%03d-%s" % (number, os.path.basename(module)), 0o100644, file.read()))
    entries.append(("options.json", 0o100644, json.dumps(options).encode()))
    with open(path, "wb") as file:
        for number, (name, mode, data) in enumerate(entries, 1):
            file.write(archive_entry(name, mode, data, number))
        file.write(archive_entry("TRAILER!!!", 0))
    return path
