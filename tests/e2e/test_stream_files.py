# SPDX-License-Identifier: BSD-2-Clause
"""The files of xputrace stream, and whatever may go wrong around them: the target is never harmed."""

import contextlib
import glob
import os
import random
import signal
import subprocess
import time

from harness import (SLOW, XPUTRACE, Trace, Workload, cases, entries_of, need, process_state, run, scratch, standin,
                     wait_until, workload_path)
from reports import (Stream, check_continuous, check_executions, check_totals, churn_made, made_by, name_of, read_file,
                     read_samples, read_summary, report_files, reported_by_name, trace_output, traces_of, wall_clock,
                     write_names)
from test_endings import small_file_system
from test_hostile import NAMES

SEED = 20263
MS = 1000 * 1000  # ns


def busy(*options):
    """Runs until it is asked to stop."""
    workload = standin("nrt", "--calls", 0, "--rate", 1000, "--programs", 1, *options)
    workload.go()
    return workload


def check_unharmed(workload):
    """It runs, and ends in order with right results: what the stand-in answered was always success."""
    assert process_state(workload.pid) in ("S", "R"), "the target is in state " + process_state(workload.pid)
    results = workload.stop()
    wrong = [entry for entry in entries_of(results) if entry.get("status", 0)]
    assert not wrong, "calls of the target failed: %s" % wrong
    return results


# ---- files ----

@cases("csv", "summary", "json")
def test_numbered_files(kind):
    """One file a report, each complete by itself; together they have everything."""
    workload = standin("nrt", "--calls", 240, "--rate", 400, "--programs", 2)
    output = trace_output() if kind == "json" else os.path.join(scratch(), "report.csv")
    options = {"csv": [], "summary": ["--summary"], "json": ["--type", "trace"]}[kind]
    stream = Stream("-p", workload.pid, "--report-every", "100ms", *options, output=output)
    workload.go()
    made = made_by(workload.results())
    stream.end()
    files = report_files(output)
    assert 5 <= len(files) <= 20, files
    assert not os.path.exists(output)
    assert sorted(os.listdir(os.path.dirname(output))) == [os.path.basename(path) for path in files]
    if kind == "csv":
        reports = {path: read_samples(read_file(path)) for path in files}
        check_totals([block for blocks in reports.values() for block in blocks], made)
        check_numbers(reports)
    elif kind == "summary":
        rows = [row for path in files for row in read_summary(read_file(path))]
        assert sum(int(row["inferences"]) for row in rows) == sum(made.values())
    else:
        runs = [call for trace in traces_of(output) for call in trace.runs()]
        assert len(runs) == sum(made.values()), "made %d runs, traced %d" % (sum(made.values()), len(runs))


def test_files_that_are_taken_away():
    """Whoever wants the reports may take them while more are made: that is no failure, and the last line does not name what is not there."""
    workload = standin("nrt", "--calls", 20, "--linger")
    output = os.path.join(scratch(), "report.csv")
    stream = Stream("-p", workload.pid, "--report-every", "100ms", output=output)
    workload.go()
    workload.wait_line("stdout", '"runtime"')
    time.sleep(0.5 * SLOW)  # later intervals have no inference, and no file
    files = report_files(output)
    assert files, "no report"
    for path in files:
        os.unlink(path)
    stream.signal(signal.SIGINT)
    assert stream.wait() == 0, stream.stderr
    assert "the last file is %s, which is not there any more" % files[-1] in stream.stderr, stream.stderr
    workload.send("\n")
    assert workload.wait() == 0


