# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: programs to trace, the collector, the trace as an independent reader sees it."""

import atexit
import collections
import contextlib
import ctypes
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("XPUTRACE_BUILD", os.path.join(ROOT, "build"))
XPUTRACE = os.path.join(BUILD, "xputrace")
WORKLOADS = os.environ.get("XPUTRACE_WORKLOADS", os.path.join(BUILD, "workload"))
NPM = os.path.join(BUILD, "npm")
SLOW = float(os.environ.get("XPUTRACE_E2E_SLOW", "1"))  # times slower than a real machine, as an emulated one is
TIMEOUT = 60 * min(SLOW, 5)  # seconds that anything may take before a test is given up
NOBODY = 65534
# An emulated machine needs longer than threads wait for their probes, and so may one where other tests place probes. That the
# default is enough is what those say that run alone.
BESIDE = bool(os.environ.get("XPUTRACE_E2E_BESIDE"))
WAITING = ["--wait-limit", "60s"] if SLOW > 1 else ["--wait-limit", "5s"] if BESIDE else []
os.environ["XPUTRACE_E2E_RUNNER"] = str(os.getpid())  # inherited also by processes that a collector detaches


class Skip(Exception):
    """The test cannot be made here; the text says why."""


def cases(*names):
    """The test function is run once for each name, which is its argument."""
    def mark(function):
        function.cases = names
        return function
    return mark


def alone(reason):
    """The test is not run beside others. A file whose tests all are so has ALONE = reason."""
    def mark(function):
        function.alone = reason
        return function
    return mark


def paired(reason):
    """The test is run beside one at most that is marked for another reason; threads wait for probes as by default. PAIRED for a file."""
    def mark(function):
        function.paired = reason
        return function
    return mark


def need(path, what):
    """What the build makes must be there: without it nothing would be tested, so that is a failure."""
    assert os.path.exists(path), "%s is missing: %s" % (what, os.path.relpath(path, ROOT))
    return path


def workload_path(name):
    return need(os.path.join(WORKLOADS, name), "workload")


def library_path(name, flavour="lib"):
    return need(os.path.join(WORKLOADS, flavour, name), "stand-in library")


# ---- temporary folders, removed at the end ----

_folders = []
_passing = []


def scratch(passing=False):
    """A folder that everyone can enter and read, for traces and copies. passing: it goes with the test, not at the end."""
    folder = tempfile.mkdtemp(prefix="xputrace-e2e-")
    os.chmod(folder, 0o755)
    (_passing if passing else _folders).append(folder)
    return folder


def passing():
    """Those that go with the test."""
    return list(_passing)


@atexit.register
def _remove_folders():
    for folder in _folders + _passing:
        shutil.rmtree(folder, ignore_errors=True)


def clean_up():
    """After a test, also one that failed half way: what it has left is of no use."""
    kill_all()
    while _passing:
        shutil.rmtree(_passing.pop(), ignore_errors=True)


# ---- processes ----

def public(path):
    """The program; where others may not enter a folder above it, as the home of a user, a copy that they can run."""
    folder = os.path.dirname(os.path.realpath(path))
    while folder != "/" and os.stat(folder).st_mode & 1:
        folder = os.path.dirname(folder)
    return path if folder == "/" else shutil.copy(path, scratch(passing=True))


def wait_end(child, timeout):
    """Whether a subprocess ends in time; it is known at once, where child.wait(timeout) looks every 50 ms."""
    with contextlib.suppress(ProcessLookupError):  # somebody else has waited for it
        process = os.pidfd_open(child.pid) if child.returncode is None else None
        if process is not None:
            ended = select.select([process], [], [], timeout)[0]
            os.close(process)
            if not ended:
                return False
    child.wait()
    return True


