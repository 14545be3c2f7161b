# SPDX-License-Identifier: BSD-2-Clause
"""What explanations of long recordings take."""

import os
import subprocess

from tools import BUILD, XPUTRACE

PROGRAMS = 4


def measured(*command):
    """Seconds of CPU time, and peak memory in MiB."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def explain_section(results, settings, folder):
    recording = os.path.join(folder, "explain.xpt")
    results.section("xputrace explain, of %d programs with three operators, states and reasons; files in memory" % PROGRAMS)
    for count in settings.explain_inferences:
        subprocess.run([os.path.join(BUILD, "bench", "recording_make"), recording, str(count), str(PROGRAMS)], check=True)
        times, memory = zip(*(measured(XPUTRACE, "explain", "-q", recording) for _ in range(settings.repetitions)))
        title = "%s inferences, %.0f MB: " % ("{:,}".format(count), os.stat(recording).st_size / 1e6)
        results.add(title + "CPU time", times, "s")
        results.add(title + "peak resident memory", memory, "MiB")
        os.unlink(recording)
