# SPDX-License-Identifier: BSD-2-Clause
"""Flame graphs of recordings with made-up stacks: the sums of each format are those of the records, as other readers see them."""

import base64
import collections
import html
import json
import os
import re
import shutil
import xml.etree.ElementTree

from harness import BUILD, ROOT, XPUTRACE, Skip, cases, need, run, scratch, workload_path
from recordings import (AT_CALL, ENQUEUE, EXECUTE, FRAME, INSIDE, MODULE, OFF_CPU, ON_CPU, WAIT, call_record, sample_record,
                        Recording, stack_record, text_record, with_records)

KEPT = os.path.join(ROOT, "tests/e2e/kept/counted.xpt")
START = 4273237000000  # ns, within its duration
RANKER, ENCODER = 0x1000, 0x2000
NAMES = {RANKER: "ranker; v2", ENCODER: "encoder"}
MODULES = {1: {"path": "/usr/lib/libruntime.so", "build_id": "00ff17"}, 2: {"path": "/usr/bin/python3.11"}}
FRAMES = {
    1: {"kind": "native", "function": "run_model<float>(int)", "module": 1, "offset": 4096, "file": "run.cc", "line": 7},
    2: {"kind": "python", "function": "décode", "file": "/srv/app/model.py", "line": 12},
    3: {"kind": "python", "function": "décode", "file": "/srv/app/model.py", "line": 20},
    4: {"kind": "python", "function": "main", "file": "/srv/app/serve.py", "line": 3},
    5: {"kind": "native", "function": "_start", "module": 2, "offset": 64},
    6: {"kind": "unknown", "module": 1, "offset": 8192},
    7: {"kind": "kernel", "function": "futex_wait", "module": 3},
    8: {"kind": "javascript"},
}
STACKS = {1: [1, 2, 4, 5], 2: [1, 3, 4, 5], 3: [7, 6, 4, 5], 4: [8, 99]}
LABELS = {1: "run_model<float>(int)", 2: "décode (model.py:12)", 3: "décode (model.py:20)", 4: "main (serve.py:3)", 5: "_start",
          6: "[unknown] (libruntime.so+0x2000)", 7: "futex_wait", 8: "[javascript]", 99: "[unknown]"}


def definitions():
    records = [text_record(MODULE, 0, 0, module, number) for number, module in MODULES.items()]
    records += [text_record(FRAME, 0, 0, frame, number) for number, frame in FRAMES.items()]
    return records + [stack_record(number, frames, number == 4) for number, frames in STACKS.items()]


class Made:
    """A recording, and what its graphs have to be: {WHAT: {(stack, program): [count, ns]}}."""

    def __init__(self, slow=1, runs=200):
        self.path = os.path.join(scratch(), "made.xpt")
        self.expected = {what: collections.defaultdict(lambda: [0, 0]) for what in ("inference", "offcpu", "cpu")}
        self.durations, self.begin, self.epoch = [], START, begin_of(KEPT)
        records, at = definitions(), START
        for i in range(runs):
            # Every other stack comes before its call, as every other call does before its stack.
            duration = 10000 + 10 * i * (slow if i % 2 else 1)
            stack, program = 1 + i % 2, RANKER if i % 5 else ENCODER
            call = call_record(EXECUTE, at, at + duration, [program, 0])
            inner = call_record(EXECUTE, at + 5, at + 50, [ENCODER, 0], depth=1, flags=INSIDE)
            samples = [sample_record(stack, AT_CALL, at, at, 4), sample_record(2, AT_CALL, at + 5, at + 5, 1),
                       sample_record(3, OFF_CPU, at + 60, at, 777), sample_record(stack, ON_CPU, at + 70, at, 1000)]
            records += samples + [inner, call] if i % 3 else [inner, call] + samples
            self.add("inference", stack, program, 4, 4 * duration)
            self.add("offcpu", 3, program, 1, 777)
            self.add("cpu", stack, program, 1, 1000)
            self.durations.append((duration, stack, program))
            at += duration + 100
        # Asynchronous: from the enqueue to the end of the wait.
        records += [sample_record(4, AT_CALL, at, at, 3), call_record(ENQUEUE, at, at + 50, [RANKER, 17, 0, 0]),
                    call_record(WAIT, at + 100, at + 5000, [17, 1, 0])]
        self.add("inference", 4, RANKER, 3, 3 * 5000)
        with_records(KEPT, self.path, NAMES, records)

    def add(self, what, stack, program, count, value):
        entry = self.expected[what][stack, program]
        entry[0] += count
        entry[1] += value

    def folded(self, what):
        return {";".join(path_of(*key)).replace("ranker; v2", "ranker: v2").replace("futex_wait", "futex_wait_[k]"): value
                for key, (_, value) in self.expected[what].items()}


