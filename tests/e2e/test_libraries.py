# SPDX-License-Identifier: BSD-2-Clause
"""Where the runtime's library can be: loaded late, twice, in another namespace, deleted, inside another file."""

import os
import shutil
import signal
import sys
import time

from harness import (LATE_RATE, SLOW, XPUTRACE, Recorder, Skip, Workload, alone, cases, compare, compare_calls, compare_late,
                     compare_programs, library_path, need, paired, record_command, record_late, results_in, run, scratch, standin,
                     workload_path)


def copy_of(library, name, flavour="lib"):
    path = os.path.join(scratch(), name)
    shutil.copy(library_path(library, flavour), path)
    return path


@paired("expects probes in time")
@cases("nrt", "cuda", "pjrt")
def test_loaded_after_attach(runtime):
    """Late attach, and the library comes later still: every call from 50 ms after the mapping on is seen."""
    workload = standin(runtime, "--dlopen", "--rate", LATE_RATE, "--calls", 300, "--programs", 1,
                       "--log-times")
    results, trace = record_late(workload)
    trace.check()
    compare_late(results[0], trace, results[0]["libraries"][0]["mapped"])
    check_late(results[0], trace)


def check_late(result, trace):
    """A library whose probes came more than 100 ms after it was mapped is counted. The time from then to the first execution seen, in s."""
    after = min(call.start for call in trace.runs()) / 1e6 - result["libraries"][0]["mapped"] / 1e9
    late = trace.losses().get("late_probes", 0)
    assert late <= 1 and (late or after < 0.1 + 2 / LATE_RATE + 0.05 * SLOW), (late, after)
    return after


@alone("of all processes none may load a library")
@cases("one", "all")
def test_loaded_unnoticed(processes):
    """The collector does not run while the library is loaded: what was called meanwhile is missing, which is counted."""
    path = copy_of("libnrt.so.1", "libnrt.so.1")  # that no other process has
    workload = standin("nrt", "--dlopen", "--library", path, "--rate", LATE_RATE, "--calls", 300 + 3 * LATE_RATE, "--programs", 1, "--log-times")
    recorder = Recorder(*(["-p", workload.pid] if processes == "one" else ["-a"]))
    recorder.signal(signal.SIGSTOP)
    workload.go()
    time.sleep(1)
    recorder.signal(signal.SIGCONT)
    result, = workload.results()
    trace = recorder.finish() if processes == "one" else recorder.stop()
    trace.check()
    compare_late(result, trace, result["libraries"][0]["mapped"] + 1100 * 1000 * 1000)
    after = check_late(result, trace)
    assert after > 0.9 and trace.losses() == {"late_probes": 1}, (after, trace.losses())
    assert len(trace.runs(pid=result["pid"])) < len(result["times"])


def test_limit_of_waiting():
    """A collector that does not run: the loading thread waits as long as --wait-limit says, no shorter, and then goes on."""
    limit = 6
    recorder = Recorder("--wait-limit", "%ds" % limit, "--", workload_path("workload"), "nrt", "--dlopen", "--wait-for-go", "--calls", 5, wait=False)
    recorder.wait_line("stdout", '"ready"')
    recorder.signal(signal.SIGSTOP)
    begun = time.monotonic()
    recorder.send("\n")
    recorder.wait_line("stdout", '{"runtime"')
    waited = time.monotonic() - begun
    recorder.signal(signal.SIGCONT)
    trace = recorder.finish()
    assert limit <= waited < 2 * limit + 2 * SLOW, waited
    assert trace.losses().get("late_probes"), trace.losses()