class Process:
    """A child whose output is collected by threads, so that lines can be waited for without polling."""

    running = []

    def __init__(self, arguments, **options):
        if "user" in options:
            arguments = [public(arguments[0])] + list(arguments[1:])
        self.arguments = arguments
        self.lines = {"stdout": [], "stderr": []}
        self.arrived = {"stdout": [], "stderr": []}  # when each line came: CLOCK_REALTIME in ns
        self._changed = threading.Condition()
        self._open = 2
        self.begun = time.time_ns()
        self.child = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, **options)
        self.pid = self.child.pid
        self._readers = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.lines]
        for reader in self._readers:
            reader.start()
        Process.running.append(self)

    def _read(self, name):
        for line in getattr(self.child, name):
            with self._changed:
                self.arrived[name].append(time.time_ns())
                self.lines[name].append(line.decode("utf-8", "replace"))
                self._changed.notify_all()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    @property
    def stdout(self):
        return "".join(self.lines["stdout"])

    @property
    def stderr(self):
        return "".join(self.lines["stderr"])

    def wait_line(self, stream, text, number=1):
        """The first line of the stream that contains text; or the second, third... such line."""
        deadline = time.monotonic() + TIMEOUT
        seen = 0
        with self._changed:
            while True:
                for line in self.lines[stream][seen:]:
                    if text in line:
                        number -= 1
                        if not number:
                            return line
                seen = len(self.lines[stream])
                if not self._open or time.monotonic() > deadline:
                    raise AssertionError("%s: no line with \"%s\" on %s; output was:\n%s%s" % (
                        os.path.basename(self.arguments[0]), text, stream, self.stdout, self.stderr))
                self._changed.wait(0.5)

    def take(self, stream):
        """The lines that have come since, and when, of a process that would fill memory with them. Nobody waits for them any more."""
        with self._changed:
            taken, self.lines[stream], self.arrived[stream] = list(zip(self.lines[stream], self.arrived[stream])), [], []
        return taken

    def send(self, text):
        try:
            self.child.stdin.write(text.encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            pass

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self):
        """Exit status, negative for a signal."""
        if not wait_end(self.child, TIMEOUT):
            self.kill()
            raise AssertionError("%s did not end; output was:\n%s%s" % (
                " ".join(self.arguments), self.stdout, self.stderr))
        for reader in self._readers:
            reader.join(TIMEOUT)
        self.child.stdin.close()
        if self in Process.running:
            Process.running.remove(self)
        return self.child.returncode

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        if self in Process.running:
            Process.running.remove(self)


def kill_all():
    for process in list(Process.running):
        process.kill()


def run(arguments, **options):
    """Runs to the end; status, stdout and stderr as attributes."""
    process = Process(arguments, **options)
    process.child.stdin.flush()
    process.status = process.wait()
    return process


@functools.cache
def tracefs():
    """The root folder of a tracefs that no mount namespace shows, whether one is mounted or not; children can use the path."""
    libc = ctypes.CDLL(None, use_errno=True)
    context = libc.syscall(430, b"tracefs", 0)  # fsopen
    if context < 0 or libc.syscall(431, context, 6, None, None, 0):  # fsconfig: FSCONFIG_CMD_CREATE
        raise Skip("tracefs cannot be opened: " + os.strerror(ctypes.get_errno()))
    root = libc.syscall(432, context, 0, 0)  # fsmount
    os.close(context)
    assert root >= 0, os.strerror(ctypes.get_errno())
    return "/proc/%d/fd/%d" % (os.getpid(), root)


def has_tracepoint(name):
    return os.path.isdir(os.path.join(tracefs(), "events", *name.split(":")))


TRACEFS_STATES = ("own", "mounted", "elsewhere", "nowhere")


def with_tracefs(state, arguments, **options):
    """run() in a mount namespace with tracefs mounted nowhere, at its usual place, or in another folder; of its own is what a
    program may open only in the first case: in the others it has no CAP_SYS_ADMIN. What /proc/mounts has of it comes last on
    standard error."""
    mount = {"own": "", "nowhere": "", "mounted": "mount -t tracefs tracefs /sys/kernel/tracing",
             "elsewhere": "mount -t tracefs tracefs %s" % scratch()}[state]
    script = ("umount -a -l -t tracefs; mount -t tmpfs none /sys/kernel/debug; ! grep -q ' tracefs ' /proc/mounts || exit 9; %s\n"
              "\"$@\"; status=$?; grep ' tracefs ' /proc/mounts >&2; exit $status" % mount)
    reduced = [] if state == "own" else ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    result = run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"] + reduced +
                 [str(argument) for argument in arguments], **options)
    if result.status == 9:
        raise Skip("tracefs cannot be unmounted here")
    assert result.stderr.count(" tracefs rw") == (state in ("mounted", "elsewhere")), result.stderr
    return result