def begin_of(path):
    """CLOCK_MONOTONIC when the recording began, ns."""
    return int(Recording(path).info["monotonic_ns"])


def path_of(stack, program):
    partial = ["[partial]"] if stack == 4 else []
    return partial + [LABELS[frame] for frame in reversed(STACKS[stack])] + [NAMES[program]]


def report(path, *options, status=0):
    result = run([need(XPUTRACE, "collector"), "report", path, "-q", *options])
    assert result.status == status, (result.status, result.stderr)
    return result.stdout if not status else result.stderr


def folded(text, columns=1):
    lines = {}
    for line in text.splitlines():
        name, *values = line.rsplit(" ", columns)
        assert name not in lines, line
        lines[name] = int(values[0]) if columns == 1 else tuple(map(int, values))
    return lines


@cases("inference", "offcpu", "cpu")
def test_folded(what):
    made = Made()
    assert folded(report(made.path, "--flame", what)) == made.folded(what)


def test_device_unknown():
    """No driver's events: nothing has device time, which is said."""
    made = Made()
    result = run([need(XPUTRACE, "collector"), "report", made.path, "-q", "--flame", "device"])
    assert result.status == 0 and not result.stdout and "device time of inferences is 0" in result.stderr, result


def test_selections():
    """One program; the slowest percent of the inferences; a time. A call inside another one counts when it is chosen."""
    made = Made()
    both = folded(report(made.path, "--flame", "inference", "--match", "e"))
    assert both == made.folded("inference")
    ranker = {name: value for name, value in both.items() if name.endswith("ranker: v2")}
    assert folded(report(made.path, "--flame", "inference", "--program", "ranker; v2")) == ranker
    nested = folded(report(made.path, "--flame", "inference", "--program", "encoder"))
    own = {name: value for name, value in both.items() if name.endswith("encoder")}
    assert set(nested) == set(own) and sum(nested.values()) == sum(own.values()) + 45 * (200 - 40), (nested, own)
    # Of 401 inferences, with those inside others: the four that took longest.
    slowest = collections.Counter()
    for duration, stack, program in sorted(made.durations)[-4:]:
        slowest[";".join(path_of(stack, program)).replace(";" + " v2", ": v2")] += 4 * duration
    assert folded(report(made.path, "--flame", "inference", "--slowest", "1%")) == slowest
    assert folded(report(made.path, "--flame", "inference", "--slowest", "4")) == slowest
    first = folded(report(made.path, "--flame", "cpu", "--to", "%dns" % (made.begin + 10100 - made.epoch)))
    assert first == {";".join(path_of(1, ENCODER)): 1000}, first
    assert "program other is not in" in report(made.path, "--flame", "inference", "--program", "other", status=1)


def test_difference():
    """Both values of each stack, in the order of difffolded.pl; the choice of the slowest is for the first recording."""
    before, after = Made(), Made(slow=5)
    lines = folded(report(after.path, "--flame", "inference", "--flame-diff", before.path), columns=2)
    old, new = before.folded("inference"), after.folded("inference")
    assert lines == {name: (old.get(name, 0), new.get(name, 0)) for name in set(old) | set(new)}
    lines = folded(report(after.path, "--flame", "inference", "--flame-diff", before.path, "--slowest", "1"), columns=2)
    assert {name: value[0] for name, value in lines.items()} == old
    assert sum(value[1] for value in lines.values()) == 4 * max(after.durations)[0]


def test_messages():
    made = Made()
    without = report(KEPT, "--flame", "inference", status=1)
    assert "record --stacks" in without, without
    for options, reason in ((["--operator", "MatMul"], "--flame WHAT"), (["--format", "svg"], "--flame WHAT"),
                            (["--flame", "cpu", "--format", "csv"], "--format folded"),
                            (["--flame", "inference", "--operator", "MatMul"], "--flame offcpu"),
                            (["--flame", "cpu", "--flame-diff", made.path, "-o", "x.pprof"], "--format folded or svg"),
                            (["--flame", "cpu", "--slowest", "101%"], "up to 100%")):
        message = report(made.path, *options, status=2)
        assert reason in message, (options, message)


