# SPDX-License-Identifier: BSD-2-Clause
"""Names from the target never break the trace: quotes, control bytes, invalid UTF-8, bad pointers, 1 MB."""

import os
import subprocess
import sys

from harness import (Recorder, Workload, compare_calls, entries_of, record_late, scratch, standin, workload_path)

# In the order of tests/workload/scenario/hostile.c; None: what cannot be read has no name.
NAMES = [
    b"plain",
    b"quote\" backslash\\ slash/",
    b"new\nline\ttab\rreturn\x1b[31mescape\x07",
    b"\x01\x02\x1f\x7f",
    b"invalid \xff\xfe utf-8 \xc3",
    b"overlong \xc0\xaf surrogate \xed\xa0\x80 too large \xf4\x90\x80\x80",
    "\u2028separator \U0001f680".encode(),
    b"</script><b>&amp;%s%n%1000000d",
    b"\"},{\"name\":\"injected\",\"ph\":\"i\",\"ts\":0",
    b"",
    b"L" * (1 << 20),
    b"unterminated",
    None,
    None,
    None,
]


def names_by_handle(results):
    numbers = {}
    for entry in entries_of(results):
        if entry["function"] == "cuModuleGetFunction":
            numbers[int(entry["handle"], 16)] = int(entry["program"].rsplit(".", 1)[1])
    return numbers


def check_names(results, trace):
    numbers = names_by_handle(results)
    assert len(numbers) == len(NAMES)
    by_handle = {}
    for call in trace.runs():
        by_handle.setdefault(call.handle, []).append(call.program)
    for handle, number in numbers.items():
        shown = set(by_handle[handle])
        assert len(shown) == 1, "name number %d is shown as %s" % (number, shown)
        shown, = shown
        assert len(by_handle[handle]) == 5 * (number + 1), "name number %d" % number
        original = NAMES[number]
        if original is None or original == b"unterminated" and shown.startswith("0x"):
            assert shown == "0x%x" % handle, "name number %d is shown as %r" % (number, shown)
            continue
        if not original:
            assert shown in ("", "0x%x" % handle), "the empty name is shown as %r" % shown
            continue
        # what can be shown is shown: the ASCII letters, in their order
        letters = [c for c in original.decode("utf-8", "ignore") if c.isalnum() and c.isascii()]
        seen = [c for c in shown if c.isalnum() and c.isascii()]
        assert seen[:200] == letters[:200], "name number %d is shown as %r" % (number, shown[:300])
        assert len(shown) <= 2000, "a name of %d characters" % len(shown)


def test_names():
    """As JSON: each name is there as far as it can be shown; counts are exact."""
    workload = standin("hostile", "--calls", 5)
    recorder = Recorder("-p", workload.pid)
    workload.go()
    results = workload.results()
    trace = recorder.finish()
    trace.check()
    compare_calls(results, trace, {"cuLaunchKernel", "cuModuleGetFunction"})
    check_names(results, trace)
    assert not [event for event in trace.events if event["name"] == "injected"]
    # the summary on the terminal obeys no escape sequence of the target
    assert "\x1b[31m" not in recorder.stdout and "\x07" not in recorder.stdout


def test_names_through_recording():
    """The same through a recording."""
    from harness import XPUTRACE, Trace, run
    workload = standin("hostile", "--calls", 5)
    folder = scratch()
    recorder = Recorder("-p", workload.pid, output=os.path.join(folder, "recording.xpt"))
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    output = os.path.join(folder, "trace.json")
    assert run([XPUTRACE, "report", recorder.output, "-o", output]).status == 0
    check_names(results, Trace(output))


def test_process_names():
    """Names of threads and processes, and command lines."""
    name = "\"\\\n\x01'</b>"
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", 10, "--name", name])
    results, trace = record_late(workload)
    trace.check()
    compare_calls(results, trace, {"nrt_execute"})
    names = [event["args"]["name"] for event in trace.events
             if event["ph"] == "M" and event["name"] == "process_name" and event["pid"] == workload.pid]
    assert names and all("'</b>" in one for one in names), names


def test_independent_reader():
    """Another JSON parser reads the hostile trace too."""
    results, trace = record_late(standin("hostile", "--calls", 1))
    compare_calls(results, trace)
    subprocess.run([sys.executable, "-m", "json.tool", trace.path, os.devnull], check=True)
    try:
        subprocess.run(["node", "-e", "JSON.parse(require('fs').readFileSync(process.argv[1], 'utf8'))", trace.path],
                       check=True)
    except FileNotFoundError:
        pass
