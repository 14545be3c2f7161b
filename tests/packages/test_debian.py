# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages, in a fresh system of the release that they were built on: this machine's, and the next one."""

import functools
import glob
import os
import re
import shutil

from roots import NEXT, system
from support import BUILD, ROOT, SCRATCH, VERSION, Skip, made, output, record_workload

DEBS = os.path.join(BUILD, "deb")
INSTALLED = ("xputrace", "libxputrace0", "python3-xputrace", "xputrace-doc")
NEXT_DEBS = os.path.join(SCRATCH, "deb-next")
LINTIAN = ("lintian", "--allow-root", "--fail-on", "error,warning", "--pedantic")
LIST_RPM = ("rpm", "--query", "--list", "--verbose", "--package")


def by_name(folder):
    """The paths of the packages in a folder by name, without those of debugging information."""
    paths = glob.glob(os.path.join(folder, "*.deb"))
    return {os.path.basename(path).split("_")[0]: path for path in paths if "-dbgsym" not in path}


def packages():
    if not shutil.which("dpkg-buildpackage"):
        raise Skip("dpkg-buildpackage is not there")
    made("deb")
    return by_name(DEBS)


@functools.lru_cache
def next_packages():
    """The same, built of the same source in a system of the next release; what lintian says of them there; the files of its RPM
    packages. A warning of a compiler is an error."""
    made("dist")
    with open(os.path.join(ROOT, "user", "packaging", "deb", "control"), encoding="utf-8") as file:
        wanted, = re.findall(r"^Build-Depends: (.*(?:\n .*)*)", file.read(), re.M)
    wanted = {"debhelper" if name == "debhelper-compat" else name for name in names_in(wanted)}
    with system(NEXT, wanted | {"build-essential", "lintian", "rpm"}) as machine:
        output("tar", "-xzf", os.path.join(BUILD, "xputrace-%s.tar.gz" % VERSION), "-C", machine.path("/srv"))
        source = "/srv/xputrace-" + VERSION
        machine.run("env", "WERROR=1", "make", "-C", source, "deb", "rpm")
        os.makedirs(NEXT_DEBS)
        for path in glob.glob(os.path.join(machine.path(source), "build", "deb", "*.deb")):
            shutil.copy(path, NEXT_DEBS)
        shown = machine.run("sh", "-c", '"$@" %s/build/deb/*.changes; echo "status $?"' % source, "sh", *LINTIAN)
        return by_name(NEXT_DEBS), shown, machine.run("sh", "-c", '"$@" %s/build/rpm/*.rpm' % source, "sh", *LIST_RPM)


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M).group(1)


def names_in(field):
    """Names of packages in a field with dependencies, the first of alternatives."""
    return {each.split("|")[0].split("(")[0].strip().split(":")[0] for each in field.split(",")} - {""}


def needs(paths, own):
    """Names of what packages depend on, beside each other."""
    return set().union(*(names_in(output("dpkg-deb", "--field", path, "Depends")) for path in paths)) - own


@functools.lru_cache
def later_version(path):
    """The same package with a later version and another time."""
    place = os.path.join(SCRATCH, "later", os.path.relpath(path, BUILD))[:-4]
    os.makedirs(os.path.dirname(place), exist_ok=True)
    output("dpkg-deb", "--raw-extract", path, place)
    control = os.path.join(place, "DEBIAN", "control")
    with open(control, encoding="utf-8") as file:
        text = file.read()
    with open(control, "w", encoding="utf-8") as file:
        file.write(re.sub(r"^Version: .*", r"\g<0>.1", text, flags=re.M))
    output("dpkg-deb", "--build", "--root-owner-group", place, place + ".deb")
    return place + ".deb"


def install(machine, paths, *command):
    for path in paths:
        shutil.copy(path, machine.path("/tmp"))
    machine.run(*(command or ("dpkg", "--install")), *("/tmp/" + os.path.basename(path) for path in paths))


def lifecycle(suite, found):
    """Installed, used, upgraded, removed: the command records, the library is found, units are not enabled, nothing is left."""
    made("all")
    chosen = {name: found[name] for name in INSTALLED}
    with system(suite, needs(chosen.values(), set(found))) as machine:
        before = machine.files()
        install(machine, chosen.values())
        assert machine.run("xputrace", "--version") == output(os.path.join(BUILD, "xputrace"), "--version")
        assert machine.run("python3", "-c", "import xputrace; print(xputrace.available)") == "True\n"
        units = [name for name in machine.files() - before if name.endswith(".service")]
        assert sorted(map(os.path.basename, units)) == ["xputrace-agent.service", "xputrace@.service"], units  # none in *.wants/
        check_units(machine, units)
        record_workload(machine, "xputrace")
        os.makedirs(machine.path("/etc/xputrace"))
        with open(machine.path("/etc/xputrace/xputrace-agent.conf"), "w", encoding="utf-8") as file:
            file.write("XPUTRACE_AGENT_OPTIONS=--listen none\n")
        install(machine, [later_version(path) for path in chosen.values()])
        check_upgraded(machine)
        assert os.path.exists(machine.path("/etc/xputrace/xputrace-agent.conf")), "an upgrade removes configuration"
        record_workload(machine, "xputrace")
        machine.run("dpkg", "--purge", *chosen)
        left = {name for name in machine.files() - before if "__pycache__" not in name}
        assert not left, left
        assert not before - machine.files()


