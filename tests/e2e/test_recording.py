# SPDX-License-Identifier: BSD-2-Clause
"""Recordings: the same trace as directly, as any user, without root."""

import collections
import glob
import gzip
import json
import os
import shutil
import zlib

from harness import (NOBODY, ROOT, XPUTRACE, Recorder, Trace, cases, compare, need, results_in, run, scratch, standin,
                     workload_path)


def events_of(trace):
    return collections.Counter(json.dumps(event, sort_keys=True) for event in trace.events)


@cases("nrt", "hip", "pjrt", "vaccel")
def test_report(runtime):
    """report FILE.xpt -o trace.json, as nobody: complete and exact."""
    workload = standin(runtime, "--calls", 80, "--threads", 2, "--fail-every", 9)
    recorder = Recorder("-p", workload.pid, output=os.path.join(scratch(), "recording.xpt"))
    workload.go()
    results = workload.results()
    assert recorder.wait() == 0, recorder.stderr
    os.chmod(recorder.output, 0o644)
    folder = scratch()
    os.chmod(folder, 0o777)
    output = os.path.join(folder, "trace.json")
    result = run([XPUTRACE, "report", recorder.output, "-o", output], user=NOBODY, group=NOBODY, extra_groups=[])
    assert result.status == 0, result.stderr
    compare(runtime, results, Trace(output))
    assert result.stdout.strip(), "no summary"


def test_same_trace():
    """A recorder with .xpt and one with .json beside it: the same calls with the same values."""
    workload = standin("nrt", "--calls", 80, "--threads", 2)
    folder = scratch()
    first = Recorder("-p", workload.pid, output=os.path.join(folder, "direct.json"))
    second = Recorder("-p", workload.pid, output=os.path.join(folder, "recording.xpt"))
    workload.go()
    workload.results()
    direct = first.finish()
    assert second.wait() == 0, second.stderr
    assert run([XPUTRACE, "report", second.output, "-o", os.path.join(folder, "later.json")]).status == 0
    later = Trace(os.path.join(folder, "later.json"))

    def essence(trace):
        return collections.Counter((call.pid, call.tid, call.function, call.role, call.program, call.handle,
                                    call.stream, call.key, call.size, call.core, call.status, call.layer)
                                   for call in trace.calls)
    assert essence(direct) == essence(later), essence(direct) - essence(later)

    def totals(trace):
        return sorted((one["name"], one["handle"], one["calls"], one["recorded"], one["errors"])
                      for one in trace.programs())
    assert totals(direct) == totals(later)
    assert set(direct.metadata) == set(later.metadata)


def test_report_twice():
    """The same recording gives the same trace, byte by byte in its events."""
    folder = scratch()
    path = os.path.join(folder, "recording.xpt")
    result = run([need(XPUTRACE, "collector"), "record", "-o", path, "--", workload_path("linked-hip"), "hip",
                  "--calls", "50"])
    assert result.status == 0, result.stderr
    outputs = [os.path.join(folder, name) for name in ("one.json", "two.json")]
    for output in outputs:
        assert run([XPUTRACE, "report", path, "-o", output]).status == 0
    one, two = (Trace(output) for output in outputs)
    assert events_of(one) == events_of(two)
    compare("hip", results_in(result.stdout), one)


def test_report_to_standard_output():
    """-o - gives the trace alone."""
    path = os.path.join(scratch(), "recording.xpt")
    result = run([need(XPUTRACE, "collector"), "record", "-o", path, "--", workload_path("linked-nrt"), "nrt"])
    assert result.status == 0, result.stderr
    shown = run([XPUTRACE, "report", path, "-o", "-"])
    assert shown.status == 0, shown.stderr
    assert json.loads(shown.stdout)["traceEvents"]


@cases("record trace.json", "record trace.xpt", "record trace.csv --format qnn-csv", "report trace.json", "report table.csv --format csv",
       "profile latency.csv --program neuron-0.0", "stream latency.csv --append", "merge both.json", "record a.json --summary-json s.json")
