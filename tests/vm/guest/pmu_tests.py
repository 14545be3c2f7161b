# SPDX-License-Identifier: BSD-2-Clause
"""The PMU of the tests' accelerator: that it counts what the device has reported of its jobs, and has the limits of a real
one. Nothing of xputrace takes part."""

import contextlib
import errno
import fcntl
import os
import struct

import accelerator
from accelerator import NODE, command, execute, load, loaded, unload
from devices import check
from harness import SLOW, Process, cases, results_in, run, wait_until
from perf_event import DISABLE, ENABLE, RESET, Event, Pmu

FORMAT = {"event": "config:0-3,8-11", "engine": "config:16-23", "sample": "config1:0"}
EVENTS = {
    "jobs": "event=0x11",
    "queued": "event=0x12",
    "failed": "event=0x13",
    "busy": "event=0x21", "busy.scale": "1e-9", "busy.unit": "s",
    "engine-busy": "event=0x21,engine=?",
    "bytes": "event=0x22", "bytes.scale": "9.5367431640625e-07", "bytes.unit": "MiB",
    "depth": "event=0x31", "depth.snapshot": "1",
}
COUNTERS = 4  # of a device; jobs are counted without one
MILLISECOND = 1000000
LONG = round(SLOW * 100) * MILLISECOND  # of a job that still runs when it has been looked at some times
CROWD = ("--threads", 2, "--calls", 12, "--jobs", 3, "--engines", 2, "--fail-jobs", 7)
ONLINE = "/sys/devices/system/cpu/cpu1/online"


# ---- events ----

def pmu_of(device=0):
    return Pmu("xptaccel_%d" % device)


@contextlib.contextmanager
def opened(*events, pmu=None, group=False):
    """Events, each a name or a name and more terms; open meanwhile, and stopped. group: the first is the leader."""
    pmu = pmu or pmu_of()
    made = []
    try:
        for event in events:
            name, terms = (event, {}) if isinstance(event, str) else event
            made.append(Event(pmu, leader=made[0] if group and made else None, group=group and not made,
                              flags=() if group and made else ("disabled",), **pmu.configuration(name, **terms)))
        yield made
    finally:
        for event in reversed(made):
            event.close()


@contextlib.contextmanager
def counting(*events, **options):
    """The same, switched on."""
    with opened(*events, **options) as made:
        for event in made[:1] if options.get("group") else made:
            event.control(ENABLE)
        yield made


def values(events):
    """Those of events that have never had to wait for a counter."""
    read = [event.read() for event in events]
    assert all(enabled == running > 0 for _, enabled, running in read), read
    return [numbers[0] for numbers, _, _ in read]


def refused(*expected, pmu=None, **options):
    """The kernel does not open such an event, for one of the expected reasons."""
    try:
        event = Event(pmu or pmu_of(), **options)
    except OSError as error:
        assert error.errno in expected, "%s: %s" % (options, error)
    else:
        event.close()
        raise AssertionError("not refused: %s" % options)


# ---- jobs ----

def busy_of(jobs):
    """For how long they ran, by the device's own times."""
    return sum(job["finished_ns"] - job["started_ns"] for job in jobs)


def expected(jobs, engine=None):
    """What an event must have counted for jobs that have all ended."""
    mine = [job for job in jobs if engine is None or job["engine"] == engine]
    return {"jobs": len(mine), "queued": len(mine), "failed": sum(1 for job in mine if job["error"]),
            "busy": busy_of(mine)}