def written(made, name, *options):
    path = os.path.join(scratch(), name)
    report(made.path, "--flame", "inference", "-o", path, *options)
    return path


READ_PPROF = """
import {readFileSync} from "node:fs";
import {gunzipSync} from "node:zlib";
import {Profile} from "pprof-format";
const profile = Profile.decode(gunzipSync(readFileSync(process.argv[2])));
const text = (index) => profile.stringTable.strings[Number(index)];
const by_id = (all) => new Map(all.map((one) => [Number(one.id), one]));
const functions = by_id(profile.function), locations = by_id(profile.location), mappings = by_id(profile.mapping);
console.log(JSON.stringify({
  types: profile.sampleType.map((type) => [text(type.type), text(type.unit)]),
  samples: profile.sample.map((sample) => [sample.value.map(Number), sample.locationId.map((id) => {
    const location = locations.get(Number(id)), line = location.line[0], its = functions.get(Number(line.functionId));
    const mapping = mappings.get(Number(location.mappingId));
    return [text(its.name), text(its.filename), Number(line.line), mapping ? text(mapping.filename) : "",
            mapping ? text(mapping.buildId) : "", mapping ? Number(location.address) - Number(mapping.memoryStart) : 0];
  })]),
}));
"""


def node_modules():
    folder = os.path.join(BUILD, "npm-flame", "node_modules")
    if not os.path.isdir(folder):
        raise Skip("pprof-format and speedscope are not there (make npm-releases)")
    return folder


def read_pprof(path):
    script = os.path.join(node_modules(), "..", "read_pprof.mjs")
    with open(script, "w", encoding="utf-8") as file:
        file.write(READ_PPROF)
    result = run(["node", script, path])
    assert result.status == 0, result.stderr
    return json.loads(result.stdout)


def test_pprof():
    """npm's pprof-format: counts and nanoseconds, lines, mappings with build ids."""
    made = Made()
    profile = read_pprof(written(made, "x.pprof"))
    assert profile["types"] == [["inferences", "count"], ["time", "nanoseconds"]]
    expected = {}
    for (stack, program), values in made.expected["inference"].items():
        places = [(NAMES[program], "", 0, "", "", 0)]
        for number in STACKS[stack]:
            frame = FRAMES.get(number, {})
            module = MODULES.get(frame.get("module"), {})
            places.append((frame.get("function") or LABELS[number], frame.get("file", ""), frame.get("line", 0),
                           module.get("path", ""), module.get("build_id", ""), frame.get("offset", 0) if module else 0))
        if stack == 4:
            places.append(("[partial]", "", 0, "", "", 0))
        expected[tuple(places)] = values
    assert {tuple(map(tuple, places)): values for values, places in profile["samples"]} == expected


def test_go_pprof():
    """The reference reader, where there is one."""
    if not shutil.which("go"):
        raise Skip("go is not there")
    made = Made()
    result = run(["go", "tool", "pprof", "-raw", written(made, "x.pb.gz")])
    assert result.status == 0, result.stderr
    samples = re.findall(r"^ +(\d+) +(\d+): ", result.stdout, re.MULTILINE)
    assert sorted([int(count), int(time)] for count, time in samples) == sorted(made.expected["inference"].values())
    assert "00ff17" in result.stdout and "model.py:12" in result.stdout


def totals_of(lines):
    """Of each frame, the ns with all below it."""
    totals = collections.Counter()
    for name, value in lines.items():
        for frame in set(name.split(";")):
            totals[frame] += value
    return totals


def test_svg():
    """An XML document with a frame for each node of the tree, as wide as its part."""
    made = Made()
    root = xml.etree.ElementTree.parse(written(made, "x.svg")).getroot()
    lines = made.folded("inference")
    whole, totals = sum(lines.values()), totals_of(lines)
    widths = collections.Counter()
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        widths[group.get("data-n").replace(";", ":")] += float(group.get("data-w"))
        rect = group.find("{http://www.w3.org/2000/svg}rect")
        assert abs(float(rect.get("width")) - 1180 * float(group.get("data-w"))) < 0.01
    assert abs(widths.pop("all") - 1) < 1e-9
    assert set(widths) == set(totals)
    assert all(abs(widths[name] - totals[name] / whole) < 1e-6 for name in totals), (widths, totals)