def test_an_earlier_output_is_kept(words):
    """The second time it becomes FILE.old, the third time that one goes; new files are their owner's alone."""
    command, name, *options = words.split()
    folder = scratch()
    recording, trace = os.path.join(folder, "r.xpt"), os.path.join(folder, "t.json")
    program = ["--wait-limit", "60s", "--", workload_path("linked-nrt"), "nrt", "--calls", "5"]
    inputs = {"report": [recording], "merge": [trace]}.get(command, program)
    if command in ("report", "merge"):
        for words in (["record", "-o", recording] + program, ["report", recording, "-o", trace]):
            assert run([XPUTRACE] + words).status == 0
    watched = options[-1] if "--summary-json" in options else name
    options = [os.path.join(folder, one) if one == watched else one for one in options]
    path, contents = os.path.join(folder, watched), []
    for number in range(3):
        result = run([XPUTRACE, command, "-o", os.path.join(folder, name)] + options + inputs)
        assert result.status == 0, result.stderr
        with open(path, "rb") as file:
            contents.append(file.read())
        assert os.stat(path).st_mode & 0o777 == 0o600
        if number and "qnn-csv" not in options:
            with open(path + ".old", "rb") as file:
                assert file.read() == contents[number - 1], "not what was there before"
    if "qnn-csv" in options:
        assert not os.path.exists(path + ".old") and contents[2].startswith(contents[1]), "it goes behind what is there"


@cases("record a.json.gz", "report a.json.gz", "report a.csv.gz --format csv", "report a.json.gz --format ort",
       "profile a.csv.gz --program neuron-0.0", "stream a.csv.gz", "merge a.json.gz")
def test_compressed(words):
    """By its name; what gzip takes out of it is what would have been written, and merge reads it."""
    command, name, *options = words.split()
    folder = scratch()
    recording, trace = os.path.join(folder, "r.xpt"), os.path.join(folder, "t.json.gz")
    program = ["--wait-limit", "60s", "--", workload_path("linked-nrt"), "nrt", "--calls", "200"]
    for words in (["record", "-o", recording] + program, ["report", recording, "-o", trace]):
        assert run([XPUTRACE] + words).status == 0
    inputs = {"report": [recording], "merge": [trace]}.get(command, program)
    path = os.path.join(folder, name)
    result = run([XPUTRACE, command, "-o", path] + options + inputs)
    assert result.status == 0, result.stderr
    if command == "stream":
        path = max(glob.glob(os.path.join(folder, "a-00*.csv.gz")), key=os.path.getsize)
    whole = gzip.open(path).read().decode()
    with open(path, "rb") as file:
        packed = file.read()
    first = zlib.decompressobj(31)
    assert first.decompress(packed).decode() == whole and first.eof and not first.unused_data, "more than one member"
    assert len(packed) < len(whole) / 2
    if command == "report":
        plain = os.path.join(folder, "plain")
        assert run([XPUTRACE, "report", "-q", recording, "-o", plain] + options).status == 0
        with open(plain, encoding="utf-8") as file:
            assert file.read() == whole
    elif path.endswith(".json.gz"):
        assert json.loads(whole)["metadata"]["complete"]
    else:
        assert whole.startswith("host,pid,process,runtime,program,start,") and whole.count("\n") > 10


@cases("record a.xpt.gz", "record a.csv.gz --format qnn-csv", "stream a.csv.gz --append")
def test_not_compressed(words):
    """What has to be read again or appended to is refused, before anything is created."""
    command, name, *options = words.split()
    path = os.path.join(scratch(), name)
    result = run([XPUTRACE, command, "-o", path] + options + ["--", workload_path("linked-nrt"), "nrt", "--calls", "1"])
    assert result.status != 0 and ".gz" in result.stderr and not os.path.exists(path), result.stderr