class Device:
    """The device opened by this process itself, for jobs that a workload does not submit."""

    # Direction, size, type and number of XPTACCEL_SUBMIT, the same without bytes, and XPTACCEL_WAIT.
    SUBMIT, SUBMIT_UNSIZED, WAIT = (3 << 30 | size << 16 | 0xb9 << 8 | number for size, number in (
        (56, 1), (48, 1), (56, 2)))
    WAIT_NS = 60 * 10**9

    def __init__(self, path=NODE):
        self.descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        os.close(self.descriptor)

    def submit(self, nanoseconds, engine=0, size=None):
        """The number of the job. size: None: as programs do that do not know of it."""
        arguments = bytearray(struct.pack("=IIQQQQQ", engine, 0, nanoseconds, 0, 0, 0, 0))
        if size is not None:
            arguments += struct.pack("=Q", size)
        fcntl.ioctl(self.descriptor, self.SUBMIT_UNSIZED if size is None else self.SUBMIT, arguments)
        return struct.unpack_from("=Q", arguments, 24)[0]

    def wait(self, number):
        """When it began and when it ended."""
        arguments = bytearray(struct.pack("=QQQQQQiI", number, self.WAIT_NS, 0, 0, 0, 0, 0, 0))
        fcntl.ioctl(self.descriptor, self.WAIT, arguments)
        _, _, _, _, started, finished, error, _ = struct.unpack("=QQQQQQiI", arguments)
        assert not error, error
        return started, finished


# ---- tests ----

def test_files(kernel):
    """What sysfs says of each device's PMU."""
    load(devices=2, engines=3)
    pmus = [pmu_of(device) for device in (0, 1)]
    assert len({pmu.type for pmu in pmus}) == 2, [pmu.type for pmu in pmus]
    for pmu in pmus:
        assert pmu.texts("format") == FORMAT, pmu.texts("format")
        assert pmu.texts("events") == EVENTS, pmu.texts("events")
        assert pmu.text("cpumask") == "0"
    assert pmus[0].configuration("busy", engine=2) == {"config": 0x20201}
    unload()
    assert not [pmu.folder for pmu in pmus if os.path.exists(pmu.folder)]


@cases("nrt", "qaic", "cuda")
def test_counts(kernel, runtime):
    """Jobs, failures and busy time of all engines, exactly."""
    load(slots=2)
    names = ("jobs", "queued", "failed", "busy")
    with counting(*names, ("busy", {"sample": 1})) as events:
        jobs = check(execute(runtime, *CROWD))
        found = values(events)
        assert values(events) == found, "nothing has run since"
    wanted = expected(jobs)
    assert wanted["failed"] > 5 and len({job["engine"] for job in jobs}) == 2
    assert dict(zip(names, found)) == wanted and found[-1] == wanted["busy"], (found, wanted)


def test_engines(kernel):
    """Each engine for itself; their sum is what all have."""
    load(slots=2)
    both = [(name, {"engine": engine}) for engine in (1, 2) for name in ("jobs", "queued", "engine-busy")]
    with counting("jobs", *both) as events:
        jobs = check(execute("nrt", *CROWD))
        found = values(events)
    first, second = expected(jobs, 0), expected(jobs, 1)
    assert 0 < first["jobs"] < len(jobs)
    assert found == [len(jobs)] + [one[name] for one in (first, second) for name in ("jobs", "queued", "busy")], (
        found, first, second)


def test_reset(kernel):
    """A job that hangs until its engine is reset has failed, and was busy until then."""
    load(timeout_ms=100)
    with counting("jobs", "failed", "busy") as events:
        jobs = check(execute("nrt", "--calls", 8, "--hang-jobs", 4))
        found = values(events)
    wanted = expected(jobs)
    assert wanted["failed"] == 2
    assert found == [wanted["jobs"], wanted["failed"], wanted["busy"]], (found, wanted)


def test_windows(kernel):
    """Only what happens while an event is switched on is counted; switched on again, it goes on; reset, from 0."""
    load()
    with opened("jobs", "busy") as events:
        execute("nrt", "--calls", 3)
        assert [event.read() for event in events] == [((0,), 0, 0)] * 2
        for event in events:
            event.control(ENABLE)
        jobs = check(execute("nrt", "--calls", 5))
        for event in events:
            event.control(DISABLE)
        execute("nrt", "--calls", 7)
        assert values(events) == [5, busy_of(jobs)], values(events)
        for event in events:
            event.control(ENABLE)
        jobs += check(execute("nrt", "--calls", 11))
        assert values(events) == [16, busy_of(jobs)], values(events)
        for event in events:
            event.control(RESET)
        jobs = check(execute("nrt", "--calls", 2))
        assert values(events) == [2, busy_of(jobs)], values(events)


