# SPDX-License-Identifier: BSD-2-Clause
"""The tarball on Debian's next release."""

import glob
import os
import re

from roots import NEXT, system
from support import BUILD, VERSION, made, output, record_workload


def test_next_release():
    """It brings all libraries but the C library's, starts from any folder, and records."""
    made("tarball")
    archive, = glob.glob(os.path.join(BUILD, "xputrace-%s-*.tar.gz" % VERSION))
    with system(NEXT) as machine:
        os.makedirs(machine.path("/srv/some folder"))
        output("tar", "-xzf", archive, "-C", machine.path("/srv/some folder"))
        place, = glob.glob(machine.path("/srv/some folder/*"))
        place = place[len(machine.folder):]
        command = place + "/bin/xputrace"
        assert machine.run(command, "--version") == output(os.path.join(BUILD, "xputrace"), "--version")
        for name, path in re.findall(r"^\s*(\S+) => (.*) \(0x", machine.run("ldd", command), re.M):
            assert path.startswith(place) or re.match(r"lib(c|m|pthread|dl|rt|resolv)\.so", name), (name, path)
        record_workload(machine, command)
