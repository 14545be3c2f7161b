# SPDX-License-Identifier: BSD-2-Clause
"""Outputs in a directory of an attacker, who puts links, pipes and second names in their place, also while they are written; and who starts
a collector with the rights of its file, or with an environment of their own."""

import os
import shutil
import signal
import stat
import subprocess
import sys

from collectors import endless, expect
from harness import NOBODY, XPUTRACE, Process, Skip, cases, run, scratch, standin
from test_agent import Agent

SECRET = b"a secret of root\n"


class Home:
    """A directory of an attacker beside one of root with a file in it."""

    def __init__(self):
        if os.geteuid():
            raise Skip("only root can make files of others")
        self.folder = scratch()
        self.home, self.roots = os.path.join(self.folder, "home"), os.path.join(self.folder, "roots")
        for path in (self.home, self.roots):
            os.mkdir(path)
        os.chown(self.home, NOBODY, NOBODY)
        self.secret = os.path.join(self.roots, "secret")
        with open(self.secret, "wb") as file:
            file.write(SECRET)

    def trap(self, kind, name):
        """The path of an output that is one."""
        path = os.path.join(self.home, name)
        if kind == "directory":
            path = os.path.join(self.home, "sub")
            os.symlink(self.roots, path)
        elif kind == "link":
            os.symlink(self.secret, path)
        elif kind == "dangling":
            os.symlink(os.path.join(self.roots, "new"), path)
        elif kind == "device":
            os.symlink("/dev/full", path)  # writing there would be an error of another kind
        elif kind == "pipe":
            os.mkfifo(path, 0o666)
        elif kind == "second name":
            os.link(self.secret, path)
        if kind != "second name":
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return os.path.join(path, name) if kind == "directory" else path

    def check(self):
        with open(self.secret, "rb") as file:
            assert file.read() == SECRET
        assert os.listdir(self.roots) == ["secret"], os.listdir(self.roots)
        assert os.stat(self.secret).st_uid == 0 and stat.S_IMODE(os.stat(self.secret).st_mode) == 0o644, os.stat(self.secret)


def recording():
    output = os.path.join(scratch(), "of.xpt")
    workload = standin("nrt", "--calls", 5)
    recorder = Process([XPUTRACE, "record", "-p", str(workload.pid), "-o", output])
    recorder.wait_line("stderr", "attached")
    workload.go()
    workload.results()
    assert recorder.wait() == 0, recorder.stderr
    return output


TRAPS = ("link", "directory", "dangling", "device", "pipe", "second name")
REFUSALS = ("symbolic link", "may be theirs", "not a directory", "another user")


@cases(*TRAPS)
def test_trap(kind):
    """Every command that writes a file refuses, and says why; nothing of root's is changed, and nothing waits for a pipe."""
    home, source = Home(), recording()
    trace = os.path.join(scratch(), "of.json")
    expect(run([XPUTRACE, "report", "-q", source, "-o", trace]), 0)
    workload = endless()
    pid, short = ["-p", str(workload.pid)], ["-d", "100ms"]
    commands = [["report", source, "-o", "r.json"], ["report", source, "-o", "r.html"], ["report", source, "-o", "r.db"],
                ["report", source, "-o", "r.pftrace"], ["report", source, "--format", "csv", "-o", "r.csv"],
                ["report", source, "-q", "--summary-json", "s.json"], ["report", source, "-o", "r.json.gz"],
                ["merge", trace, trace, "-o", "m.json"],
                ["record", *pid, *short, "-o", "t.json"], ["record", *pid, *short, "-o", "t.xpt"], ["record", *pid, *short, "-o", "t.html"],
                ["record", *pid, *short, "-o", "t.pftrace"],
                ["stream", *pid, "-m", ".", *short, "--append", "-o", "l.csv"],
                ["stream", *pid, "-m", ".", *short, "--append", "--rotate", "4K", "-o", "x.csv"],
                ["counters", "-e", "task-clock", *pid, *short, "-o", "c.csv"]]
    if kind != "second name":  # which is seen only when the program has been met
        commands.append(["profile", *pid, "--program", "none", *short, "-o", "p.csv"])
    if kind != "directory":  # where it is the last part that is another file
        commands += [["codeobj", *pid, *short, "-o", "objects"], ["inspect", *pid, *short, "-o", "results"]]
    failures = []
    for words in commands:
        path = home.trap(kind, words[-1])
        result = run([XPUTRACE, *words[:-1], path])
        if kind == "directory":
            os.unlink(os.path.join(home.home, "sub"))
        if result.status != 1 or not any(text in result.stderr for text in REFUSALS + ("No such file",) * (kind == "dangling")):
            failures.append((words, result.status, result.stderr))
        home.check()
    assert not failures, failures
    workload.stop()


