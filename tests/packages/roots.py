# SPDX-License-Identifier: BSD-2-Clause
"""Fresh Debian systems in folders, to install into."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys

from support import BUILD, ROOT, SCRATCH, Skip, output

sys.path.insert(0, os.path.join(ROOT, "tests", "vm"))
from packages import Unavailable, mirror

NEXT = "trixie"  # the release after the one that everything else is tested on
CACHE = os.path.join(BUILD, "packages-roots")
# Beside the command, in mounts that nobody else sees.
ENTER = ('for part in proc sys dev; do mount --rbind "/$part" "$root/$part" || exit; done;'
         'exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"')


class System:
    """A system in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, *command, **options):
        """What a command prints in there."""
        return output("unshare", "--mount", "env", "root=" + self.folder, "sh", "-c", ENTER, "sh", *command, **options)

    def path(self, name):
        return os.path.join(self.folder, name.lstrip("/"))

    def files(self):
        """Everything in it, but for what runs there is kept in and dpkg's own notes."""
        passed = {self.path(name) for name in ("proc", "sys", "dev", "tmp", "var/lib/dpkg", "var/log", "var/cache")}
        found = set()
        for place, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if os.path.join(place, name) not in passed]
            found.update(os.path.relpath(os.path.join(place, name), self.folder) for name in names + folders)
        return found


def base(suite, packages=()):
    """The archive of a new system of a Debian release with these packages beside the smallest set. It is fetched once."""
    packages = sorted(packages)
    archive = os.path.join(CACHE, "%s-%s.tar" % (suite, hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]))
    if os.path.exists(archive):
        return archive
    os.makedirs(CACHE, exist_ok=True)
    try:
        output("mmdebstrap", "--variant=minbase", "--include=" + ",".join(packages or ["dpkg"]), suite, archive + ".part.tar", mirror())
    except (OSError, subprocess.CalledProcessError, Unavailable) as error:
        raise Skip("%s cannot be fetched: %s" % (suite, (getattr(error, "output", "") or str(error)).strip().splitlines()[-1])) from error
    os.rename(archive + ".part.tar", archive)
    return archive


@contextlib.contextmanager
def system(suite, packages=()):
    """Such a system in a folder, while it is used."""
    if os.geteuid():
        raise Skip("needs root")
    archive = base(suite, packages)
    folder = os.path.join(SCRATCH, "system-" + suite)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    output("tar", "-xf", archive, "-C", folder, "--exclude=./dev/*")
    yield System(folder)
    shutil.rmtree(folder)