def cpu_seconds(pid):
    """User and system time of a process, also when it has ended and nobody has waited for it."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def process_state(pid):
    """One letter, as in ps; "" when the process is gone."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1]
    except OSError:
        return ""


def wait_until(condition, what, timeout=TIMEOUT):
    """For what no event can be waited for, as the state of a process that is not ours."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("after %d s still not: %s" % (timeout, what))
        time.sleep(0.01)


class Workload(Process):
    """A program to trace that waits for the go."""

    def __init__(self, arguments, **options):
        super().__init__([str(argument) for argument in arguments], **options)
        line = json.loads(self.wait_line("stdout", '"ready"'))
        self.inside_pid = line["pid"]  # differs from pid in a PID namespace, or below a shell

    def go(self):
        self.send("\n")

    def results(self):
        """What it printed, one object for each process. Ends it when it has not ended."""
        status = self.wait()
        assert status == 0, "workload ended with %d: %s" % (status, self.stderr)
        return results_in(self.stdout)

    def stop(self):
        """Tells one that runs without end to stop; its results."""
        self.signal(signal.SIGTERM)
        return self.results()


def results_in(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"runtime"')]


def standin(runtime, *options, program="workload"):
    return Workload([workload_path(program), runtime, "--wait-for-go"] + list(options))


class Recorder(Process):
    """xputrace record. For a running target: waits until it has attached."""

    def __init__(self, *arguments, output=None, wait=True, prefix=(), **options):
        self.output = output or os.path.join(scratch(), "trace.json")
        need(XPUTRACE, "collector")
        words = list(prefix) + [XPUTRACE, "record", "-o", self.output] + WAITING + [str(word) for word in arguments]
        super().__init__(words, **options)
        if wait:  # a line comes for each target
            targets = str(arguments[arguments.index("-p") + 1]).count(",") + 1 if "-p" in arguments else 1
            self.wait_line("stderr", "attached", targets)

    def finish(self, status=0):
        """Waits for its end and returns the trace."""
        result = self.wait()
        assert result == status, "xputrace ended with %d instead of %d:\n%s%s" % (
            result, status, self.stdout, self.stderr)
        return Trace(self.output)

    def stop(self, number=signal.SIGINT):
        self.signal(number)
        return self.finish()


def record_late(workload, *options):
    """Attaches to a workload that waits, lets it run to its end. The workload's results and the trace."""
    recorder = Recorder("-p", workload.pid, *options)
    workload.go()
    results = workload.results()
    return results, recorder.finish()


def record_command(command, *options, status=0, **process_options):
    """xputrace record -- command: the command's results, the trace, the recorder."""
    recorder = Recorder(*options, "--", *command, wait=False, **process_options)
    trace = recorder.finish(status)
    results = results_in(recorder.stdout)
    assert results or " was ended by signal " not in recorder.stderr, "the command has not survived: " + recorder.stderr
    return results, trace, recorder


# ---- the trace ----

def plain_name(function):
    """Functions in the slots of a table may be written with the table's prefix."""
    for prefix in ("PJRT_", "OrtApi::"):
        if function.startswith(prefix):
            return function[len(prefix):]
    return function


class Call:
    """One traced call, from a complete ("X") or an instant ("i") event."""

    def __init__(self, event):
        arguments = event["args"]
        self.event = event
        self.function = plain_name(arguments["function"])
        self.role = arguments["role"]
        self.runtime = event["cat"].split(",")[0]
        self.pid, self.tid = event["pid"], event["tid"]
        self.start = event["ts"]
        self.duration = event.get("dur", 0)
        self.end = self.start + self.duration
        self.entry_only = event["ph"] == "i"
        self.program = arguments.get("program")
        self.handle = hexadecimal(arguments.get("handle"))
        self.stream = hexadecimal(arguments.get("stream"))
        self.key = hexadecimal(arguments.get("key"))
        self.size = arguments.get("size")
        self.core = arguments.get("core")
        self.status = arguments.get("status")
        self.layer = arguments.get("layer", False)
        self.failed = arguments.get("failed", False)
        self.sample = arguments.get("sample", 1)


