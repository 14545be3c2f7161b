# SPDX-License-Identifier: BSD-2-Clause
"""The container image, with an image of Debian that is made here: built, run by podman as the manual has it, with a target in another
container."""

import contextlib
import functools
import json
import os
import re
import shutil
import socket
import subprocess
import time

from roots import System, base
from support import BUILD, ROOT, SCRATCH, VERSION, Skip, made, make, output, record_workload

# Nothing of the machine's own images is touched. runc runs where control groups of both versions are mounted, too.
STORE = ["podman", "--root", os.path.join(SCRATCH, "containers"), "--runroot", os.path.join(SCRATCH, "containers-run"),
         "--cgroup-manager=cgroupfs"] + ["--runtime=" + path for path in [shutil.which("runc", path="/usr/sbin:/usr/bin")] if path]
DEBIAN = "docker.io/library/debian:bookworm-slim"
IMAGE = "localhost/xputrace:test"
# By itself podman raises them, which needs CAP_SYS_RESOURCE.
LIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
# xputrace-continuous(1), CONTAINERS.
TRACING = ["--pid=host", "--cap-drop=ALL", "--cap-add=BPF,PERFMON,SYS_PTRACE", "--cap-add=CHECKPOINT_RESTORE,DAC_READ_SEARCH",
           "--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--security-opt=label=disable"]
WAIT = 60  # seconds


def podman(*words, **options):
    return output(*STORE, *words, **options)


@functools.cache
def build():
    """Builds the image, once."""
    if not shutil.which("podman"):
        raise Skip("podman is not there")
    if os.geteuid():
        raise Skip("needs root")
    with open(base("bookworm"), "rb") as archive:
        podman("import", "-", DEBIAN, stdin=archive)
    make("-C", ROOT, "dist")
    place = os.path.join(SCRATCH, "container")
    os.makedirs(place)
    output("tar", "-xzf", os.path.join(BUILD, "xputrace-%s.tar.gz" % VERSION), "-C", place)
    source = os.path.join(place, "xputrace-" + VERSION)
    podman("build", "--isolation=chroot", "--network=host", "--pull=never", "--tag", IMAGE, "--file",
           os.path.join(source, "user", "packaging", "Containerfile"), source)


def test_image():
    """It is built, has the libraries that the command needs, and what is in it records."""
    build()
    folder = os.path.join(SCRATCH, "container-root")
    os.makedirs(folder)
    name = podman("create", *LIMITS, IMAGE).strip().splitlines()[-1]
    with subprocess.Popen([*STORE, "export", name], stdout=subprocess.PIPE) as exported:
        output("tar", "-xf", "-", "-C", folder, "--exclude=dev/*", stdin=exported.stdout)
    machine = System(folder)
    assert machine.run("/usr/local/bin/xputrace", "--version").startswith("xputrace " + VERSION)
    record_workload(machine, "/usr/local/bin/xputrace")


# ---- run by podman ----

def need_running():
    build()
    try:
        shown = podman("run", *LIMITS, "--rm", "--pid=host", "--network=none", "--read-only", IMAGE, "--version")
    except subprocess.CalledProcessError as error:
        raise Skip("podman cannot run containers here: " + error.output.strip().splitlines()[-1]) from error
    assert shown.startswith("xputrace " + VERSION), shown


@contextlib.contextmanager
def running(name, *words):
    """A container until the end of the block: its id, and its process outside."""
    podman("run", "-d", "--name", name, *LIMITS, "--network=none", *words)
    try:
        yield podman("inspect", "--format", "{{.Id}} {{.State.Pid}}", name).split()
    finally:
        print(podman("logs", name), end="")
        podman("rm", "--force", "--time", "10", name)


@contextlib.contextmanager
def target():
    made("workload")
    with running("target", "-v", os.path.join(BUILD, "workload") + ":/workload:ro", "--entrypoint", "/workload/workload", IMAGE,
                 "nrt", "--calls", "0", "--rate", "200") as (identity, pid):
        yield identity, pid


def wait_until(reached, what):
    end = time.monotonic() + WAIT
    while not reached():
        assert time.monotonic() < end, "not within %d s: %s" % (WAIT, what)
        time.sleep(0.2)


def folders():
    """For outputs, and for the place of control as the manual has it."""
    out = os.path.join(SCRATCH, "container-output")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(os.path.join(out, "run"), mode=0o700)
    words = ["-v", out + ":/output", "-v", os.path.join(out, "run") + ":/run/xputrace"]
    if os.path.exists("/sys/kernel/tracing/events"):
        words += ["-v", "/sys/kernel/tracing:/sys/kernel/tracing:ro"]
    return out, words


def test_saves():
    """The flight recorder in one container records a program in another one, is asked to save by `podman exec`, and ends when it is
    stopped; the target goes on."""
    need_running()
    out, words = folders()
    with target() as (_, pid), running("xputrace", *TRACING, *words, IMAGE, "continuous", "start", "-p", pid, "-o", "/output", "--budget", "none"):
        def status():
            shown = subprocess.run([*STORE, "exec", "xputrace", "xputrace", "continuous", "status", "--format", "json"],
                                   capture_output=True, text=True, check=False).stdout
            return json.loads(shown) if shown else {}
        wait_until(lambda: status().get("window_inferences", 0) > 100, "inferences in the window")
        saved = re.search(r"/output/\S+\.xpt", podman("exec", "xputrace", "xputrace", "continuous", "save"))[0]
        podman("exec", "xputrace", "xputrace", "report", saved, "-o", "/output/trace.json")
        with open(os.path.join(out, "trace.json"), encoding="utf-8") as file:
            calls = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X" and event["pid"] == int(pid)]
        assert len(calls) > 100, "%d calls in %s" % (len(calls), saved)
        podman("stop", "--time", "20", "xputrace")
        assert podman("inspect", "--format", "{{.State.ExitCode}}", "xputrace").strip() == "0"
        assert os.path.exists("/proc/" + pid), "the target has ended"


def test_names_the_container():
    """The agent in one container has metrics of a program in another one, with the id of that container."""
    need_running()
    out, words = folders()
    with target() as (identity, pid), running("xputrace", *TRACING, *words, IMAGE, "agent", "-p", pid, "--budget", "none", "--listen", "unix:/output/metrics"):
        def metrics():
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
                connection.connect(os.path.join(out, "metrics"))
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                return connection.makefile("r", encoding="utf-8").read()
            return ""
        wait_until(lambda: 'container="%s"' % identity in metrics(), "metrics with the container")
