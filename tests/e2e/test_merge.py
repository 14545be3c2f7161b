# SPDX-License-Identifier: BSD-2-Clause
"""xputrace merge: ONNX Runtime's own profile inside the calls that xputrace saw; the application's clock tells."""

import decimal
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from harness import (SLOW, XPUTRACE, Recorder, Skip, Workload, alone, cases, library_path, record_command, run, scratch,
                     workload_path)
from reports import Stream
from test_onnx import node_command


def merge(*words, status=0):
    """xputrace merge; what it said."""
    process = run([XPUTRACE, "merge"] + [str(word) for word in words])
    assert process.status == status, "ended with %d instead of %d: %s" % (process.status, status, process.stderr)
    return process


def load(path):
    """Numbers as they are written: no double holds ns since boot for ever."""
    with open(path, encoding="utf-8", errors="strict") as file:
        return json.load(file, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def events_of(path):
    document = load(path)
    return document if isinstance(document, list) else document["traceEvents"]


def nanoseconds(microseconds):
    return int(microseconds * 1000)


def spans(events, category, name=None):
    """(thread, start, end) in ns of complete events, in the order of time."""
    return sorted(((event["tid"], nanoseconds(event["ts"]), nanoseconds(event["ts"] + event["dur"])) for event in events
                   if event["ph"] == "X" and event["cat"] == category and name in (None, event["name"])),
                  key=lambda span: span[1])


def profiles(prefix):
    return sorted(glob.glob(prefix + "-*.json"))


def placed_of(path, profile):
    """What the merged trace says about one of its traces."""
    placed, = [one for one in load(path)["metadata"]["merged"] if one["file"] == profile]
    return placed


def check_truth(path, profile, result):
    """Each model_run lies where the application's own clock says that the run was, within what was said."""
    placed = placed_of(path, profile)
    within = int(placed["uncertainty_ns"]) + 1000
    made = [(int(start), int(end)) for start, end in result["times"]]
    runs = spans([event for event in events_of(path) if event.get("name") == "model_run"], "Session")
    assert runs, "no runs in %s" % path
    for _, start, end in runs:
        assert any(begun - within <= start and end <= ended + within for begun, ended in made), (start, end, within)
    return placed


def check_inside(path, least):
    """Each model_run in a call of Run of its thread, where there are calls; each operator in a model_run."""
    events = events_of(path)
    calls = spans(events, "onnxruntime,execute")
    runs = spans(events, "Session", "model_run")
    first, last = min(call[1] for call in calls), max(call[2] for call in calls)
    inside = 0
    for thread, start, end in runs:
        if start >= first and end <= last:
            assert any(call[0] == thread and call[1] <= start + 1000 and end <= call[2] for call in calls), start
            inside += 1
    assert inside >= least, "%d runs of %d in calls" % (inside, len(runs))
    operators = spans(events, "Node")
    assert len(operators) >= len(runs)
    for thread, start, end in operators:
        assert any(one[0] == thread and one[1] <= start and end <= one[2] + 1000 for one in runs), start


def check_merge(path, trace, profile):
    """Event by event the same as what Python makes of both files, with the offset that was said."""
    offset = decimal.Decimal(placed_of(path, profile)["offset_ns"]) / 1000
    expected = events_of(trace)
    for event in events_of(profile):
        event["ts"] += offset
        expected.append(event)
    merged = events_of(path)
    assert len(merged) == len(expected), "%d events of %d" % (len(merged), len(expected))
    for got, wanted in zip(merged, expected):
        assert got == wanted, "%s instead of %s" % (got, wanted)


def test_onnx_profile():
    """All runs in both: the offset is the one that pairing them in order gives, and the application's clock agrees."""
    folder = scratch()
    prefix, out = os.path.join(folder, "prof"), os.path.join(folder, "out.json")
    results, trace, _ = record_command(node_command("--runs", 100, "--profile", prefix))
    profile, = profiles(prefix)
    said = merge(trace.path, profile, "-o", out).stderr
    assert "100 of its 100 runs" in said, said
    placed = check_truth(out, profile, results[0])
    check_inside(out, 100)
    check_merge(out, trace.path, profile)
    calls = spans(events_of(trace.path), "onnxruntime,execute")
    runs = spans(events_of(profile), "Session", "model_run")
    least = max(call[1] - one[1] for call, one in zip(calls, runs)) - 1000
    most = min(call[2] - one[2] for call, one in zip(calls, runs))
    assert least <= int(placed["offset_ns"]) <= most, (least, placed, most)


def test_onnx_profile_longer():
    """Attached late, detached early: the runs before and after stand beside, at the right time."""
    folder = scratch()
    prefix, out = os.path.join(folder, "prof"), os.path.join(folder, "out.json")
    server = Workload(node_command("--seconds", 0, "--rate", 40, "--profile", prefix))
    time.sleep(0.5)
    trace = Recorder("-p", server.pid, "-d", "2s").finish()
    server.signal(signal.SIGTERM)
    result, = server.results()
    profile, = profiles(prefix)
    merge(profile, trace.path, "-o", out)
    check_truth(out, profile, result)
    check_inside(out, len(trace.of("Run")) - 2)


def test_onnx_two_profiles():
    """Two sessions, each with its own profile."""
    folder = scratch()
    prefix, out = os.path.join(folder, "prof"), os.path.join(folder, "out.json")
    results, trace, _ = record_command(node_command("--runs", 40, "--sessions", 2, "--profile", prefix))
    both = profiles(prefix)
    if len(both) != 2:
        raise Skip("both sessions wrote their profile under one name, made of the time")
    merge(trace.path, *both, "-o", out)
    for profile in both:
        check_truth(out, profile, results[0])
    check_inside(out, 80)


def test_onnx_profile_without_all_calls():
    """Sampled: no offset fits, and nothing is written; with --offset it is taken as it is said."""
    folder = scratch()
    prefix, out = os.path.join(folder, "prof"), os.path.join(folder, "out.json")
    results, trace, _ = record_command(node_command("--runs", 100, "--profile", prefix), "--sample", 4)
    profile, = profiles(prefix)
    said = merge(trace.path, profile, "-o", out, status=1).stderr
    assert "--offset %s=TIME" % profile in said, said
    assert not os.path.exists(out) and len(os.listdir(folder)) == 1, os.listdir(folder)
    runs = spans(events_of(profile), "Session", "model_run")
    offset = int(results[0]["times"][0][0]) - runs[0][1]
    merge(trace.path, "--offset", "%s=%d.%09ds" % (profile, offset // 10**9, offset % 10**9), "-o", out, profile)
    assert int(placed_of(out, profile)["offset_ns"]) == offset
    check_merge(out, trace.path, profile)


def test_onnx_profile_of_another_process():
    """Runs of a process that was not traced belong nowhere."""
    folder = scratch()
    prefix, out = os.path.join(folder, "prof"), os.path.join(folder, "out.json")
    _, trace, _ = record_command(node_command("--runs", 20))
    other = run(node_command("--runs", 20, "--profile", prefix))
    assert other.status == 0, other.stderr
    said = merge(trace.path, *profiles(prefix), "-o", out, status=1).stderr
    assert "no xputrace trace has a call of Run" in said, said
    assert not os.path.exists(out)


def test_reports_of_one_session():
    """What xputrace stream wrote into several files: arrows that begin in one and end in another are joined."""
    folder = scratch()
    command = [workload_path("workload"), "qaic", "--library", library_path("libQAic.so"), "--rate", 500, "--calls"]
    Stream("--type", "trace", "--report-every", "100ms", "--", *command, 200, output=os.path.join(folder, "s.json"),
           wait=False).end()
    reports = sorted(glob.glob(os.path.join(folder, "s-*.json")))
    assert len(reports) > 2, reports
    out = os.path.join(folder, "out.json")
    merge(*reports, "-o", out)
    merged = [event for event in events_of(out) if event["ph"] != "M"]
    assert merged == [event for report in reports for event in events_of(report) if event["ph"] != "M"]
    begun, ended = ({event["id"] for event in merged if event["ph"] == phase} for phase in "sf")
    assert len(begun) == 200 and ended == begun, (len(begun), len(ended))


def test_node_events():
    """Events that Node.js itself traces, which are by CLOCK_MONOTONIC: in the time that its own clock shows."""
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed")
    folder = scratch()
    script = ("const t = () => console.log(process.hrtime.bigint()); t(); const a = [];"
              "for (let i = 0; i < 2e6; i++) a.push({ i }); t();")
    text = subprocess.run([node, "--trace-event-categories", "v8", "-e", script], cwd=folder, check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    begun, ended = (int(word.rstrip("n")) for word in text.split())
    trace, = glob.glob(os.path.join(folder, "node_trace.*"))
    _, ours, _ = record_command([node, "-e", "0"])
    out = os.path.join(folder, "out.json")
    merge(ours.path, trace, "--offset", trace + "=0", "-o", out)
    times = [nanoseconds(event["ts"]) for event in events_of(out) if event.get("cat") == "v8"]
    assert times and sum(begun - 1000 <= one <= ended + 1000 for one in times) > len(times) / 2, (begun, times, ended)


@alone("measures time")
def test_both_clocks_of_a_trace():
    """The pair that relates the clock on the wall: within 5 us of what is read here."""
    node = shutil.which("node")
    _, trace, _ = record_command([node or "true"] + (["-e", "0"] if node else []))
    clock = trace.document["otherData"]["clock"]
    readings = []
    for _ in range(1000):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        readings.append((after - before, wall - (before + after) // 2))
    width, difference = min(readings)
    said = int(clock["realtime_ns"]) - int(clock["monotonic_ns"])
    assert abs(said - difference) <= 5000 * SLOW + width, (said, difference, width)


MEASURE = """
import os, sys
_, status, usage = os.wait4(os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def test_large():
    """200 MB in a fraction of that: memory does not grow with the file."""
    folder = scratch()
    path = os.path.join(folder, "large.json")
    line = ('{"ph":"X","pid":1,"tid":2,"ts":%d.125,"dur":1,"name":"some operator or other","args":{"text":"' +
            "x" * 120 + '"}}')
    count = round(1000 / SLOW) * 1000
    with open(path, "w", encoding="ascii") as file:
        file.write("[\n")
        for i in range(0, count, 1000):
            file.write(",\n".join(line % (i + j) for j in range(1000)) + (",\n" if i + 1000 < count else "\n]\n"))
    out = os.path.join(folder, "out.json")
    words = [XPUTRACE, "merge", path, "--offset", path + "=1s", "-o", out, "-q"]
    # Started by a small process: what a process had before it became another program counts, too.
    said = subprocess.run([sys.executable, "-c", MEASURE, *words], stdout=subprocess.PIPE, check=True, text=True).stdout
    status, memory = map(int, said.split())
    assert status == 0
    assert memory < 32 * 1024, "%d KiB for %d bytes" % (memory, os.path.getsize(path))
    lines = 0
    with open(out, encoding="ascii") as file:
        for text in file:
            lines += text.startswith('{"ph":"X","pid":1,"tid":2,"ts":%d.125,' % (1000000 + lines))
    assert lines == count, "%d events of %d" % (lines, count)


def test_command_line():
    """Wrong usage is 2; standard output, and a file that is no trace."""
    folder = scratch()
    trace, out = os.path.join(folder, "a=b.json"), os.path.join(folder, "out.json")
    with open(trace, "w", encoding="ascii") as file:
        file.write('[{"ph":"i","ts":1,"s":"t"}')
    for words in ([], [trace], ["-o", out], [trace, "-o", ""], [trace, "-o", out, "--offset", "x=1"],
                  [trace, "-o", out, "--offset", trace], [trace, "-o", out, "--offset", trace + "=1 s"],
                  [trace, "-o", out, "--offset", trace + "=9e9"], [trace, "-o", out, "--bad"]):
        assert merge(*words, status=2).stderr, words
    assert os.listdir(folder) == ["a=b.json"]
    for given, wanted in (("0", 1), ("-1us", 0), ("0.000000001", "1.001"), ("-2.5ms", -2499), ("4ns", "1.004"),
                          ("123456789.000000001s", "123456789000001.001")):
        process = merge(trace, "-o", "-", "--offset=%s=%s" % (trace, given))
        event, = json.loads(process.stdout, parse_float=decimal.Decimal)["traceEvents"]
        assert event["ts"] == decimal.Decimal(wanted), (given, event)
        assert "is cut off" in process.stderr, process.stderr
    with open(trace, "ab") as file:
        file.write(b"\0")
    assert "byte 26: a comma is missing" in merge(trace, "-o", out, status=1).stderr
    assert os.listdir(folder) == ["a=b.json"]


# ---- against a simple program ----

NAMES = ("process_name", "thread_name", "process_sort_index", "thread_sort_index")
TEXTS = ("run", "\"quoted\" \\ \n\t", "\u2028 \U0001f680 \u00e9", "</script>", "", "a" * 300)
TIMES = ("0", "1.5", "-7", "123456789012.0005", "1e3", "2.5E-3", "0.00049", "-0.0005", "4007199254740993.125")


class Number(str):
    """Of JSON, as it is written."""


def random_event(random_):
    event = {"ph": random_.choice("XXXBEibnesftCM"), "pid": random_.choice((1, 2, 3, "7", "a word")), "tid": random_.choice((1, 2, "worker")),
             "name": random_.choice(TEXTS)}
    if event["ph"] == "M":
        event["name"] = random_.choice(NAMES)
        event["args"] = {"name": random_.choice(TEXTS[:3])} if event["name"].endswith("name") else {"sort_index": random_.randrange(9)}
    if event["ph"] != "M" or random_.random() < 0.3:
        event["ts"] = Number(random_.choice(TIMES))
    if event["ph"] == "X":
        event["dur"] = Number(random_.choice(TIMES[:2]))
    if event["ph"] in "bnesft":
        event["id"] = random_.choice((1, "0x1", "one", 2**63))
        if random_.random() < 0.3:
            event["id2"] = {"local": random_.choice((1, "0x2"))}
    if random_.random() < 0.3:
        event["args"] = event.get("args") or {"values": [1, None, {"deep": [True, TEXTS[1]]}], "ts": 5}
    members = list(event.items())
    random_.shuffle(members)
    return dict(members)


def encoded(event):
    return "{%s}" % ",".join("%s: %s" % (json.dumps(key), value if isinstance(value, Number) else json.dumps(value, ensure_ascii=key == "name"))
                             for key, value in event.items())


def identity(event, name):
    """What holds one name only: None for other events, and for those of no number."""
    number = str(event["pid"])
    thread = str(event["tid"]) if name.startswith("thread") else "0"
    return (number, thread, name) if number.isdigit() and thread.isdigit() else None


def merged_simply(inputs):
    """Events as merge documents them, of traces whose offsets (ns) are given; identifiers as (which trace, identifier)."""
    holders, result = {}, []
    for index, (_, events) in enumerate(inputs):
        for event in events:
            key = event["ph"] == "M" and identity(event, event["name"])
            if key and key not in holders:
                holders[key] = index, event["args"].get("name")
    for index, (offset, events) in enumerate(inputs):
        for event in events:
            key = event["ph"] == "M" and identity(event, event["name"])
            event = dict(event)
            if key and holders[key][0] != index:
                if key[2] == "process_name" and event["args"]["name"] != holders[key][1]:
                    tid = int(event["tid"]) if str(event["tid"]).isdigit() else int(event["pid"])
                    result.append({"ph": "M", "name": "process_labels", "pid": int(event["pid"]), "tid": tid,
                                   "args": {"labels": event["args"]["name"]}})
                continue
            if "ts" in event and event["ph"] != "M" and offset:
                exact = decimal.Decimal(event["ts"]).quantize(decimal.Decimal("0.001"), decimal.ROUND_HALF_UP)
                event["ts"] = Number(exact + decimal.Decimal(offset) / 1000)
            if index and isinstance(event["pid"], str) and not event["pid"].isdigit():
                event["pid"] += " (%d)" % (index + 1)
            for name in ("id", "id2"):
                if index and name in event:
                    event[name] = {key: (index, str(value)) for key, value in event[name].items()} if name == "id2" else (index, str(event[name]))
            result.append(event)
    return result


def plain(value):
    """Comparable: numbers as they are meant."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return decimal.Decimal(value) if isinstance(value, (int, Number)) and not isinstance(value, bool) else value


def compare_identifiers(event, expected, known):
    """Takes both out; the same identifier of a trace has become the same one, others have become others."""
    for name in ("id", "id2"):
        pairs = [(event.pop(name, None), expected.pop(name, None))]
        if name == "id2" and pairs[0][1]:
            assert pairs[0][0].keys() == pairs[0][1].keys()
            pairs = [(pairs[0][0][key], pairs[0][1][key]) for key in pairs[0][1]]
        for mine, simple in pairs:
            if not isinstance(simple, tuple):
                assert mine == plain(simple), (mine, simple)
                continue
            assert known.setdefault(simple, mine) == mine and isinstance(mine, str), (mine, simple)


def check_random(folder, seed):
    random_ = random.Random(seed)
    words, inputs = [], []
    for index in range(random_.randint(1, 3)):
        path = os.path.join(folder, "%d-%d.json" % (seed, index))
        events = [random_event(random_) for _ in range(random_.randint(0, 30))]
        offset = random_.choice((0, 1, -1500, 10**15, -3 * 10**9))
        array = "[%s]" % ",\n".join(map(encoded, events))
        with open(path, "w", encoding="utf-8") as file:
            file.write(array if random_.random() < 0.5 else '{"other": {"traceEvents": [1]}, "traceEvents": %s, "more": []}' % array)
        words += [path, "--offset", "%s=%dns" % (path, offset)]
        inputs.append((offset, events))
    out = os.path.join(folder, "%d.json" % seed)
    merge(*words, "-q", "-o", out)
    found, expected, known = events_of(out), merged_simply(inputs), {}
    assert len(found) == len(expected), "seed %d: %d events instead of %d" % (seed, len(found), len(expected))
    for number, (event, simple) in enumerate(zip(found, expected)):
        compare_identifiers(event, simple, known)
        assert event == plain(simple), "seed %d, event %d: %s instead of %s" % (seed, number, event, simple)
    assert len(set(known.values())) == len(known), "seed %d: two identifiers have become one: %s" % (seed, known)


@cases("0", "1")
def test_random(part):
    """Any events, merged as a simple program does it; XPUTRACE_MERGES=N: of so many traces."""
    folder, count = scratch(), int(os.environ.get("XPUTRACE_MERGES", "40"))
    for seed in range(int(part), count, 2):
        check_random(folder, seed)