CHROMIUM = ("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
            "--enable-unsafe-swiftshader", "--virtual-time-budget=8000", "--dump-dom")


def browse(url):
    if not shutil.which("chromium"):
        raise Skip("chromium is not there")
    result = run([*CHROMIUM, "--user-data-dir=" + scratch(), url])
    assert result.status == 0, result.stderr
    return result.stdout


def test_svg_script():
    """In a browser: a search marks what matches and gives its part; a zoom makes a frame as wide as the picture."""
    made = Made()
    path = written(made, "x.svg")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names = re.findall(r'data-n="([^"]*)"', text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("</svg>", "<script>flame.search('model\\\\.py:20'); flame.zoom(%d);</script></svg>" %
                                names.index("décode (model.py:20)")))
    document = browse("file://" + path)
    lines = made.folded("inference")
    part = totals_of(lines)["décode (model.py:20)"] / sum(lines.values())
    assert "matched: %.2f %%" % (100 * part) in document, document[-3000:]
    group = re.search(r'<g class="f"[^>]*data-n="décode \(model\.py:20\)"[^>]*>.*?<rect ([^>]*)>', document, re.DOTALL)
    width = float(re.search(r' width="([^"]*)"', group.group(1)).group(1))
    assert abs(width - 1180) < 0.01 and 'fill="rgb(230,0,230)"' in group.group(1), group.group(0)
    hidden = re.search(r'<g class="f"[^>]*data-n="décode \(model\.py:12\)"([^>]*)>', document).group(1)
    assert "display: none" in hidden, hidden


def sandwich(path):
    """speedscope's own importer, in a browser: the part of each frame in its sandwich view, in percent."""
    folder, release = scratch(), os.path.join(node_modules(), "speedscope", "dist", "release")
    with open(path, "rb") as file:
        data = base64.b64encode(file.read()).decode()
    with open(os.path.join(folder, "load.js"), "w", encoding="utf-8") as file:
        file.write('speedscope.loadFileFromBase64("%s", "%s")' % (os.path.basename(path), data))
    document = browse("file://%s/index.html#localProfilePath=%s/load.js&view=sandwich" % (release, folder))
    rows = re.findall(r'width: ([0-9.e-]+)%;.*?width: ([0-9.e-]+)%;.*?</span>([^<]*)</td>', document)
    return {html.unescape(name): float(total) for total, _, name in rows}


def test_speedscope():
    """The part of each frame is that of the records."""
    made = Made()
    found = {name.replace(";", ":"): total for name, total in sandwich(written(made, "x.json")).items()}
    lines = made.folded("inference")
    totals, whole = totals_of(lines), sum(lines.values())
    assert set(found) == set(totals), (found, totals)
    assert all(abs(found[name] - 100 * totals[name] / whole) < 0.001 for name in totals), (found, totals)


# ---- names that are meant to be taken for something else ----

HOSTILE = [b"a;b;c 99", b"one 12", b"two 1.5", b"number 7 8", b"line\nnext;frame 7\n", b"\x1b[31mred\x1b]0;title\x07", "\x9b2Jcsi".encode(),
           "right\u202eleft".encode(), b"tab\there 3", b"", b" ", b"# comment 5", b"cr\rlf\r\n", "ls\u2028ps\u2029 1".encode(),
           b"bad\xff\xfe\xc3(\xf5\x80", b"cut\xe2\x82", b"<b a='1' b=\"2\">&amp;]]>", b"_[k]", b"long" * 3000, b"back\\slash"]