def check_upgraded(machine):
    shown = machine.run("dpkg-query", "--show", "--showformat", "${Version} ${db:Status-Status}\n", *INSTALLED)
    assert shown.count(".1 installed") == len(INSTALLED), shown


def test_lifecycle():
    lifecycle(release(), packages())


def test_next_lifecycle():
    lifecycle(NEXT, next_packages()[0])


def test_next_upgrade():
    """A system with this release's packages becomes one of the next release, with that one's packages, of which nothing is left when they
    are purged. They come first: apt removes packages whose libraries are of the release before."""
    old, new = ({name: found[name] for name in INSTALLED} for found in (packages(), next_packages()[0]))
    with system(release(), needs(old.values(), set(packages()))) as machine:
        install(machine, old.values())
        sources = machine.path("/etc/apt/sources.list")
        with open(sources, encoding="utf-8") as file:
            text = file.read()
        with open(sources, "w", encoding="utf-8") as file:
            file.write(re.sub(r"\b%s\b" % release(), NEXT, text))
        machine.run("apt-get", "-q", "update")
        install(machine, [later_version(path) for path in new.values()], "apt-get", "-q", "-y", "install")
        machine.run("apt-get", "-q", "-y", "full-upgrade")
        check_upgraded(machine)
        check_units(machine, [name for name in machine.files() if re.search(r"/xputrace[@\w-]*\.service$", name)])
        record_workload(machine, "xputrace")
        machine.run("apt-get", "-q", "-y", "purge", *INSTALLED)
        left = {name for name in machine.files() if "xputrace" in name and "__pycache__" not in name}
        assert not left, left


def check_units(machine, units):
    """Each starts a command that is there, without rights that it does not name."""
    for name in units:
        with open(machine.path(name), encoding="utf-8") as file:
            fields = dict(re.findall(r"^(\w+)=(.*)$", file.read(), re.M))
        assert os.access(machine.path(fields["ExecStart"].split()[0]), os.X_OK), fields["ExecStart"]
        assert fields["Type"] == "notify" and fields["NoNewPrivileges"] == "yes" and fields["ProtectSystem"] == "strict"
        assert set(fields["CapabilityBoundingSet"].split()) <= {
            "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_CHECKPOINT_RESTORE", "CAP_DAC_READ_SEARCH", "CAP_SYS_ADMIN"}


def found_nothing(shown):
    assert not re.findall(r"^[EWP]: .*", shown, re.M), shown


def test_lintian():
    """Debian's own checks find nothing."""
    if not shutil.which("lintian"):
        raise Skip("lintian is not there")
    packages()
    changes, = glob.glob(os.path.join(DEBS, "*.changes"))
    found_nothing(output(*LINTIAN, changes))


def test_next_lintian():
    """Nor do those of the next release."""
    shown = next_packages()[1]
    found_nothing(shown)
    assert shown.endswith("status 0\n"), shown


def contents(paths):
    """Files of packages, each in one package alone."""
    listed = [names_of(output("dpkg-deb", "--contents", path)) for path in paths]
    everything = set().union(*listed)
    assert sum(map(len, listed)) == len(everything), "a file is in two packages"
    return logical(everything)


def same(some, other):
    assert some == other, (some - other, other - some)


def test_contents():
    """Each file is in one package, and the RPM packages have the same ones."""
    wanted = contents(packages().values())
    assert {"bin/xputrace", "lib/libxputrace.so.0", "include/xputrace/session.h", "share/doc/xputrace/docs/guide.md", "zsh/_xputrace",
            "lib/systemd/system/xputrace-agent.service", "share/man/man3/xpt_session_create.3", "python/xputrace/__init__.py"} <= wanted
    if not shutil.which("rpmbuild"):
        raise Skip("rpmbuild is not there")
    made("rpm")
    same(wanted, logical(names_of(output(*LIST_RPM, *glob.glob(os.path.join(BUILD, "rpm", "*.rpm"))))))


def test_next_contents():
    """Packages of the next release have the files of this one's, none outside of /usr, and its RPM packages have the same ones."""
    found, _, rpm = next_packages()
    wanted = contents(found.values())
    same(wanted, contents(packages().values()))
    same(wanted, logical(names_of(rpm)))
    outside = [name for path in found.values() for name in names_of(output("dpkg-deb", "--contents", path)) if not name.startswith("./usr/")]
    assert not outside, outside


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