def test_bytes(kernel):
    """The sizes of jobs that have ended; a program that does not know of sizes has none."""
    load()
    sizes = [0, 1, 4096, 3 << 30, None]
    with Device() as device, counting("bytes", ("bytes", {"engine": 2}), "jobs") as events:
        for number in [device.submit(MILLISECOND, index % 2, size) for index, size in enumerate(sizes)]:
            device.wait(number)
        execute("nrt", "--calls", 3)
        assert values(events) == [sum(filter(None, sizes)), 1 + (3 << 30), len(sizes) + 3], values(events)


def test_running(kernel):
    """Busy time goes on while a job runs, by the time of each slot; as a sample, it comes when the job ends."""
    load(slots=2, timeout_ms=20000)
    with Device() as device, counting("busy", ("busy", {"sample": 1}), "jobs") as (busy, sample, ended):
        numbers = [device.submit(LONG, engine) for engine in (0, 0, 1)]
        wait_until(lambda: busy.value > LONG // 10, "the jobs have run for a while")
        earlier, later = busy.value, busy.value
        assert earlier < later and (sample.value, ended.value) == (0, 0), (earlier, later, sample.value, ended.value)
        total = sum(finished - started for started, finished in map(device.wait, numbers))
        assert values((busy, sample, ended)) == [total, total, 3], (values((busy, sample, ended)), total)


def test_depth(kernel):
    """How many jobs run now, of any engine and of one; not their sum, however often it is read."""
    load(timeout_ms=20000)
    events = ("depth", ("depth", {"engine": 1}), ("depth", {"engine": 2}), "queued")
    with Device() as device, counting(*events) as (depth, *engines, queued):
        assert [event.value for event in (depth, *engines, queued)] == [0, 0, 0, 0]
        numbers = [device.submit(LONG, 0) for _ in range(3)] + [device.submit(3 * LONG, 1)]
        wait_until(lambda: depth.value == 2, "one job of each engine runs")
        assert [event.value for event in (depth, *engines, queued)] == [2, 1, 1, 4]
        depth.control(DISABLE)
        for number in numbers:
            device.wait(number)
        assert [event.value for event in (depth, *engines, queued)] == [2, 0, 0, 4], "stopped, it keeps its value"
        depth.control(ENABLE)
        assert depth.value == 0


def test_two_devices(kernel):
    """Each device counts its own jobs, with counters of its own."""
    load(devices=2)
    other = [word.replace(NODE, "/dev/xptaccel1") for word in command("qaic", "--calls", 9, "--jobs", 2)]
    names = ("jobs", "queued", "failed", "busy", "bytes")
    with counting(*names) as first, counting(*names, pmu=pmu_of(1)) as second:
        process = Process(other)
        mine = expected(check(execute("nrt", "--calls", 5, "--fail-jobs", 2)))
        assert process.wait() == 0, process.stderr
        others = expected(check(results_in(process.stdout)))
        for events, wanted in ((first, mine), (second, others)):
            assert values(events) == list(wanted.values()) + [0], (values(events), wanted)
    assert mine["jobs"] == 5 and others["jobs"] == 18


def test_processor(kernel):
    """It counts on the processor that cpumask names; not on another one, be that there or not."""
    load()
    config = pmu_of().configuration("jobs")
    refused(errno.EINVAL, cpu=1, **config)
    refused(errno.EINVAL, cpu=4000, **config)
    with open(ONLINE, "w", encoding="ascii") as file:
        file.write("0")
    try:
        refused(errno.ENODEV, cpu=1, **config)
        with counting("jobs") as events:
            execute("nrt", "--calls", 3)
            assert values(events) == [3]
    finally:
        with open(ONLINE, "w", encoding="ascii") as file:
            file.write("1")
    refused(errno.EINVAL, cpu=1, **config)


def test_refused(kernel):
    """What no PMU of a whole system can do: per task, sampling, only a part of it; and what is no event of this one."""
    load(engines=2)
    pmu = pmu_of()
    config = pmu.configuration("queued")
    for cpu in (0, -1):
        refused(errno.EINVAL, pid=os.getpid(), cpu=cpu, **config)
    refused(errno.EINVAL, cpu=-1, **config)
    refused(errno.EINVAL, errno.EOPNOTSUPP, sample_period=1000, **config)
    refused(errno.EINVAL, errno.EOPNOTSUPP, sample_period=1000, flags=("disabled", "freq"), **config)
    for flag in ("user", "kernel", "hv", "idle", "host", "guest"):
        refused(errno.EINVAL, flags=("disabled", "exclude_" + flag), **config)
    for event in (0x00, 0x01, 0x10, 0x14, 0x20, 0x23, 0x30, 0xff):
        refused(errno.EINVAL, config=pmu.place("event", event)[1])
    refused(errno.EINVAL, **pmu.configuration("queued", engine=3))
    for bit in [bit for bit in range(64) if not 0xff0f0f & 1 << bit]:
        refused(errno.EINVAL, config=config["config"] | 1 << bit)
    refused(errno.EINVAL, config1=2, **config)
    refused(errno.EINVAL, config2=1, **config)
    with counting(("queued", {"engine": 2})) as events:
        values(events)


def test_group(kernel):
    """A group is read at once; it is refused when it can never have as many counters as it needs."""
    load()
    names = ("queued", "busy", "failed", "bytes")
    with counting(*names, "jobs", group=True) as events:
        jobs = check(execute("nrt", "--calls", 8, "--fail-jobs", 3))
        wanted = expected(jobs)
        found, enabled, running = events[0].read()
        assert enabled == running > 0
        assert found == (wanted["queued"], wanted["busy"], wanted["failed"], 0, wanted["jobs"]), (found, wanted)
        refused(errno.EINVAL, leader=events[0], flags=(), **pmu_of().configuration("depth"))
        with opened(("jobs", {"engine": 1}), "jobs"):
            assert events[0].read()[0] == found
    with opened("jobs", *names, group=True) as events:
        refused(errno.EINVAL, leader=events[0], flags=(), **pmu_of().configuration("depth"))


def test_multiplexed(kernel):
    """More events than counters take turns, as the two times of each tell; one that is pinned does not.

    Without that, one that needs no counter would, too: the kernel adds no more events once one has found no counter."""
    load()
    pmu = pmu_of()
    pinned = Event(pmu, flags=("disabled", "pinned"), **pmu.configuration("jobs"))
    with contextlib.closing(pinned), counting(*["queued"] * (COUNTERS + 2)) as shared:
        pinned.control(ENABLE)
        process = Process(command("nrt", "--calls", 300, duration_us=1000))
        wait_until(lambda: all(event.read()[2] for event in shared), "each has had its turn")
        assert process.wait() == 0, process.stderr
        ran = len(check(results_in(process.stdout)))
        assert values([pinned]) == [ran]
        for event in shared:
            event.control(DISABLE)
        read = [event.read() for event in shared]
        assert all(0 < running < enabled for _, enabled, running in read), read
        # Four can run at any time, and four do. They were not switched on and off at once: a little more is possible.
        used = sum(running for _, _, running in read) / max(enabled for _, enabled, _ in read)
        assert COUNTERS * 0.8 < used < COUNTERS * 1.05, (used, read)
        assert all(numbers[0] < ran for numbers, _, _ in read) and sum(numbers[0] for numbers, _, _ in read) > ran, (
            ran, read)
    with counting(*["queued"] * COUNTERS) as events:
        execute("nrt", "--calls", 20)
        assert values(events) == [20] * COUNTERS, "counters have not come back: %s" % values(events)


def test_module_stays(kernel):
    """While an event is open, the module is not unloaded."""
    load()
    with opened("jobs"):
        assert run(["rmmod", accelerator.NAME]).status != 0 and loaded()
    unload()


def discover(kernel):
    """As kernel_tests.discover() has them."""
    tests = []
    for name, function in list(globals().items()):
        if name.startswith("test_") and function.__module__ == __name__:
            for case in getattr(function, "cases", (None,)):
                tests.append(("pmu." + name[5:], function, (kernel,)) if case is None else
                             ("pmu.%s[%s]" % (name[5:], case), function, (kernel, case)))
    return tests