def test_traces_that_no_viewer_opens():
    """Warned of before they are: while recording before the size is reached, of a recording before anything is written."""
    folder = scratch()
    recording, trace = os.path.join(folder, "r.xpt"), os.path.join(folder, "t.json")
    program = ["--wait-limit", "60s", "--", workload_path("linked-nrt"), "nrt", "--calls", "1000"]
    said = "larger than"
    for words, warned in ((["record", "-o", trace, "--warn-size", "100K"], True), (["record", "-o", trace], False),
                          (["record", "-o", recording, "--warn-size", "10K"], False)):
        result = run([XPUTRACE] + words + program)
        assert result.status == 0 and (said in result.stderr) == warned, (words, result.stderr)
    size = os.stat(trace).st_size
    for options, warned in ((["--warn-size", str(size // 2)], True), (["--warn-size", str(size * 2)], False),
                            (["--warn-size", str(size // 2), "--slowest", "10"], False), ([], False),
                            (["--warn-size", "1K", "--format", "csv"], False)):
        result = run([XPUTRACE, "report", recording, "-q", "-o", trace] + options)
        assert result.status == 0 and result.stderr.count(said) == warned, (options, result.stderr)
    # Nothing can be written: it is said all the same.
    result = run([XPUTRACE, "report", recording, "-q", "-o", "/no/such/folder/t.json", "--warn-size", str(size // 2)])
    assert result.status == 1 and said in result.stderr, result.stderr


def test_readable_by_who_called_sudo():
    """Everything that is written, FILE.old and compressed ones too, belongs to that user, who makes a report of it."""
    folder = scratch()
    os.chown(folder, NOBODY, NOBODY)
    environment = dict(os.environ, SUDO_UID=str(NOBODY), SUDO_GID=str(NOBODY))
    recording = os.path.join(folder, "r.xpt")
    program = ["--wait-limit", "60s", "--", workload_path("linked-nrt"), "nrt", "--calls", "50"]
    for words in (["record", "-o", recording, "--summary-json", os.path.join(folder, "s.json")], ["record", "-o", recording],
                  ["record", "-o", os.path.join(folder, "t.json.gz")],
                  ["profile", "--program", "neuron-0.0", "-o", os.path.join(folder, "l.csv")],
                  ["stream", "-o", os.path.join(folder, "s.csv")], ["stream", "--append", "-o", os.path.join(folder, "a.csv")]):
        result = run([XPUTRACE] + words + program, env=environment)
        assert result.status == 0, result.stderr
    names = os.listdir(folder)
    assert {"r.xpt", "r.xpt.old", "s.json", "t.json.gz", "l.csv", "a.csv"} <= set(names), names
    for name in names:
        status = os.stat(os.path.join(folder, name))
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (NOBODY, NOBODY, 0o600), (name, status)
    binary = os.path.join(scratch(), "xputrace")
    shutil.copy(XPUTRACE, binary)
    os.chmod(binary, 0o755)
    for name in ("r.xpt", "r.xpt.old"):
        result = run([binary, "report", os.path.join(folder, name), "-o", os.path.join(folder, name + ".json")], user=NOBODY,
                     group=NOBODY, extra_groups=[])
        assert result.status == 0 and "neuron-0.0" in result.stdout, result.stderr


@cases("abc", "99999999999", "4294967295", "-1", " 5", "", "0x10")
def test_damaged_caller_of_sudo(value):
    """Where SUDO_UID or SUDO_GID is no number of a user or group, what is written stays root's."""
    kept = os.path.join(ROOT, "tests/e2e/kept/qaic.xpt")
    for user, group in ((value, str(NOBODY)), (str(NOBODY), value)):
        output = os.path.join(scratch(), "t.json")
        result = run([need(XPUTRACE, "collector"), "report", kept, "-q", "-o", output], env=dict(os.environ, SUDO_UID=user, SUDO_GID=group))
        status = os.stat(output)
        assert (result.status, status.st_uid, status.st_gid) == (0, os.geteuid(), os.getegid()), (result.stderr, status)