def hexadecimal(text):
    return None if text is None else int(text, 16)


RUNS = ("execute", "enqueue", "launch")


class Trace:
    """A Chrome trace, read with Python's own JSON parser."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8", errors="strict") as file:
            self.document = json.load(file)
        self.events = self.document["traceEvents"]
        self.metadata = self.document["metadata"]
        self.calls = [Call(event) for event in self.events
                      if event["ph"] in "Xi" and "role" in event.get("args", {}) and "function" in event["args"]]
        self.inferences = [event for event in self.events
                           if event["ph"] == "b" and event.get("cat", "").startswith("inference,")]

    @property
    def complete(self):
        return self.metadata.get("complete") is True

    def of(self, *functions, pid=None, layer=None):
        return [call for call in self.calls if call.function in functions and (pid is None or call.pid == pid)
                and (layer is None or call.layer == layer)]

    def runs(self, runtime=None, pid=None):
        """Executions of programs, without those that are a layer of another one."""
        return [call for call in self.calls if call.role in RUNS and not call.layer
                and (runtime is None or call.runtime == runtime) and (pid is None or call.pid == pid)]

    def programs(self, pid=None, runtime=None):
        return [program for program in self.metadata["programs"]
                if (pid is None or program["pid"] == pid) and (runtime is None or program["runtime"] == runtime)]

    def losses(self):
        """Causes with what was lost by them. Calls that never returned are no loss of ours."""
        return {cause: count for cause, count in self.metadata["lost"].items() if count}

    def check(self):
        """What must be true of every complete trace."""
        assert self.complete, "the trace does not say that it is complete"
        check_nesting(self.events)
        check_flows(self)
        still_open = 0
        for program in self.metadata["programs"]:
            if "calls" not in program:  # loaded, but never run
                continue
            total = program["recorded"] + program["left_out"] + program["lost"]
            assert program["calls"] >= total, "fewer calls than recorded + left out + lost: %s" % program
            still_open += program["calls"] - total
        assert still_open <= self.losses().get("open", 0), "%d calls of programs are missing, but only %d open: %s" % (
            still_open, self.losses().get("open", 0), self.metadata["programs"])


def check_nesting(events):
    """Complete events of one thread contain each other or lie apart."""
    threads = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            threads[event["pid"], event["tid"]].append((start, -round(event["dur"] * 1000), event["name"]))
    for thread, spans in threads.items():
        stack = []
        for start, negative, name in sorted(spans):
            end = start - negative
            while stack and stack[-1][0] <= start:
                stack.pop()
            assert not stack or end <= stack[-1][0], "thread %s: \"%s\" at %d ns overlaps \"%s\"" % (
                thread, name, start, stack[-1][1])
            stack.append((end, name))


def check_flows(trace):
    """Every arrow that ends has begun, earlier, exactly once."""
    begun = collections.Counter(event["id"] for event in trace.events if event["ph"] == "s")
    assert not [one for one, count in begun.items() if count != 1], "an arrow begins twice"
    for event in trace.events:
        if event["ph"] == "f":
            assert event["id"] in begun, "an arrow ends that never began: %s" % event


# ---- comparing with what the workload says ----

# Functions with a role: they must be in the trace. Others may be, and are then compared in the same way.
REQUIRED = {
    "nrt": """nrt_load nrt_load_collectives nrt_unload nrt_execute nrt_tensor_allocate nrt_tensor_free nrt_tensor_read
        nrt_tensor_write nrt_tensor_copy nrta_execute_schedule nrta_tensor_write nrta_tensor_read nrta_tensor_copy
        nrta_is_completed""",
    "qaic": """qaicOpenQpc qaicCloseQpc qaicCreateProgram qaicReleaseProgram qaicCreateExecObj qaicReleaseExecObj
        qaicEnqueueExecObj qaicExecObjWaitForCompletion""",
    "vaccel": """vaccel_resource_new vaccel_resource_from_blobs vaccel_resource_delete vaccel_tf_model_run vaccel_torch_model_run""",
    "hip": """hipSetDevice hipMalloc hipFree hipMemcpy hipMemcpyAsync hipModuleLoad hipModuleUnload
        hipModuleGetFunction hipModuleLaunchKernel hipLaunchKernel hipStreamSynchronize hipDeviceSynchronize
        __hipRegisterFunction""",
    "cuda": """cuModuleLoad cuModuleUnload cuModuleGetFunction cuLaunchKernel cuLaunchKernelEx cuMemAlloc_v2
        cuMemFree_v2 cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoDAsync_v2 cuStreamSynchronize cuCtxSynchronize""",
    "cudart": """cudaSetDevice cudaMalloc cudaFree cudaMemcpy cudaMemcpyAsync cudaLaunchKernel cudaStreamSynchronize
        cudaDeviceSynchronize __cudaRegisterFunction""",
    "pjrt": """Client_Compile Executable_Name LoadedExecutable_Destroy LoadedExecutable_Execute Event_Await
        Client_BufferFromHostBuffer Buffer_ToHostBuffer""",
    "llama": """llama_model_load_from_file llama_model_free llama_init_from_model llama_free llama_decode
        llama_synchronize""",
    "opencl": "clEnqueueNDRangeKernel clEnqueueReadBuffer clWaitForEvents clFinish",
    "onnxruntime": "Run",
}

# Functions of the workloads that run a program.
RUNNING = set("""nrt_execute nrta_execute_schedule qaicEnqueueExecObj vaccel_tf_model_run vaccel_torch_model_run
    hipLaunchKernel hipModuleLaunchKernel cuLaunchKernel cuLaunchKernelEx cudaLaunchKernel LoadedExecutable_Execute
    llama_decode clEnqueueNDRangeKernel Run""".split())

FIELDS = ("handle", "size", "core", "stream", "status")


def entries_of(results, kind="calls"):
    return [entry for result in results for library in result["libraries"] for entry in library[kind]]


def expected_value(entry, field):
    value = entry.get(field)
    return int(value, 16) if isinstance(value, str) else value


def known_fields(entries):
    """Values that the workload knows of every call of a function."""
    known = {}
    for entry in entries:
        fields = {field for field in FIELDS if field in entry}
        function = plain_name(entry["function"])
        known[function] = known.get(function, fields) & fields
    return known


def expected_counts(entries, known):
    counts = collections.Counter()
    for entry in entries:
        function = plain_name(entry["function"])
        values = tuple(expected_value(entry, field) if field in known[function] else None for field in FIELDS)
        counts[(function,) + values] += entry["count"]
    return counts


def traced_counts(calls, known):
    counts = collections.Counter()
    for call in calls:
        values = tuple(getattr(call, field) if field in known[call.function] else None for field in FIELDS)
        counts[(call.function,) + values] += 1
    return counts


def describe_difference(expected, traced):
    lines = []
    for key in sorted(set(expected) | set(traced), key=str):
        if expected[key] != traced[key]:
            values = " ".join("%s=%s" % (field, hex(value) if field in ("handle", "stream") else value)
                              for field, value in zip(FIELDS, key[1:]) if value is not None)
            lines.append("  %s %s: made %d, traced %d" % (key[0], values, expected[key], traced[key]))
    return "\n".join(lines[:20])


def compare_calls(results, trace, required=()):
    """The trace has exactly the calls that the processes of results made, with the same values."""
    entries = entries_of(results)
    pids = {result["pid"] for result in results}
    known = known_fields(entries)
    traced = [call for call in trace.calls if call.pid in pids and call.function in known and not call.layer]
    compared = {call.function for call in traced} | ((set(required) | RUNNING) & set(known))
    assert compared, "there is nothing to compare"
    entry_only = {call.function for call in traced if call.entry_only}
    for function in entry_only:  # such a call is recorded before it has a status
        known[function] = known[function] - {"status"}
    expected = expected_counts([entry for entry in entries if plain_name(entry["function"]) in compared], known)
    difference = describe_difference(expected, traced_counts(traced, known))
    assert not difference, "calls differ:\n" + difference


def run_entries(results):
    return [entry for entry in entries_of(results) if plain_name(entry["function"]) in RUNNING]


def file_name(name):
    """Of a program, without the number of one that is there at the same time under the same name."""
    return re.sub(r" #\d+$", "", name)


def compare_programs(results, trace, names=True, totals_in="calls"):
    """By program: as many runs in the trace as were made, and as totals in the metadata; "calls": the kernel's."""
    for result in results:
        pid = result["pid"]
        made = collections.Counter()
        failed = collections.Counter()
        for entry in run_entries([result]):
            key = entry["program"] if names else int(entry["handle"], 16)
            made[key] += entry["count"]
            failed[key] += entry["count"] if entry.get("status", 0) else 0
        assert made, "process %d has run nothing" % pid
        runtimes = {call.runtime for call in trace.runs(pid=pid)}
        traced = collections.Counter(file_name(call.program) if names else call.handle for call in trace.runs(pid=pid))
        assert traced == made, "runs by program: made %s, traced %s" % (dict(made), dict(traced))
        totals = collections.Counter()
        for program in trace.programs(pid=pid):
            if program["runtime"] in runtimes:
                totals[file_name(program["name"]) if names else hexadecimal(program["handle"])] += program.get(totals_in, 0)
        totals = +totals
        assert totals == made, "totals by program: made %s, counted %s" % (dict(made), dict(totals))
    return made, failed


