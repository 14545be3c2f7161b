# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernel packages: found and fetched by apt, unpacked, never installed.

apt gets lists, status and sources of its own for each kernel, so neither the machine's sources nor its packages are
touched. The mirror is the one that the machine itself uses.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Of the packages that linux-image-ARCHITECTURE leads to, those with the kernel and its modules: newer Debians split them.
WITH_FILES = r"linux-(image|binary|modules)-[0-9].*-%s$"
LEADING_TO_THEM = r"linux-(image|binary|modules|base)-.*%s$"
# What a module is built with, and the libraries that the programs among it need.
HEADERS_WITH_FILES = re.compile(r"linux-(headers|kbuild)-[0-9]|(libc6|libelf1|libelf1t64|libzstd1|zlib1g)$")
LEADING_TO_HEADERS = re.compile(r"linux-(headers|kbuild|base)-|(libc6|libelf1|libelf1t64|libzstd1|zlib1g)$")


class Unavailable(Exception):
    """The kernel cannot be had here; the text says why."""


class Kernel:
    """A kernel to test on: its name, the versions that are meant, the Debian suites that may have it."""

    def __init__(self, name, prefix, suites, architecture="amd64"):
        self.name = name if architecture == "amd64" else "%s-%s" % (architecture, name)
        self.like = name  # the tests on another architecture are those of this kernel
        self.architecture = architecture  # Debian's name of it
        self.prefix = prefix  # of the package's version
        self.suites = suites
        self.version = None  # of the package
        self.release = None  # what uname -r says
        self.folder = None
        self.seconds = {}  # step to time

    @property
    def image(self):
        """The file to boot."""
        found = sorted(glob.glob(os.path.join(self.folder, "unpacked", "**", "vmlinuz*"), recursive=True))
        if not found:
            raise Unavailable("the package of %s %s has no kernel image" % (self.name, self.version))
        return found[0]

    @property
    def modules(self):
        """The folder with its modules, lib/modules/RELEASE."""
        found = [path for place in ("lib", "usr/lib")
                 for path in glob.glob(os.path.join(self.folder, "unpacked", place, "modules", "*", "kernel"))]
        if not found:
            raise Unavailable("the package of %s %s has no modules" % (self.name, self.version))
        return os.path.dirname(found[0])

    @property
    def headers(self):
        """The folder with the files of the packages to build a module with, as below /."""
        return os.path.join(self.folder, "headers")


KERNELS = (
    Kernel("6.1", "6.1.", ("bookworm",)),
    Kernel("6.12", "6.12.", ("bookworm-backports", "trixie")),
    Kernel("newest", "", ("sid", "experimental")),
    Kernel("6.1", "6.1.", ("bookworm",), "arm64"),
    Kernel("6.12", "6.12.", ("bookworm-backports", "trixie"), "arm64"),
    Kernel("newest", "", ("sid", "experimental"), "arm64"),
)


def output_of(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, text=True,
                          **options).stdout


def mirror():
    """The first Debian archive of this machine's sources that has more than security updates."""
    ask = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    try:
        # Before the first apt-get update, apt does not know whose the archives are.
        listed = output_of(ask + ["Origin: Debian"]).split() or [
            address for address in output_of(ask).split() if address.rstrip("/").endswith("/debian")]
    except (OSError, subprocess.CalledProcessError):
        listed = []
    for address in listed:
        if "security" not in address:
            return address
    raise Unavailable("this machine has no Debian archive among its package sources")


class Apt:
    """apt with lists and sources of its own in a folder."""

    def __init__(self, folder, suites, architecture="amd64"):
        self.folder = folder
        for each in ("lists/partial", "cache/archives/partial", "preferences.d", "sources.d"):
            os.makedirs(os.path.join(folder, each), exist_ok=True)
        address = mirror()
        self._write("status", "")
        self._write("sources.list", "".join("deb [signed-by=%s] %s %s main\n" % (KEYRING, address, suite)
                                            for suite in suites))
        configuration = self._write("apt.conf", "".join('%s "%s";\n' % pair for pair in (
            ("Dir::State", folder), ("Dir::State::status", folder + "/status"), ("Dir::Cache", folder + "/cache"),
            ("Dir::Etc::sourcelist", folder + "/sources.list"), ("Dir::Etc::sourceparts", folder + "/sources.d"),
            ("Dir::Etc::preferencesparts", folder + "/preferences.d"), ("APT::Architecture", architecture),
            ("APT::Architectures", architecture), ("APT::Sandbox::User", ""), ("Acquire::Retries", "3"),
            ("Acquire::Languages", "none"))))
        self.environment = dict(os.environ, APT_CONFIG=configuration)

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run(self, *command, **options):
        return output_of(list(command), env=self.environment, **options)

    def show(self, package):
        """The fields of every version of a package, newest first."""
        records = [dict(re.findall(r"^(\S+): (.*)$", record, re.M))
                   for record in self.run("apt-cache", "show", package).split("\n\n") if record.strip()]
        versions = sorted({record["Version"] for record in records}, key=VersionOrder, reverse=True)
        return [next(record for record in records if record["Version"] == version) for version in versions]