def test_table_is_filled_slowly():
    """A table that is filled by a call of its accessor that began before it had a probe: it is read again, and what was missed is counted."""
    workload = Workload([workload_path("workload"), "pjrt", "--wait-for-go", "--dlopen", "--rate", LATE_RATE, "--calls", 1000,
                         "--programs", 1, "--log-times"], env=dict(os.environ, STANDIN_FILL_MS=str(int(400 * SLOW))))
    results, trace = record_late(workload)
    trace.check()
    compare_late(results[0], trace, results[0]["libraries"][0]["mapped"] + int(1200 * SLOW) * 1000 * 1000)
    assert trace.losses() in ({"late_probes": 1}, {"late_probes": 2}), trace.losses()  # 2: that of the accessor was late, too


def test_loaded_later_is_reported():
    """A process that waits for its runtime: a warning says so, and a message when it has it."""
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--dlopen", "--calls", "200", "--rate", "200"])
    recorder = Recorder("-p", workload.pid)
    recorder.wait_line("stderr", "uses no described runtime yet: waiting for it to load one")
    workload.go()
    recorder.wait_line("stderr", "probes in 1 files")
    workload.results()
    recorder.wait()
    assert recorder.stderr.count("attached to PID %d" % workload.pid) == 2, recorder.stderr


def test_two_copies():
    """Two copies of a library in one process: both are traced."""
    other = copy_of("libnrt.so.1", "another_runtime.so")
    results, trace = record_late(standin("nrt", "--library", library_path("libnrt.so.1"), "--library", other,
                                         "--calls", 60))
    assert len(results[0]["libraries"]) == 2
    compare("nrt", results, trace)


def test_two_versions():
    """Two versions, one with and one without endbr64, of a library with the same name."""
    results, trace = record_late(standin("nrt", "--library", library_path("libnrt.so.1"),
                                         "--library", library_path("libnrt.so.1", "plain/lib"), "--calls", 60))
    compare("nrt", results, trace)


@cases("a.cpython-313-x86_64-linux-gnu.so", "addon.node", "name with spaces",
       "quote\"and\nnewline\\.so", "\u00fcn\u00efcode \U0001f680.so", "deleted (deleted)")
def test_file_of_another_name(name):
    """The library is found by its symbols, whatever its file is called."""
    results, trace = record_late(standin("nrt", "--library", copy_of("libnrt.so.1", name), "--calls", 40))
    compare("nrt", results, trace)


def test_table_in_file_of_another_name():
    """The same for a runtime that has nothing but the accessor of a table."""
    results, trace = record_late(standin("pjrt", "--library", copy_of("pjrt_plugin.so", "wheel.abi3.so"),
                                         "--calls", 40))
    compare("pjrt", results, trace)


@cases("inside", "static")
def test_linked_into_the_program(how):
    """The runtime is part of the executable, known by its symbol table only."""
    for runtime in ("nrt", "qaic"):
        workload = Workload([workload_path("%s-%s" % (how, runtime)), runtime, "--wait-for-go", "--calls", 60])
        results, trace = record_late(workload)
        compare(runtime, results, trace)


def test_deleted_file():
    """The library's file was deleted after it was loaded."""
    library = copy_of("libnrt.so.1", "libnrt.so.1")
    workload = standin("nrt", "--library", library, "--calls", 60)
    os.unlink(library)
    results, trace = record_late(workload)
    compare("nrt", results, trace)


def test_replaced_file():
    """The file was replaced by another build, as upgrades do: the one that is mapped counts."""
    library = copy_of("libnrt.so.1", "libnrt.so.1")
    workload = standin("nrt", "--library", library, "--calls", 60)
    os.rename(copy_of("libcuda.so.1", "other"), library)
    results, trace = record_late(workload)
    compare("nrt", results, trace)


def in_namespace(script, *arguments):
    """A workload below unshare and a shell: script sees the arguments as $@, and ends with exec."""
    if run(["unshare", "-m", "true"]).status != 0:
        raise Skip("no new mount namespace can be made here")
    return ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh"] + [str(one) for one in arguments]