def check_numbers(reports):
    """Files are numbered by intervals, whether something ran in them or not."""
    intervals = [blocks[0].end // (100 * MS) for blocks in reports.values() if blocks[0].ended == "interval"]
    numbers = [int(path.rpartition("-")[2].partition(".")[0]) for path in reports]
    for number, interval in zip(numbers, intervals):
        assert interval - intervals[0] == number - numbers[0], "numbers %s, intervals %s" % (numbers, intervals)


def test_files_are_never_half_there():
    """Whoever looks at any moment finds complete files only."""
    workload = busy()
    output = os.path.join(scratch(), "report.csv")
    stream = Stream("-p", workload.pid, "--report-every", "10ms", "-d", "700ms", output=output)
    looked = 0
    while stream.child.poll() is None:
        for path in report_files(output)[-3:]:
            read_samples(read_file(path))
            looked += 1
    stream.end()
    assert looked > 20, "nothing was looked at"
    check_unharmed(workload)


@cases("csv", "summary", "json")
def test_append(kind):
    """All reports in one file, which loads at any time."""
    workload = standin("nrt", "--calls", 240, "--rate", 400)
    output = trace_output() if kind == "json" else os.path.join(scratch(), "report.csv")
    options = {"csv": [], "summary": ["--summary"], "json": ["--type", "trace"]}[kind]
    stream = Stream("-p", workload.pid, "--append", "--report-every", "100ms", *options, output=output)
    workload.go()
    results = workload.results()
    stream.end()
    made = made_by(results)
    assert os.listdir(os.path.dirname(output)) == [os.path.basename(output)]
    if kind == "csv":
        check_totals(read_samples(read_file(output)), made)
    elif kind == "summary":
        rows = read_summary(read_file(output))
        assert sum(int(row["inferences"]) for row in rows) == sum(made.values())
    else:
        trace = Trace(output)
        assert trace.complete
        assert len(trace.runs()) == sum(made.values())


def inode(path):
    """None: there is none, as for a moment while files are renamed."""
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


@cases("csv", "json")
def test_rotation(kind):
    """--rotate 64K --keep 3: four files at most, each loads, and what is there has no gap."""
    workload = busy("--log-times")
    offset = wall_clock()
    output = trace_output() if kind == "json" else os.path.join(scratch(), "report.csv")
    options = ["--type", "trace"] if kind == "json" else []
    stream = Stream("-p", workload.pid, "--append", "--rotate", "64K", "--keep", 3, "--report-every", "20ms",
                    *options, output=output)
    wait_until(lambda: os.path.exists(output + ".3"), "three old files")
    first = inode(output + ".3")
    wait_until(lambda: inode(output + ".3") not in (first, None), "the oldest file has been removed")
    stream.signal(signal.SIGINT)
    stream.end()
    files = [output + ".3", output + ".2", output + ".1", output]
    assert sorted(glob.glob(output + "*")) == sorted(files), os.listdir(os.path.dirname(output))
    for path in files[:-1]:
        assert 32 << 10 < os.stat(path).st_size <= 64 << 10, "%s has %d bytes" % (path, os.stat(path).st_size)
    result, = check_unharmed(workload)
    if kind == "json":
        times = [call.start * 1000 for path in files for call in sorted(Trace(path).runs(), key=lambda one: one.start)]
        assert times == sorted(times), "files overlap"
        made = sum(1 for begun, ended in zip(result["times"], result["ends"])
                   if ended >= times[0] and begun <= times[-1])
        assert made == len(times), "made %d, in the files %d" % (made, len(times))
    else:
        blocks = [block for path in files for block in read_samples(read_file(path))]
        check_continuous(blocks)
        check_executions([sample for block in blocks for sample in block.samples], result, offset)


def test_one_large_report():
    """A report that is larger than --rotate gets a file of its own."""
    workload = standin("nrt", "--calls", 1500, "--programs", 1, "--linger")
    output = os.path.join(scratch(), "report.csv")
    stream = Stream("-p", workload.pid, "--append", "--rotate", "4K", "--report-every", "1h", output=output)
    workload.go()
    workload.wait_line("stdout", '{"runtime"')
    stream.signal(signal.SIGINT)
    stream.end()
    blocks = read_samples(read_file(output))
    assert sum(block.taken for block in blocks) == 1500
    assert os.stat(output).st_size > 64 << 10
    workload.go()
    workload.results()


# ---- the disk, the pipe ----

@cases("append", "numbered", "trace")
def test_full_disk(kind):
    """64 KiB are soon full: said so, what was written is complete, the target is unharmed."""
    with small_file_system("64k") as folder:
        workload = busy()
        output = os.path.join(folder, "report.json" if kind == "trace" else "report.csv")
        options = {"append": ["--append"], "numbered": [], "trace": ["--append", "--type", "trace"]}[kind]
        stream = Stream("-p", workload.pid, "--report-every", "10ms", "-d", "1s", *options, output=output)
        status = stream.wait()
        assert status == 1, "ended with %d:\n%s" % (status, stream.stderr)
        assert "no space left" in stream.stderr.lower(), stream.stderr
        assert stream.stderr.lower().count("no space left") < 10, "said for every report:\n" + stream.stderr
        if kind == "trace":
            assert len(Trace(output).runs()) > 50
        else:
            files = [output] if kind == "append" else sorted(glob.glob(os.path.join(folder, "*")))
            blocks = [block for path in files for block in read_samples(read_file(path))]
            assert sum(block.taken for block in blocks) > 50 / SLOW, "only %d samples" % sum(one.taken for one in blocks)
        check_unharmed(workload)


def test_room_again():
    """The disk is full for a while: reports are missing, later ones are there."""
    with small_file_system("256k") as folder:
        filler = os.path.join(folder, "filler")
        with open(filler, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
        workload = busy()
        output = os.path.join(folder, "report.csv")
        stream = Stream("-p", workload.pid, "--append", "--report-every", "20ms", output=output)
        stream.wait_line("stderr", "o space left")
        os.unlink(filler)
        wait_until(lambda: os.path.exists(output) and os.stat(output).st_size > 20000, "reports again")
        stream.signal(signal.SIGINT)
        status = stream.wait()
        assert status == 1, "reports are missing, but it ended with %d:\n%s" % (status, stream.stderr)
        assert sum(block.taken for block in read_samples(read_file(output))) > 50
        check_unharmed(workload)


def test_output_cannot_be_created():
    """A folder that does not exist: said before anything is attached."""
    workload = busy()
    result = run([need(XPUTRACE, "collector"), "stream", "-p", str(workload.pid), "--append", "-o",
                  "/no/such/folder/report.csv", "-d", "5s"])
    assert result.status == 1, "status %d:\n%s" % (result.status, result.stderr)
    assert "/no/such/folder" in result.stderr, result.stderr
    check_unharmed(workload)


@cases("latency", "trace")
def test_reader_of_pipe_goes(kind):
    """The program that reads the reports ends: so does the stream."""
    workload = busy()
    stream = subprocess.Popen([need(XPUTRACE, "collector"), "stream", "-p", str(workload.pid), "--report-every",
                               "20ms", "--type", kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert stream.stdout.read(1000)
    stream.stdout.close()
    assert stream.wait(20) in (0, 1, -signal.SIGPIPE)
    stream.stderr.close()
    check_unharmed(workload)


def test_slow_reader():
    """A reader that stops reading for a while, more than the pipe holds: nothing is lost."""
    workload = standin("nrt", "--calls", 4000, "--rate", 4000, "--programs", 1)
    stream = subprocess.Popen([need(XPUTRACE, "collector"), "stream", "-p", str(workload.pid), "--report-every",
                               "50ms", "--layout", "qaic"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in stream.stderr:
        if b"attached" in line:
            break
    workload.go()
    results = workload.results()  # only now somebody reads
    output, errors = stream.communicate(timeout=30)
    assert stream.returncode == 0, errors.decode()
    check_totals(read_samples(output.decode()), made_by(results))


# ---- attacks ----

def test_collector_is_killed():
    """SIGKILL at random times: files are complete, the target goes on, another stream works."""
    chance = random.Random(SEED)
    workload = busy()
    for number in range(4):
        output = os.path.join(scratch(), "report.csv")
        stream = Stream("-p", workload.pid, "--report-every", "10ms", *(["--append"] if number % 2 else []),
                        output=output)
        time.sleep(0.1 + chance.random() * 0.3)
        stream.signal(signal.SIGKILL)
        stream.wait()
        assert process_state(workload.pid) in ("S", "R")
        for path in [output] if number % 2 else report_files(output):
            read_samples(read_file(path))
    blocks = Stream("-p", workload.pid, "--report-every", "100ms", "-d", "500ms").blocks()
    assert 200 < sum(block.inferences for block in blocks) < 800, "%d inferences in 0.5 s at 1000/s" % sum(
        block.inferences for block in blocks)
    assert not any(block.lost for block in blocks)
    check_unharmed(workload)


@cases("SIGKILL", "SIGSEGV")
def test_target_is_killed(name):
    """The stream ends by itself, with what ran up to then."""
    workload = busy()
    stream = Stream("-p", workload.pid, "--report-every", "50ms")
    stream.wait_line("stdout", "program,", 4)
    workload.signal(getattr(signal, name))
    workload.wait()
    blocks = stream.blocks()
    check_continuous(blocks)
    assert blocks[-1].released, "the program's process is gone, but it is not released"
    assert sum(block.inferences - block.taken - block.lost for block in blocks) <= 1, "more than what was under way"


def test_target_executes():
    """The target becomes another program: what runs then is reported, once its library has been found."""
    workload = standin("nrt", "--exec", "--calls", 400, "--rate", 400, "--programs", 1)
    stream = Stream("-p", workload.pid, "--report-every", "50ms")
    workload.go()
    result, = workload.results()
    blocks = stream.blocks()
    made = sum(made_by([result]).values())
    seen = sum(block.inferences for block in blocks)
    assert made * 0.5 < seen <= made, "made %d, reported %d" % (made, seen)  # the first ones may be missing


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", "  =1", "=HYPERLINK(\"http://x\",\"y\")", "\uff1d1", "\n=1",
            "''+"]
PLAIN = ["a,b", "quote\"in", "\"quoted\"", "line\nend", "return\r\nline", ",", "\"", " lead", "trail ", "a;b",
         "'quoted'", "plain=1", "caf\u00e9 \u6f22\u5b57 \U0001f680", "back\\slash"]


def churn_names(names, *options):
    """Blocks of a stream to a file, and what was made by name."""
    workload = standin("qaic", "--churn", 100, "--names", write_names(names))
    output = os.path.join(scratch(), "report.csv")
    stream = Stream("-p", workload.pid, "--append", "--report-every", "100ms", *options, output=output)
    workload.go()
    result, = workload.results()
    stream.end()
    return stream, churn_made(result, names)


def test_names_in_csv():
    """Commas, quotes and line ends come through as they were; formulas can be had back, but are none."""
    names = PLAIN + FORMULAS
    stream, made = churn_names(names)
    reported = reported_by_name(read_samples(read_file(stream.output)))
    for name in PLAIN:
        assert reported[name] == made[name], "%r ran %d times, reported %d: %s" % (
            name, made[name], reported[name], list(reported))
    for field in reported:
        assert field.lstrip(" \t\r\n")[:1] not in ("=", "+", "-", "@", "\uff1d"), "a formula: %r" % field
    assert {name_of(field): count for field, count in reported.items()} == made


def test_hostile_names():
    """What no runtime would accept, 1 MB, unreadable, invalid UTF-8: counts by handle are exact, the file is clean."""
    workload = standin("hostile", "--calls", 5)
    output = os.path.join(scratch(), "report.csv")
    stream = Stream("-p", workload.pid, "--append", "--report-every", "50ms", output=output)
    rest = Stream("-p", workload.pid, "--summary", "--match", "injected|plain|\\\\")
    trace = Stream("-p", workload.pid, "--type", "trace", "--append", output=trace_output())
    workload.go()
    results = workload.results()
    stream.end()
    text = read_file(output)
    blocks = read_samples(text)
    made = {}
    for (pid, _, handle), count in made_by(results).items():
        made[pid, handle] = made.get((pid, handle), 0) + count
    reported = {}
    for block in blocks:
        reported[block.pid, block.handle] = reported.get((block.pid, block.handle), 0) + block.inferences
    assert {key: count for key, count in reported.items() if count} == made
    assert all(len(block.name) <= 2000 for block in blocks)
    text.encode("utf-8", "strict")
    wrong = {character for character in text if ord(character) < 0x20 and character not in "\r\n"}
    assert not wrong and "\x7f" not in text, "control bytes: %s" % wrong
    letters = [c for c in NAMES[1].decode() if c.isalnum()]
    assert any([c for c in block.name if c.isalnum()] == letters for block in blocks), "a name is missing"
    rest.end()
    assert {row["name"] for row in read_summary(rest.stdout)} >= {"plain"}
    trace.end()
    assert len(Trace(trace.output).runs()) == sum(made.values())


def test_process_name():
    """The process's own name is hostile."""
    workload = Workload([workload_path("workload"), "nrt", "--wait-for-go", "--calls", 10, "--name", "=a,\"\n\x1b["])
    stream = Stream("-p", workload.pid)
    workload.go()
    results = workload.results()
    stream.end()
    blocks = read_samples(stream.stdout)
    check_totals(blocks, made_by(results))
    assert {block.process for block in blocks} and "\x1b" not in stream.stdout
