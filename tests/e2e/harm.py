# SPDX-License-Identifier: BSD-2-Clause
"""Programs that check themselves (tests/workload/harm): what they say untraced and traced, who was stopped meanwhile, and what
a collector has left in the kernel."""

import collections
import contextlib
import functools
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys

from harness import SLOW, TIMEOUT, Process, Recorder, Skip, run, workload_path

LONG = bool(int(os.environ.get("XPUTRACE_E2E_LONG", "0")))  # the numbers of a soak test
COUNTED = ("nrt_load", "nrt_execute", "nrt_unload", "nrt_tensor_write")


def program(name, *words):
    return [workload_path("harm/" + name), *[str(word) for word in words]]


class Outcome:
    """What a program has printed, and how it has ended."""

    def __init__(self, text, status):
        lines = [json.loads(line) for line in text.splitlines() if line.startswith(('{"program"', '{"child"'))]
        main = [line for line in lines if "program" in line]
        assert len(main) <= 1, "%d results: %s" % (len(main), text)
        self.status, self.states = status, None
        self.result = main[0] if main else {}
        self.children = [(line["child"], line["calls"]) for line in lines if "child" in line]

    @property
    def compared(self):
        """What is the same in every run."""
        results = self.result.get("results")
        if SLOW > 1 and isinstance(results, dict):  # the clocks of emulated processors differ: a wait may seem short
            results = {name: value for name, value in results.items() if name != "early"}
        return self.status, self.result.get("program"), results, self.result.get("family"), len(self.children)

    @property
    def pid(self):
        return self.result["pid"]

    def made(self):
        """Calls by process and function, without those that were not made."""
        made = {pid: collections.Counter(calls) for pid, calls in self.children}
        if "calls" in self.result:
            made[self.pid] = collections.Counter(self.result["calls"])
        return {pid: +calls for pid, calls in made.items()}


@functools.lru_cache(maxsize=None)
def _untraced(words):
    process = run(list(words), start_new_session=True)
    return Outcome(process.stdout, process.status)


def untraced(words):
    return _untraced(tuple(words))


def compare_outcome(outcome, words, may_stop=False):
    """The same as untraced, and nobody was seen stopped; may_stop: the program stops processes itself."""
    expected, seen = untraced(words), outcome.states
    differences = []
    if outcome.compared != expected.compared:
        differences.append("traced   %s\nuntraced %s" % (outcome.compared, expected.compared))
    if not may_stop and seen:
        assert seen["looks"] > 1, "nobody has looked"
        if seen["stopped"]:
            differences.append("%(stopped)d of %(processes)d processes were stopped at once, the first: %(first)s" % seen)
    assert not differences, "\n".join(differences)


def compare_calls(outcome, trace, functions=COUNTED):
    """All calls that the processes have counted, and no others, are in the trace."""
    made = {pid: {name: calls[name] for name in functions if calls[name]} for pid, calls in outcome.made().items()}
    traced = collections.defaultdict(collections.Counter)
    for call in trace.calls:
        if call.function in functions:
            traced[call.pid][call.function] += 1
    made = {pid: calls for pid, calls in made.items() if calls}
    assert made, "there is nothing to compare"
    assert traced == made, "calls by process: made %s, traced %s, lost %s" % (made, dict(traced), trace.losses())


# ---- tracing ----

ENDED = re.compile(r"^xputrace: \S+ (ended with status|was ended by signal) (\d+)", re.MULTILINE)


def command_status(process):
    """How the command of `record -- command` has ended, as the collector says: negative for a signal."""
    said = ENDED.search(process.stderr)
    if not said:
        return 0
    return int(said[2]) if "status" in said[1] else -int(said[2])


def record_command(words, *options):
    """xputrace record -- words: outcome and trace."""
    recorder = Recorder(*options, "--exit-status", "own", "--", *words, wait=False, start_new_session=True)
    with States(recorder.pid) as states:
        trace = recorder.finish()
    outcome = Outcome(recorder.stdout, command_status(recorder))
    outcome.states = states.seen
    return outcome, trace


class Target(Process):
    """A program that waits for the go, in a session of its own."""

    def __init__(self, words, **options):
        super().__init__([words[0], "--wait-for-go", *words[1:]], start_new_session=True, **options)
        self.wait_line("stdout", '"ready"')

    def go(self):
        self.send("\n")

    def outcome(self):
        status = self.wait()
        return Outcome(self.stdout, status)


def record_late(words, *options):
    """The same with xputrace record -p of a program that waits."""
    target = Target(words)
    recorder = Recorder("-p", target.pid, *options)
    with States(target.pid) as states:
        target.go()
        outcome = target.outcome()
        trace = recorder.finish()
    outcome.states = states.seen
    return outcome, trace


def record(how, words, *options):
    """how: "command" or "attach"."""
    return (record_command if how == "command" else record_late)(words, *options)


# ---- states of processes ----