def test_mount_namespace():
    """The library lies on a file system that only the target has mounted."""
    folder = scratch()
    script = "mount -t tmpfs none \"$1\"; cp \"$2\" \"$1/libnrt.so.1\"; shift 2; exec \"$@\""
    workload = Workload(in_namespace(script, folder, library_path("libnrt.so.1"), workload_path("workload"), "nrt",
                                     "--wait-for-go", "--calls", 60, "--library",
                                     os.path.join(folder, "libnrt.so.1")))
    assert not os.listdir(folder), "the host sees the library: the test proves nothing"
    results, trace = record_late(workload)
    compare("nrt", results, trace)


def test_mount_namespace_other_file_at_path():
    """The host has another library at the same path: the target's own is traced."""
    folder = scratch()
    path = os.path.join(folder, "libnrt.so.1")
    shutil.copy(library_path("libQAic.so"), path)
    script = "mount --bind \"$1\" \"$2\"; shift 2; exec \"$@\""
    workload = Workload(in_namespace(script, library_path("libnrt.so.1", "plain/lib"), path,
                                     workload_path("workload"), "nrt", "--wait-for-go", "--calls", 60,
                                     "--library", path))
    results, trace = record_late(workload)
    compare("nrt", results, trace)


def test_changed_root():
    """The target lives in a root of its own, where none of its paths exists outside."""
    root = scratch()
    script = ("cd \"$1\"; mkdir -p proc dev lib64 lib usr bin; mount -t proc proc proc;"
              "for each in /lib /lib64 /usr; do mkdir -p \".$each\"; mount --bind \"$each\" \".$each\"; done;"
              "mkdir -p opt/lib; cp \"$2\" opt/workload; cp \"$3\" opt/lib; exec chroot . /opt/workload nrt "
              "--wait-for-go --calls 60")
    workload = Workload(in_namespace("mount -t tmpfs none \"$1\"; " + script, root, workload_path("workload"),
                                     library_path("libnrt.so.1")))
    assert not os.path.exists("/opt/workload")
    results, trace = record_late(workload)
    compare("nrt", results, trace)


def test_pid_namespace():
    """The target has another PID inside its namespace; the trace has the one outside."""
    command = ["unshare", "-p", "-f", "--mount-proc", "--kill-child", workload_path("workload"), "nrt",
               "--wait-for-go", "--calls", "40"]
    if run(["unshare", "-p", "-f", "--mount-proc", "true"]).status != 0:
        raise Skip("no new PID namespace can be made here")
    workload = Workload(command)
    with open("/proc/%d/task/%d/children" % (workload.pid, workload.pid), encoding="ascii") as file:
        outside = int(file.read().split()[0])
    assert workload.inside_pid == 1 and outside != 1
    recorder = Recorder("-p", outside)
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    trace.check()
    results[0]["pid"] = outside
    compare_calls(results, trace)
    compare_programs(results, trace)


def test_time_namespace():
    """The target has clocks of its own: the trace has the kernel's. A collector with such clocks would mix both, and does not start."""
    own = ["unshare", "--time", "--monotonic", "500000", "--boottime", "1000000", "--fork", "--kill-child"]
    if run([*own, "true"]).status != 0:
        raise Skip("no new time namespace can be made here")
    recorder = Recorder("--", *own, workload_path("workload"), "nrt", "--calls", "40", "--programs", "1", "--log-times", wait=False)
    trace = recorder.finish()
    result, = results_in(recorder.stdout)
    compare("nrt", [result], trace)
    offset = 500000 * 10 ** 9
    seen = sorted(call.start * 1000 for call in trace.runs())
    assert len(seen) == 40
    for begun, ended, start in zip(sorted(result["times"]), sorted(result["ends"]), seen):
        assert begun - offset - 1e6 < start < ended - offset + 1e6, (begun, start, ended)
    for status, command in ((125, ["record", "-o", os.path.join(scratch(), "none.json"), "--", "true"]), (1, ["check"])):
        refused = run([*own, need(XPUTRACE, "collector"), *command])
        said = refused.stdout + refused.stderr
        assert refused.status == status and "time namespace" in said and "nsenter --time" in said, (refused.status, said)


