# SPDX-License-Identifier: BSD-2-Clause
"""Programs of Debian's next release, as `make python` and `make victoria-metrics` have unpacked them into roots of their own."""

import glob
import os

from harness import BUILD, Skip

FOLDER = os.path.join(BUILD, "python")


def need(folder=FOLDER):
    if not os.path.exists(os.path.join(folder, "fetched.json")):
        name = os.path.basename(folder)
        raise Skip("Debian's next release is not in build/%s: make %s" % (name, name))


def direct(*words, program="python3", folder=FOLDER):
    """Python with the words, by the root's own dynamic loader and libraries; everything else is this machine's."""
    need(folder)
    place, = glob.glob(os.path.join(folder, "usr", "lib", "*-linux-gnu"))
    loader, = glob.glob(os.path.join(folder, "usr", "lib64", "ld-linux*"))
    return [loader, "--library-path", place + ":" + os.path.dirname(place),
            os.path.realpath(os.path.join(folder, "usr", "bin", program)), *words]


def inside(shared, *words):
    """Python with the words as in a container: in the root, which sees the folder shared under its own path."""
    need()
    script = ('for part in proc dev sys; do mount --rbind "/$part" "$root/$part" || exit; done;'
              'mkdir -p "$root$shared" && mount --bind "$shared" "$root$shared" || exit;'
              'exec chroot "$root" "$@"')
    return ["unshare", "--mount", "env", "root=" + FOLDER, "shared=" + shared, "sh", "-c", script, "sh",
            "/usr/bin/python3", *words]


def library(pattern):
    """The only file below its Python packages that fits."""
    need()
    found, = glob.glob(os.path.join(FOLDER, "usr", "lib", "python3", "dist-packages", pattern))
    return found