EXCHANGE = """import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = sys.argv[1].encode(), sys.argv[2].encode()
print("ready", flush=True)
while True:
    assert not libc.renameat2(-100, one, -100, other, 2), ctypes.get_errno()
"""


class Exchanger(Process):
    """The attacker's directory for outputs, and a link to root's directory, change places all the time."""

    def __init__(self, home):
        self.path, link = os.path.join(home.home, "out"), os.path.join(home.home, "link")
        os.mkdir(self.path)
        os.symlink(home.roots, link)
        for path in (self.path, link):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        super().__init__([sys.executable, "-c", EXCHANGE, self.path, link], user=NOBODY, group=NOBODY, extra_groups=[])
        self.wait_line("stdout", "ready")


def test_directory_is_exchanged():
    """While files are written, again and again, for their directory and a link: all go into the directory, or nowhere."""
    home, source = Home(), recording()
    trace = os.path.join(scratch(), "of.json")
    expect(run([XPUTRACE, "report", "-q", source, "-o", trace]), 0)
    exchanger, workload = Exchanger(home), endless()
    statuses = []
    stream = Process([XPUTRACE, "stream", "-q", "-p", str(workload.pid), "-m", ".", "--report-every", "10ms", "-d", "3s", "-o",
                      os.path.join(exchanger.path, "l.csv")])
    for number in range(40):
        for words in (["report", source, "-q", "-o", "secret"], ["merge", trace, trace, "-o", "secret"], ["report", source, "-o", "r%d.db" % number]):
            result = run([XPUTRACE, *words[:-1], os.path.join(exchanger.path, words[-1])])
            statuses.append(result.status)
        home.check()
    stream.wait()
    home.check()
    assert exchanger.child.poll() is None, exchanger.stderr
    exchanger.kill()
    assert set(statuses) == {0, 1}, "neither kind of directory was met: %s" % statuses
    workload.stop()


def test_textfile_and_socket():
    """Those of the agent: it replaces no stranger's file, gives nothing of root's to who called sudo, and removes its own socket only."""
    home = Home()
    for kind in ("link", "directory", "second name"):
        path = home.trap(kind, kind.replace(" ", "") + ".prom")
        agent = Agent("--textfile", path, pids=[standin("nrt").pid])
        agent.wait_line("stderr", "cannot write")
        agent.stop()
        home.check()
    for kind in ("link", "directory"):
        if kind == "directory":
            os.unlink(os.path.join(home.home, "sub"))
        result = run([XPUTRACE, "agent", "--listen", "unix:" + home.trap(kind, "socket-" + kind)])
        assert result.status == 1 and "cannot listen on" in result.stderr, result.stderr
        home.check()
    socket = os.path.join(home.home, "socket")
    agent = Agent(pids=[standin("nrt").pid], listen="unix:" + socket, env={**os.environ, "SUDO_UID": "1234", "SUDO_GID": "1235"})
    status = os.lstat(socket)
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 1235, 0o660), status
    os.unlink(socket)
    os.link(home.secret, socket)
    agent.signal(signal.SIGTERM)
    assert agent.wait() == 0, agent.stderr
    assert os.path.exists(socket), "what was put in its place is not its own"
    os.unlink(socket)
    home.check()


# ---- with rights of the file, and an environment, of somebody else ----

def copy_of_collector():
    path = os.path.join(scratch(), "xputrace")
    shutil.copy(XPUTRACE, path)
    return path