PYTHON_TARGET = """
import ctypes, mmap, os, sys
{before}
runtime = ctypes.CDLL(sys.argv[1])
model = ctypes.c_void_p()
neff = ctypes.create_string_buffer(b"\\0" * 0xdc + b"from python", 2048)
print('{{"ready":true,"pid":%d}}' % os.getpid(), flush=True)
sys.stdin.readline()
assert runtime.nrt_load(neff, ctypes.c_size_t(2048), 0, -1, ctypes.byref(model)) == 0
for _ in range(25):
    assert runtime.nrt_execute(model, None, None) == 0
print('{{"runtime":"nrt","pid":%d,"libraries":[{{"inferences":[],"calls":['
      '{{"function":"nrt_load","program":"from python","count":1,"size":2048}},'
      '{{"function":"nrt_execute","program":"from python","count":25,"status":0}}]}}]}}' % os.getpid())
"""


def python_target(before=""):
    return [sys.executable, "-c", PYTHON_TARGET.format(before=before), library_path("libnrt.so.1")]


def test_python_program():
    """An interpreter that opens the library through ctypes."""
    results, trace = record_late(Workload(python_target()))
    compare("nrt", results, trace)


def hostile_copies():
    """Files that begin like a library and are none."""
    with open(library_path("libnrt.so.1"), "rb") as file:
        good = file.read()
    folder = scratch()
    broken = {
        "truncated": good[:len(good) // 3],
        "header only": good[:64],
        "section headers beyond the end": good[:40] + (2 ** 62).to_bytes(8, "little") + good[48:],
        "many sections": good[:60] + b"\xff\xff" + good[62:],
        "many segments": good[:56] + b"\xff\xff" + good[58:],
        "text": b"#!/bin/sh\n" * 1000,
        "empty symbols": good.replace(b"nrt_", b"\0\0\0\0"),
        "32-bit class": good[:4] + b"\x01" + good[5:],
        "big endian": good[:5] + b"\x02" + good[6:],
        "ones": good[:64] + b"\xff" * 8192,
    }
    for name, data in broken.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return folder


def test_hostile_files_are_mapped():
    """Truncated and hostile ELF files are mapped executable: the good library is traced all the same."""
    before = ("maps = [mmap.mmap(os.open(os.path.join({0!r}, name), os.O_RDONLY), 0, mmap.MAP_PRIVATE, "
              "mmap.PROT_READ | mmap.PROT_EXEC) for name in os.listdir({0!r})]").format(hostile_copies())
    results, trace = record_late(Workload(python_target(before)))
    compare("nrt", results, trace)


def test_file_shrinks_while_mapped():
    """A mapped file that is cut to nothing afterwards must not hurt the collector."""
    path = copy_of("libcuda.so.1", "shrunk.so")
    before = ("maps = mmap.mmap(os.open({0!r}, os.O_RDONLY), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC);"
              "os.truncate({0!r}, 100)").format(path)
    results, trace = record_late(Workload(python_target(before)))
    compare("nrt", results, trace)


def test_library_opened_many_times():
    """Opened, called and closed again and again under record -- CMD: each time is traced."""
    code = ("import _ctypes, ctypes, sys\n"
            "for i in range(30):\n"
            "    handle = _ctypes.dlopen(sys.argv[1], 2)\n"
            "    init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_ctypes.dlsym(handle, 'nrt_unload'))\n"
            "    assert init(None) == 3\n"
            "    _ctypes.dlclose(handle)\n")
    _, trace, recorder = record_command([sys.executable, "-c", code, library_path("libnrt.so.1")])
    assert not results_in(recorder.stdout)
    unloads = trace.of("nrt_unload")
    assert len(unloads) == 30, "made 30 calls, traced %d" % len(unloads)