def members(session, name=None):
    """PIDs and states of a session's processes that have not ended; of this name only."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % pid, encoding="utf-8", errors="replace") as file:
                begin, _, end = file.read().rpartition(") ")
        except OSError:
            continue
        state, _, _, its = end.split()[:4]
        if int(its) == session and state not in "ZX" and name in (None, begin.partition(" (")[2]):
            found[int(pid)] = state
    return found


def stopped_members(session):
    return {pid: state for pid, state in members(session).items() if state in "Tt"}


def end_session(session):
    """What a test that has failed leaves: stopped processes, and parents that wait for them."""
    for _ in range(3):
        for pid in members(session):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class States:
    """Looks at the processes of a session while the block runs; ends them if it fails."""

    def __init__(self, session, enough=1):
        self.session, self.enough, self.seen = session, enough, None

    def __enter__(self):
        self.process = subprocess.Popen([workload_path("harm/states"), str(self.session), str(self.enough)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def wait_enough(self):
        """Until it has seen as many processes at once as are enough."""
        ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT)
        assert ready and os.read(self.process.stdout.fileno(), 7) == b"enough\n", "never %d processes" % self.enough

    def __exit__(self, kind, value, traceback):
        self.seen = json.loads(self.process.communicate(timeout=TIMEOUT)[0].splitlines()[-1])
        if kind:
            stopped = stopped_members(self.session)
            end_session(self.session)
            if isinstance(value, AssertionError):
                value.args = ("%s\nof %d processes %d were stopped at once, the first: %s; now %d are" % (
                    value, self.seen["processes"], self.seen["stopped"], self.seen["first"], len(stopped)),)


# ---- what a collector has in the kernel ----

def bpftool():
    for path in (shutil.which("bpftool"), "/usr/sbin/bpftool"):
        if path and run([path, "version"]).status == 0:
            return path
    raise Skip("bpftool is not installed")


def held_by(pid):
    """Links and programs of a process, as (kind, id): of descriptors, and programs of these links."""
    found, names = set(), []
    with contextlib.suppress(OSError):  # it has ended
        names = os.listdir("/proc/%d/fdinfo" % pid)
    for name in names:
        with contextlib.suppress(OSError):  # it has closed this one
            with open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii", errors="replace") as file:
                found |= {(line.partition("_id:")[0], int(line.split()[1])) for line in file
                          if line.startswith(("link_id:", "prog_id:"))}
    return found


def in_kernel():
    """All links and programs that exist."""
    found = set()
    for kind in ("link", "prog"):
        shown = run([bpftool(), kind, "show", "-j"])
        assert shown.status == 0, shown.stderr
        found |= {(kind, one["id"]) for one in json.loads(shown.stdout)}
    return found


def links_and_maps(pid):
    """Identifiers of links and maps that its descriptors are."""
    found = collections.defaultdict(set)
    for path in glob.glob("/proc/%d/fdinfo/*" % pid):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            for line in file:
                kind, _, number = line.partition(":\t")
                if kind in ("link_id", "map_id"):
                    found[kind].add(int(number))
    return found


def map_shown(pid, verb, number):
    """What bpftool shows of a map of the process; None: it has closed it since."""
    shown = run([bpftool(), "map", verb, "id", str(number), "-j"])
    if shown.status and number not in links_and_maps(pid)["map_id"]:
        return None
    assert not shown.status, "bpftool map %s id %d: %s%s" % (verb, number, shown.stdout, shown.stderr)
    return json.loads(shown.stdout)


def map_entries(pid):
    """Number of entries of each hash map, by its name."""
    found = collections.Counter()
    for number in links_and_maps(pid)["map_id"]:
        shown = map_shown(pid, "show", number)
        entries = map_shown(pid, "dump", number) if shown and "hash" in shown["type"] else None
        if entries is not None:
            found[shown.get("name", str(number))] += len(entries)
    return found


def writers_of(pid):
    """The processes that write for a collector: into its folder, and to its standard error."""
    folder, messages = (os.readlink("/proc/%d/%s" % (pid, name)) for name in ("cwd", "fd/2"))
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/comm" % entry, encoding="ascii", errors="replace") as file:
                name = file.read()
            if name == "xputrace-writer\n":
                output = os.readlink("/proc/%s/fd/0" % entry)
                if output == messages or output.startswith(folder + "/"):
                    found.append(int(entry))
    return found


def helpers(name):
    """/proc/PID/status of the processes of this name that collectors of this runner have begun."""
    mine = b"XPUTRACE_E2E_RUNNER=%d" % os.getpid()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/status" % pid, encoding="ascii", errors="replace") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            if status["Name"] != name:
                continue
            with open("/proc/%s/environ" % pid, "rb") as environment:
                if mine in environment.read().split(b"\0"):
                    yield {name: value.strip() for name, value in status.items()}


def note(text):
    """A figure, beside the result of the test."""
    print("        " + text)
    sys.stdout.flush()