def compare_inferences(results, trace):
    """Every asynchronous inference is one span, with the time that the workload measured around it."""
    made = collections.Counter()
    nanoseconds = collections.Counter()
    for entry in entries_of(results, "inferences"):
        made[entry["program"]] += entry["count"]
        nanoseconds[entry["program"]] += entry["total_ns"]
    pids = {result["pid"] for result in results}
    inferences = [event for event in trace.inferences if event["pid"] in pids]
    traced = collections.Counter(file_name(event["name"]) for event in inferences)
    assert traced == made, "inferences: made %s, traced %s" % (dict(made), dict(traced))
    ends = {(event["id"], event["cat"]): event["ts"] for event in trace.events if event["ph"] == "e"}
    spans = collections.Counter()
    for event in inferences:
        spans[file_name(event["name"])] += (ends[event["id"], event["cat"]] - event["ts"]) * 1000
    for program, total in nanoseconds.items():
        assert spans[program] <= total * 1.01, "inferences of %s are longer than the workload measured" % program


LATE_RATE = round(500 / SLOW)  # slower where probes come later: 300 executions must go on for much longer than that


def compare_late(result, trace, since):
    """A process whose probes may come up to 50 ms late: every execution (one run each) from then on is in the trace.

    Needs --log-times and a --rate of LATE_RATE; since is when the 50 ms begin, in ns."""
    due = since + int(50 * 1000 * 1000 * SLOW)
    made = [(begun, ended) for begun, ended in zip(result["times"], result["ends"]) if begun >= due]
    assert len(made) > len(result["times"]) / 2, "only %d of %d calls come after %d ms: nothing is tested" % (
        len(made), len(result["times"]), (due - since) / 1e6)
    traced = sorted(round(call.start * 1000) for call in trace.runs(pid=result["pid"]))
    assert len(traced) >= len(made), "made %d calls after %d ms, traced %d in all, the first after %.1f ms" % (
        len(made), (due - since) / 1e6, len(traced), (traced[0] - since) / 1e6 if traced else -1)
    for (begun, ended), seen in zip(reversed(made), reversed(traced)):
        assert begun <= seen <= ended, "execution from %d to %d ns, nearest traced at %d" % (begun, ended, seen)


def compare(runtime, results, trace, lossless=True, totals_in="calls"):
    """The whole comparison for one stand-in."""
    trace.check()
    if lossless:
        assert not trace.losses(), "something was lost: %s" % trace.losses()
    made = {plain_name(entry["function"]) for entry in entries_of(results)}
    required = set(REQUIRED[runtime].split())
    compare_calls(results, trace, required & made)
    compare_programs(results, trace, totals_in=totals_in)
    if entries_of(results, "inferences"):
        compare_inferences(results, trace)