class Hostile:
    """Inferences of one program and one stack for each name, which the program and the innermost frame have; each has a time
    of its own."""

    def __init__(self):
        self.path, self.times = os.path.join(scratch(), "hostile.xpt"), {}
        records, names, at = [text_record(FRAME, 0, 0, {"kind": "native", "function": "main"}, 1)], {}, START
        for i, name in enumerate(HOSTILE):
            text = json.dumps(name.decode("latin-1"), ensure_ascii=False).encode("latin-1")
            records.append(text_record(FRAME, 0, 0, b'{"kind":"native","function":%s}' % text, 10 + i))
            records.append(stack_record(10 + i, [10 + i, 1]))
            names[0x1000 * (i + 1)] = name
        for i, name in enumerate(HOSTILE):
            duration = 1000 + i
            records += [sample_record(10 + i, AT_CALL, at, at, 1), call_record(EXECUTE, at, at + duration, [0x1000 * (i + 1), 0])]
            self.times[duration] = name
            at += duration + 100
        with_records(KEPT, self.path, names, records)

    def check(self, stacks):
        """Of times, each with its frames from the outermost on: as many frames as there were, and all plain letters of a
        name, or as many of them as are kept of one."""
        assert sorted(time for time, _ in stacks) == sorted(self.times), stacks
        for time, frames in stacks:
            name = self.times[time]
            letters = "".join(re.findall("[a-zA-Z0-9]", name.decode("ascii", "ignore")))
            assert len(frames) == 3 and frames[0] == "main", (name[:40], frames)
            for frame in frames[1:]:
                assert all(character.isprintable() for character in frame), (name, frame)
                kept = "".join(re.findall("[a-zA-Z0-9]", frame))
                assert kept == letters or not letters or len(kept) >= 500, (name[:40], frame[:80])


def flamegraph_line(line):
    """As flamegraph.pl reads a line: a stack, a value, and one more before it if there is one."""
    stack, value = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line).groups()
    more = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", stack)
    return (more.group(1).split(";"), [more.group(2), value]) if more else (stack.split(";"), [value])


def test_hostile_folded():
    """A line for each stack and three frames in each, for flamegraph.pl and for speedscope; two values in a difference."""
    made = Hostile()
    with open(written(made, "x.folded"), "rb") as file:
        text = file.read().decode("utf-8", "strict")
    lines = [flamegraph_line(line) for line in text.split("\n")[:-1]]
    assert text.endswith("\n") and all(len(values) == 1 for _, values in lines), lines
    made.check([(int(values[0]), frames) for frames, values in lines])
    found, whole = sandwich(written(made, "x.folded")), sum(made.times)
    totals = totals_of({";".join(frames): int(values[0]) for frames, values in lines})
    assert {name.strip(): round(total * whole / 100) for name, total in found.items()} == {
        name.strip(): value for name, value in totals.items()}
    both = report(made.path, "--flame", "inference", "--flame-diff", made.path, "--format", "folded")
    lines = [flamegraph_line(line) for line in both.split("\n")[:-1]]
    assert all(len(values) == 2 and values[0] == values[1] for _, values in lines), lines
    made.check([(int(values[0]), frames) for frames, values in lines])


def test_hostile_pprof():
    made = Hostile()
    made.check([(time, [place[0] for place in reversed(places)]) for (_, time), places in read_pprof(written(made, "x.pprof"))["samples"]])


def test_hostile_documents():
    """speedscope's JSON, read strictly, and the SVG, as XML."""
    made = Hostile()
    with open(written(made, "x.json"), encoding="utf-8") as file:
        text = file.read()
    document = json.loads(text)
    profile, names = document["profiles"][0], [frame["name"] for frame in document["shared"]["frames"]]
    stacks = [[names[number] for number in sample] for sample in profile["samples"]]
    assert sorted(profile["weights"]) == sorted(made.times)
    for time, frames in zip(profile["weights"], stacks):
        letters = re.findall("[a-zA-Z0-9]", made.times[time].decode("ascii", "ignore"))
        assert len(frames) == 3 and all(re.findall("[a-zA-Z0-9]", frame)[:500] == letters[:500] for frame in frames[1:] if letters), frames
    root = xml.etree.ElementTree.parse(written(made, "x.svg")).getroot()
    shown = [group.get("data-n") for group in root.iter("{http://www.w3.org/2000/svg}g")]
    assert len(shown) == 2 + 2 * len(HOSTILE) and all(name.isprintable() for name in shown), shown


def test_recorded():
    """record --stacks --flame: the workload's own functions, down to the programs that it runs."""
    path = os.path.join(scratch(), "x.folded")
    result = run([need(XPUTRACE, "collector"), "record", "-q", "--stacks", "--flame", "inference", "-o", path, "--",
                  workload_path("linked-nrt"), "nrt", "--calls", "200"])
    assert result.status == 0, result.stderr
    with open(path, encoding="utf-8") as file:
        lines = folded(file.read())
    assert lines and all(re.search(r";neuron-0\.\d$", name) and value > 0 for name, value in lines.items()), lines