@cases("set-user-ID", "set-group-ID", "file capabilities")
def test_rights_of_the_file(how):
    """Refused before anything is read: by another user, who could have root run a command; not where the file gives nothing more."""
    if os.geteuid():
        raise Skip("only root can give rights to a file")
    path, proof = copy_of_collector(), os.path.join(scratch(), "proof")
    os.chmod(os.path.dirname(proof), 0o777)
    if how == "file capabilities":
        if not shutil.which("setcap"):
            raise Skip("setcap is not installed")
        subprocess.run(["setcap", "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_override+ep", path], check=True)
    else:
        os.chmod(path, {"set-user-ID": 0o4755, "set-group-ID": 0o2755}[how])
    whom = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    for words in (["record", "-o", proof, "--", "/bin/sh", "-c", "id > %s.command" % proof], ["check"], ["--version"],
                  ["report", "/etc/shadow"], ["continuous", "start", "-o", proof]):
        result = subprocess.run([path, *words], env={**os.environ, "SUDO_UID": "0", "SUDO_GID": "0"}, capture_output=True, text=True,
                                check=False, **whom)
        assert result.returncode == 1 and "refuses to run" in result.stderr and not result.stdout, (words, result)
        assert not os.listdir(os.path.dirname(proof)), words
    assert subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0, "root gets nothing more by it"


@cases("none", "perfmon", "bpf,perfmon", "bpf,perfmon,sys_ptrace", "sys_ptrace,dac_override")
def test_some_capabilities(names):
    """A user with some of them, as a service manager gives them: another user's process is not traced, and what is missing is said."""
    if os.geteuid():
        raise Skip("only root can give capabilities")
    path, workload = copy_of_collector(), standin("nrt", "--calls", 3)
    given = [] if names == "none" else ["--inh-caps", "+" + ",+".join(names.split(",")), "--ambient-caps", "+" + ",+".join(names.split(","))]
    output = os.path.join(scratch(), "of.xpt")
    os.chmod(os.path.dirname(output), 0o777)
    prefix = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *given]
    result = run([*prefix, path, "record", "-p", str(workload.pid), "-d", "100ms", "-o", output])
    assert result.status == 1 and result.stderr.startswith("xputrace: "), (result.status, result.stdout, result.stderr)
    assert any(word in result.stderr for word in ("root", "capabilit", "CAP_", "permi")), result.stderr
    assert run([*prefix, path, "check"]).status == 1
    workload.go()
    workload.results()


def test_environment():
    """Of an attacker: nothing of it is opened, executed or asked, and files are made only where the command line says."""
    home = Home()
    program = os.path.join(home.home, "program")
    with open(program, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ntouch %s/executed\n" % home.home)
    os.chmod(program, 0o755)
    for name in ("sh", "gzip", "addr2line", "ldd", "perf", "python3", "c++filt", "mount", "bpftool", "nvidia-smi", "modprobe"):
        os.symlink(program, os.path.join(home.home, name))
    before = sorted(os.listdir(home.home))
    environment = {name: home.home for name in ("HOME", "TMPDIR", "TMP", "TEMP", "SQLITE_TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
                                                "XDG_RUNTIME_DIR", "DEBUGINFOD_CACHE_PATH", "XPUTRACE_BUILD", "XPUTRACE_REGIONS")}
    environment.update({"PATH": home.home, "DEBUGINFOD_URLS": "http://127.0.0.1:1/", "SUDO_UID": "-1", "SUDO_GID": "x" * 10000, "LC_ALL": "../../x",
                        "LANGUAGE": "%s%n", "COLUMNS": "99999999999999999999", "LINES": "-1", "TERM": "\x1b[31m", "LIBBPF_DEBUG": "1",
                        "NOTIFY_SOCKET": os.path.join(home.home, "none"), "SSLKEYLOGFILE": os.path.join(home.home, "keys"),
                        "OTEL_SERVICE_NAME": "x" * 100000, "GCONV_PATH": home.home, "X" * 1000: "\xff"})
    source = recording()
    workload = endless()
    outputs = scratch()
    for words in (["record", "-p", str(workload.pid), "-d", "100ms", "-o", "t.xpt"], ["record", "-p", str(workload.pid), "-d", "100ms", "-o", "t.json"],
                  ["report", source, "-o", "r.db"], ["report", source, "-o", "r.html"], ["list", "runtimes", "-p", str(workload.pid)]):
        paths = [os.path.join(outputs, words[-1])] if "-o" in words else [words[-1]]
        result = run([XPUTRACE, *words[:-1], *paths], env=environment)
        assert result.status == 0, (words, result.stderr)
        assert sorted(os.listdir(home.home)) == before, (words, os.listdir(home.home))
    for name in os.listdir(outputs):
        status = os.stat(os.path.join(outputs, name))
        assert status.st_uid == 0 and stat.S_IMODE(status.st_mode) == 0o600, (name, status)
    home.check()
    workload.stop()
