# SPDX-License-Identifier: BSD-2-Clause
"""The container image, with an image of Debian that is made here."""

import os
import shutil
import subprocess

from roots import System, base
from support import BUILD, ROOT, SCRATCH, VERSION, Skip, make, output, record_workload

# Nothing of the machine's own images is touched.
STORE = ["podman", "--root", os.path.join(SCRATCH, "containers"), "--runroot", os.path.join(SCRATCH, "containers-run")]
DEBIAN = "docker.io/library/debian:bookworm-slim"
IMAGE = "localhost/xputrace:test"


def podman(*words, **options):
    return output(*STORE, *words, **options)


def build():
    """Builds the image; the folder of the source that it was made of."""
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
    """It is built, has the libraries that the command needs, and what is in it records; and podman runs it, where it can."""
    build()
    folder = os.path.join(SCRATCH, "container-root")
    os.makedirs(folder)
    name = podman("create", IMAGE).strip().splitlines()[-1]
    with subprocess.Popen([*STORE, "export", name], stdout=subprocess.PIPE) as exported:
        output("tar", "-xf", "-", "-C", folder, "--exclude=dev/*", stdin=exported.stdout)
    machine = System(folder)
    assert machine.run("/usr/local/bin/xputrace", "--version").startswith("xputrace " + VERSION)
    record_workload(machine, "/usr/local/bin/xputrace")
    try:
        shown = podman("run", "--rm", "--pid=host", "--network=none", "--read-only", IMAGE, "--version")
    except subprocess.CalledProcessError as error:
        raise Skip("built and used; podman cannot run containers here: " + error.output.strip().splitlines()[-1]) from error
    assert shown.startswith("xputrace " + VERSION), shown
