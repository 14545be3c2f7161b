# SPDX-License-Identifier: BSD-2-Clause
"""What can only be asked of a kernel that is known: which links it has, which drivers it ships; that it is unharmed."""

import json
import os
import re

from harness import XPUTRACE, Recorder, Skip, cases, compare, record_command, run, standin, workload_path

# Links that each kernel has, the best first: that is the one that auto must choose.
LINKS = {
    "6.1": ("perf",),
    "6.12": ("multi", "perf"),
    "newest": ("session", "multi", "perf"),
}
LINES = {"session": "session link", "multi": "multi link", "perf": "perf uprobes"}  # of xputrace check

# Modules by the events that they bring.
DRIVERS = {
    "gpu_scheduler": "gpu-sched",
    "virtio_gpu": "virtio_gpu",
    "amdgpu": "amdgpu",
    "i915": "i915",
    "xe": "xe",
    "habanalabs": "habanalabs",
    "amdxdna": "amdxdna",
    "vpu": "intel_vpu",
}
EVENTS = "/sys/kernel/tracing/events"


def test_link_is_the_best(kernel):
    """--link auto takes the best link that this kernel has, and says nothing of those that it has tried in vain."""
    workload = standin("nrt", "--calls", "40")
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    compare("nrt", results, trace)
    assert trace.metadata["tracing"]["link"] == LINKS[kernel][0], trace.metadata["tracing"]
    warnings = [line for line in recorder.stderr.splitlines() if "warning" in line and "single-stepped" not in line]
    assert not warnings, recorder.stderr


@cases(*LINES)
def test_link_is_told(kernel, link):
    """check says which links there are; one that is not there is refused with a pointer to it."""
    result = run([XPUTRACE, "check"])
    said = re.findall(r"^(\S+) +%s\b" % LINES[link], result.stdout, re.M)
    assert len(said) == 1 and (said[0] == "ok") == (link in LINKS[kernel]), result.stdout
    if link not in LINKS[kernel]:
        workload = standin("nrt", "--calls", "1")
        recorder = Recorder("-p", workload.pid, "--link", link, wait=False)
        assert recorder.wait() == 1, recorder.stderr
        assert "xputrace check" in recorder.stderr, recorder.stderr
        workload.go()
        workload.results()


def test_children(kernel):
    """Forked children are traced from their first instruction."""
    results, trace, _ = record_command([workload_path("workload"), "nrt", "--fork", "3", "--calls", "40"])
    assert len(results) == 4
    compare("nrt", results, trace)


@cases(*DRIVERS)
def test_driver(kernel, events):
    """The driver of the kernel's own package can be loaded; the events that it declares are there."""
    module = DRIVERS[events]
    if run(["modprobe", "-n", module]).status != 0:
        raise Skip("%s has no module %s" % (kernel, module))
    loaded = run(["modprobe", module])
    assert loaded.status == 0, loaded.stderr
    if not os.path.exists("/sys/module/%s/sections/_ftrace_events" % module.replace("-", "_")):
        raise Skip("%s of %s declares no events" % (module, kernel))
    assert os.path.isdir(os.path.join(EVENTS, events)), sorted(os.listdir(EVENTS))


# Descriptions by the events that they are about, where the names differ.
DESCRIPTIONS = {"vpu": "ivpu"}


@cases(*DRIVERS)
def test_driver_followed(kernel, events):
    """All of the described events that the kernel's driver has are attached to."""
    if not os.path.isdir(os.path.join(EVENTS, events)) or run(["modprobe", "-n", DRIVERS[events]]).status != 0:
        raise Skip("%s has no events of the driver %s" % (kernel, events))
    name = DESCRIPTIONS.get(events, events)
    (driver,) = [one for one in json.loads(run([XPUTRACE, "list", "drivers", "--format", "json"]).stdout)
                 if one["driver"] == name]
    wanted = {event["event"] for event in driver["events"] if event["found"]}
    assert wanted, driver
    result = run([XPUTRACE, "record", "--drivers", name, "--format", "none", "--", "true"])
    assert result.status == 0 and "not seen" not in result.stderr, result.stderr
    said = re.search(r"driver %s \(.*\): (\d+) tracepoints" % name, result.stderr)
    assert said and int(said[1]) == len(wanted), (wanted, result.stderr)


def test_unharmed(kernel):
    """Comes last: the kernel has complained about nothing."""
    del kernel
    complaints = [line for line in run(["dmesg"]).stdout.splitlines()
                  if re.search(r"BUG:|WARNING:|Oops|general protection|refcount_t|hung_task|soft lockup", line)]
    assert not complaints, "\n".join(complaints)


def discover(kernel):
    """As run.discover() has them: those that come first, those that load drivers, and those that come last."""
    first = [test_link_is_the_best, test_link_is_told, test_children]
    loading = [test_driver, test_driver_followed]
    return [list(named(kernel, functions)) for functions in (first, loading, [test_unharmed])]


def named(kernel, functions):
    for function in functions:
        name = "kernel." + function.__name__[5:]
        for case in getattr(function, "cases", (None,)):
            yield (name, function, (kernel,)) if case is None else (
                "%s[%s]" % (name, case), function, (kernel, case))
