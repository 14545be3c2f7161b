# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages in a fresh system of the release that they were built on."""

import glob
import os
import re
import shutil

from roots import system
from support import BUILD, SCRATCH, VERSION, Skip, made, output, record_workload

DEBS = os.path.join(BUILD, "deb")


def packages():
    """The paths of the packages by name, without those of debugging information."""
    if not shutil.which("dpkg-buildpackage"):
        raise Skip("dpkg-buildpackage is not there")
    made("deb")
    paths = glob.glob(os.path.join(DEBS, "*.deb"))
    return {os.path.basename(path).split("_")[0]: path for path in paths if "-dbgsym" not in path}


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M).group(1)


def needs(paths, own):
    """Names of what packages depend on, beside each other."""
    names = set()
    for path in paths:
        for each in output("dpkg-deb", "--field", path, "Depends").split(","):
            name = each.split("|")[0].split("(")[0].strip().split(":")[0]
            names.update({name} - own - {""})
    return names


def next_version(path, folder):
    """The same package with a later version and another time."""
    place = os.path.join(folder, os.path.basename(path)[:-4])
    output("dpkg-deb", "--raw-extract", path, place)
    control = os.path.join(place, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    with open(control, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^Version: .*", r"\g<0>.1", text, flags=re.M))
    output("dpkg-deb", "--build", "--root-owner-group", place, place + ".deb")
    return place + ".deb"


def install(machine, paths):
    for path in paths:
        shutil.copy(path, machine.path("/tmp"))
    machine.run("dpkg", "--install", *("/tmp/" + os.path.basename(path) for path in paths))


def test_lifecycle():
    """Installed, used, upgraded, removed: the command records, the library is found, units are not enabled, nothing is left."""
    found = packages()
    chosen = {name: found[name] for name in ("xputrace", "libxputrace0", "python3-xputrace", "xputrace-doc")}
    with system(release(), needs(chosen.values(), set(found))) as machine:
        before = machine.files()
        install(machine, chosen.values())
        assert machine.run("xputrace", "--version") == output(os.path.join(DEBS, "xputrace-" + VERSION, "build", "xputrace"), "--version")
        assert machine.run("python3", "-c", "import xputrace; print(xputrace.available)") == "True\n"
        units = [name for name in machine.files() - before if name.endswith(".service")]
        assert sorted(map(os.path.basename, units)) == ["xputrace-agent.service", "xputrace@.service"], units  # none in *.wants/
        check_units(machine, units)
        record_workload(machine, "xputrace")
        os.makedirs(machine.path("/etc/xputrace"))
        with open(machine.path("/etc/xputrace/xputrace-agent.conf"), "w", encoding="utf-8") as file:
            file.write("XPUTRACE_AGENT_OPTIONS=--listen none\n")
        later = [next_version(path, SCRATCH) for path in chosen.values()]
        install(machine, later)
        shown = machine.run("dpkg-query", "--show", "--showformat", "${Version} ${db:Status-Status}\n", *chosen)
        assert shown.count(".1 installed") == len(chosen), shown
        assert os.path.exists(machine.path("/etc/xputrace/xputrace-agent.conf")), "an upgrade removes configuration"
        record_workload(machine, "xputrace")
        machine.run("dpkg", "--purge", *chosen)
        left = {name for name in machine.files() - before if "__pycache__" not in name}
        assert not left, left
        assert not before - machine.files()


def check_units(machine, units):
    """Each starts a command that is there, without rights that it does not name."""
    for name in units:
        with open(machine.path(name), encoding="utf-8") as file:
            fields = dict(re.findall(r"^(\w+)=(.*)$", file.read(), re.M))
        assert os.access(machine.path(fields["ExecStart"].split()[0]), os.X_OK), fields["ExecStart"]
        assert fields["Type"] == "notify" and fields["NoNewPrivileges"] == "yes" and fields["ProtectSystem"] == "strict"
        assert set(fields["CapabilityBoundingSet"].split()) <= {
            "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE", "CAP_DAC_READ_SEARCH", "CAP_SYS_ADMIN"}


def test_lintian():
    """Debian's own checks find nothing."""
    if not shutil.which("lintian"):
        raise Skip("lintian is not there")
    packages()
    changes, = glob.glob(os.path.join(DEBS, "*.changes"))
    shown = output("lintian", "--allow-root", "--fail-on", "error,warning", "--pedantic", changes)
    assert not re.findall(r"^[EWP]: .*", shown, re.M), shown


def test_contents():
    """Each file is in one package, and the RPM packages have the same ones."""
    listed = [names_of(output("dpkg-deb", "--contents", path)) for path in packages().values()]
    everything = set().union(*listed)
    assert sum(map(len, listed)) == len(everything), "a file is in two packages"
    wanted = logical(everything)
    assert {"bin/xputrace", "lib/libxputrace.so.0", "include/xputrace/session.h", "share/doc/xputrace/docs/guide.md", "zsh/_xputrace",
            "lib/systemd/system/xputrace-agent.service", "share/man/man3/xpt_session_create.3", "python/xputrace/__init__.py"} <= wanted
    if not shutil.which("rpmbuild"):
        raise Skip("rpmbuild is not there")
    made("rpm")
    other = logical(set().union(*(names_of(output("rpm", "--query", "--list", "--verbose", "--package", path))
                                  for path in glob.glob(os.path.join(BUILD, "rpm", "*.rpm")))))
    assert wanted == other, (wanted - other, other - wanted)


def names_of(listing):
    """Of a listing as `ls -l` has it: files and links, not folders."""
    return {re.sub(r" -> .*", "", line).split(None, 5)[-1].split(" ")[-1] for line in listing.splitlines() if line[:1] in "-l"}


def logical(names):
    """The same names, wherever a distribution has such files; what each packaging adds of its own is left out."""
    found = set()
    for name in names:
        name = re.sub(r"^\.?/(usr/)?", "", name)
        name = re.sub(r"^lib(64|/[\w]+-linux-gnu)/", "lib/", name)
        name = re.sub(r"^(share/man/.*)\.gz$", r"\1", name)
        name = re.sub(r"^share/zsh/(vendor-completions|site-functions)/", "zsh/", name)
        name = re.sub(r"^lib/python3[.\d]*/(dist|site)-packages/", "python/", name)
        if not re.match(r"share/(doc/([^/]*/(changelog|copyright)|xputrace/LICENSE$)|licenses/|lintian/)|lib/\.build-id/", name):
            found.add(name)
    return found
