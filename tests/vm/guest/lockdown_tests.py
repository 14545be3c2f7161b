# SPDX-License-Identifier: BSD-2-Clause
"""The kernel is locked down, which nobody can take back: after all other tests."""

from harness import XPUTRACE, Recorder, compare, run, standin

FOLDER = "/sys/kernel/security"


def lock(kind):
    with open(FOLDER + "/lockdown", encoding="ascii") as file:
        if "[%s]" % kind in file.read():  # since it was booted
            return
    with open(FOLDER + "/lockdown", "w", encoding="ascii") as file:
        file.write(kind)


def test_integrity():
    """What Secure Boot brings on most distributions: all works as before."""
    lock("integrity")
    workload = standin("nrt", "--calls", "40")
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    compare("nrt", results, recorder.finish())
    check = run([XPUTRACE, "check"])
    assert check.status == 0 and "ok       lockdown" in check.stdout, check.stdout


def test_confidentiality():
    """Programs may read no memory: said with what to do about it, and the target is as it was."""
    lock("confidentiality")
    check = run([XPUTRACE, "check"])
    assert check.status == 1 and "MISSING  lockdown" in check.stdout, check.stdout
    assert "lockdown=integrity" in check.stdout, check.stdout
    workload = standin("nrt", "--calls", "40")
    recorder = Recorder("-p", workload.pid, wait=False)
    assert recorder.wait() == 1, recorder.stderr
    assert "locked down" in recorder.stderr, recorder.stderr
    workload.go()
    assert workload.results(), "the target has come to harm"
    assert run([XPUTRACE, "list", "drivers"]).status == 0


def discover():
    return [("lockdown." + function.__name__[5:], function, ()) for function in (test_integrity, test_confidentiality)]