class VersionOrder:
    """Debian's order of versions, as a key to sort by."""

    def __init__(self, version):
        self.version = version

    def __lt__(self, other):
        return subprocess.run(["dpkg", "--compare-versions", self.version, "lt", other.version],
                              check=False).returncode == 0


def packages_of(apt, start, version, with_files, leading):
    """NAME=VERSION of the packages with files that one leads to. Linux's own are of one version, others the newest."""
    found, waiting, seen = [], [start], set()
    while waiting:
        package = waiting.pop()
        if package in seen:
            continue
        seen.add(package)
        record = next((one for one in apt.show(package)
                       if one["Version"] == version or not package.startswith("linux-")), None)
        if record is None:
            continue
        if with_files.match(package):
            found.append("%s=%s" % (package, record["Version"]))
        for wanted in re.split(r"[,|]", record.get("Depends", "") + "," + record.get("Pre-Depends", "")):
            name = wanted.split("(")[0].strip()
            if leading.match(name):
                waiting.append(name)
    return sorted(found)


def fetch(kernel, folder, refresh=False):
    """Downloads and unpacks into folder, or takes what an earlier run has left there. Sets version and release."""
    kernel.folder = folder
    note = os.path.join(folder, "fetched.json")
    if refresh or not os.path.exists(note) or not os.path.isdir(kernel.headers):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            fetched = download(kernel, folder)
        except subprocess.CalledProcessError as error:
            reason = (error.stderr.strip().splitlines() or ["status %d" % error.returncode])[-1]
            raise Unavailable("%s: %s" % (" ".join(error.cmd[:2]), reason)) from error
        with open(note, "w", encoding="utf-8") as file:
            json.dump(fetched, file)
    with open(note, encoding="utf-8") as file:
        kernel.version = json.load(file)["version"]
    kernel.release = os.path.basename(kernel.modules)


def download(kernel, folder):
    apt = Apt(os.path.join(folder, "apt"), kernel.suites, kernel.architecture)
    apt.run("apt-get", "-q", "update")
    start = "linux-image-" + kernel.architecture
    versions = [record["Version"] for record in apt.show(start) if record["Version"].startswith(kernel.prefix)]
    if not versions:
        raise Unavailable("no kernel %s* in %s" % (kernel.prefix, ", ".join(kernel.suites)))
    packages = packages_of(apt, start, versions[0], *(re.compile(pattern % kernel.architecture)
                                                      for pattern in (WITH_FILES, LEADING_TO_THEM)))
    if not packages:
        raise Unavailable("%s %s leads to no package with a kernel" % (start, versions[0]))
    unpack(apt, packages, os.path.join(folder, "unpacked"))
    # The programs that run while a module is built are for this machine, whatever the kernel is for.
    native = apt if kernel.architecture == "amd64" else Apt(os.path.join(folder, "apt-amd64"), kernel.suites)
    if native is not apt:
        native.run("apt-get", "-q", "update")
    headers = packages_of(native, "linux-headers-amd64", versions[0], HEADERS_WITH_FILES, LEADING_TO_HEADERS)
    unpack(native, headers, kernel.headers)
    if native is not apt:
        own = re.compile(r"linux-headers-[0-9].*-%s$" % kernel.architecture)
        unpack(apt, packages_of(apt, "linux-headers-" + kernel.architecture, versions[0], own, own), kernel.headers)
        shutil.rmtree(native.folder)
    shutil.rmtree(apt.folder)
    return {"version": versions[0], "packages": packages, "headers": headers}


def unpack(apt, packages, folder):
    """Downloads packages and unpacks all of them into a folder, which is what later runs take."""
    os.makedirs(folder, exist_ok=True)
    apt.run("apt-get", "-q", "download", *packages, cwd=apt.folder)
    for archive in glob.glob(os.path.join(apt.folder, "*.deb")):
        output_of(["dpkg-deb", "--extract", archive, folder])
        os.unlink(archive)


def fetch_root(folder, suite, architecture, wanted, without=None):
    """Unpacks packages, with all that they depend on but those whose file without matches, into a new folder, the root of a
    system. Nothing is installed. Returns the names of the files."""
    shutil.rmtree(folder, ignore_errors=True)
    for directory in ("bin", "lib", "lib64", "sbin"):
        os.makedirs(os.path.join(folder, "usr", directory))
        os.symlink("usr/" + directory, os.path.join(folder, directory))
    for directory in ("dev", "proc", "sys", "tmp"):
        os.makedirs(os.path.join(folder, directory))
    with tempfile.TemporaryDirectory(prefix="xputrace-apt-") as place:
        os.chmod(place, 0o755)
        try:
            apt = Apt(place, [suite], architecture)
            apt.run("apt-get", "-q", "update")
            apt.run("apt-get", "-q", "-y", "--no-install-recommends", "--download-only", "install", *wanted)
            archives = [path for path in sorted(glob.glob(os.path.join(place, "cache", "archives", "*.deb")))
                        if not (without and without.match(os.path.basename(path)))]
            for archive in archives:
                # Packages of older releases have files in /bin and /lib.
                output_of(["sh", "-c", 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink -C "$2"', "sh",
                           archive, folder])
        except (OSError, subprocess.CalledProcessError) as error:
            raise Unavailable((getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]) from error
    return [os.path.basename(path) for path in archives]
