# SPDX-License-Identifier: BSD-2-Clause
"""The page of a recording, in a browser: its figures are those of the summary, it answers to keys and mouse, no name becomes markup."""

import collections
import json
import os
import re
import struct
import subprocess

from browser import Browser
from harness import XPUTRACE, cases, need, run, run_entries, scratch, workload_path
from recordings import (EXECUTE, FRAME, TGID, TID, call_record, rewrite, sample_record, stack_record, text_record, with_budget,
                        with_driver_events, with_records)
from test_flame import Made, totals_of

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kept")
OFF_CPU = 11  # kind of a record
HANDLE, START = 0x1000, 4273237000000  # ns, within the kept recording's duration
MARKUP = ('<img src=x onerror="window.hit=1">', "</script><script>window.hit=2</script>", "<!--<script>", "'\"&lt;b&gt;`${window.hit=3}`",
          "javascript:window.hit=4", "\x07\x1b[31m\u202egnp.exe", "__proto__", "")
UNITS = {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}


def report(recording, *options):
    """The page, and the summary as JSON."""
    page, summary = os.path.join(scratch(), "x.html"), os.path.join(scratch(), "x.json")
    result = run([need(XPUTRACE, "collector"), "report", recording, "-q", "--html", page, "--summary-json", summary, *options])
    assert result.status == 0, result.stderr
    with open(summary, encoding="utf-8") as file:
        return page, json.load(file)


def kept(name):
    return os.path.join(KEPT, name + ".xpt")


def check_quiet(browser, page):
    assert not browser.logged, browser.logged
    assert browser.requested == ["file://" + page], browser.requested


ROWS = """[...document.querySelectorAll("#%s table")].map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim())))"""


def tables(browser, section):
    return browser.run(ROWS % section)


def nanoseconds(text):
    number, unit = text.split("\u00a0" if "\u00a0" in text else " ")
    return float(number) * UNITS[unit]


def near(text, expected):
    """Three digits are shown."""
    return abs(nanoseconds(text) - expected) <= 0.006 * expected + 1


@cases("operators", "jobs", "counted", "qaic", "window")
def test_figures(name):
    """Programs, their counts and latencies, and what was lost, as the summary has them; without errors and requests."""
    page, summary = report(kept(name))
    with Browser() as browser:
        browser.open(page)
        (head, *rows), = tables(browser, "programs")
        figures = dict(browser.run('[...document.querySelectorAll("#overview .figures > div")].map((each) => [each.children[0].innerText, each.children[1].innerText])'))
        check_quiet(browser, page)
    columns = {re.sub(r"\W+$", "", title): i for i, title in enumerate(head)}
    assert len(rows) == len(summary["programs"]) > 0
    for program in summary["programs"]:
        row, = [row for row in rows if row[columns["Program"]] == program["name"] and row[columns["Runtime"]] == program["runtime"]]
        assert row[columns["Inferences"]] == "{:,}".format(program["inferences"]) and row[columns["Failed"]] == str(program["failed"])
        for column in ("p50", "p99", "max") if "latency_ns" in program else ():
            assert near(row[columns[column]], program["latency_ns"][column]), (column, row, program)
    assert figures["Inferences"].split()[0] == "{:,}".format(sum(program["inferences"] for program in summary["programs"]))
    assert figures["Lost"].split()[0] == "{:,}".format(sum(summary["lost"].values())), figures
    assert near(figures["Recorded"], summary["duration_ns"])


def focus(browser, section):
    browser.run('document.querySelector("#%s canvas[role=application]").focus()' % section)


def reading(browser, section):
    browser.frames()
    return browser.run('document.querySelector("#%s .chart + .read").innerText' % section)


def test_slow_operators():
    """The slowest inference of a program that is chosen: its operators are in its timeline, which keys go through, and in the table."""
    page, _ = report(kept("operators"))
    operators = {event["name"] for event in trace_of(kept("operators")) if event.get("cat", "").endswith(",operator")}
    with Browser() as browser:
        browser.open(page)
        browser.run('[...document.querySelectorAll("#programs tbody button")].find((each) => each.innerText.startsWith("toy")).click()')
        browser.run('document.querySelectorAll("#slow tr.choice")[1].click()')
        assert browser.run('document.querySelectorAll("#slow tr.choice")[1].classList.contains("chosen")')
        focus(browser, "slow")
        seen = set()
        for _ in range(3):
            browser.key("ArrowDown")
            seen.add(reading(browser, "slow").split(" ")[0])
        browser.run('document.querySelector("#operators [data-view=node]").click()')
        (_, *rows), = tables(browser, "operators")
        check_quiet(browser, page)
    assert seen & operators, (seen, operators)
    assert {row[0] for row in rows} == operators


def stated_call(start, end, off_cpu, preempted):
    """An execute, of whose thread it is known what it did: it waited for a CPU so long."""
    call = call_record(EXECUTE, start, end, [HANDLE, 0], depth=3 << 6) + struct.pack("<QQIIII", off_cpu, off_cpu, 0, preempted, 0, 0)
    return call[:2] + struct.pack("<H", len(call)) + call[4:]


def preempted_record(start, end):
    return struct.pack("<HHIQQQIiIIII16s16sBBB5x", OFF_CPU, 96, TGID, end, start, start, TID, -1, 4711, 4711, 0, 0, b"ffmpeg", b"", 1, 0, 0)


def test_words():
    """An inference of 13.1 ms that waited 11.9 ms for a CPU, while a typical one takes 1 ms: that is said, and drawn."""
    records, at, waits = [], START, 81
    for i in range(100):
        duration = 13100000 if i == 50 else 1000000 + 100 * i
        if i == 50:
            records += [preempted_record(at + 150000 * n, at + 150000 * n + 146914) for n in range(1, waits + 1)]
        records.append(stated_call(at, at + duration, 11900034 if i == 50 else 0, waits if i == 50 else 0))
        at += duration + 1000
    path = os.path.join(scratch(), "x.xpt")
    with_records(kept("counted"), path, {HANDLE: "ranker"}, records)
    page, _ = report(path)
    with Browser() as browser:
        browser.open(page)
        causes, rows = [table for table in tables(browser, "slow") if len(table[0]) > 4][:2]
        focus(browser, "slow")
        browser.key("ArrowDown")
        browser.key("ArrowRight")
        text = reading(browser, "slow")
        check_quiet(browser, page)
    assert rows[1][0] == "13.1 ms" and rows[1][-1] == ("12.1 ms more than typical: waited for a CPU 11.9 ms longer "
                                                     "(preempted 81 times, by \u201cffmpeg\u201d)."), rows[1]
    assert causes[1][0] == "waiting for a CPU" and near(causes[1][1], 11900034) and "ffmpeg" in causes[1][-1], causes
    assert text.startswith("waiting for a CPU 147 \u00b5s at 150 \u00b5s") and "ffmpeg" in text, text


def trace_of(recording):
    path = os.path.join(scratch(), "x.trace.json")
    assert run([need(XPUTRACE, "collector"), "report", recording, "-q", "-o", path]).status == 0
    with open(path, encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


def shown(browser, section="timeline"):
    browser.frames()
    return browser.run('(({from, to}) => [Number(from), Number(to)])(document.querySelector("#%s canvas[role=application]").dataset)' % section)


def test_zoom():
    """w, s, a, d, wheel, dragging and a double click; the devices' tracks follow; at last one operator fills the width."""
    page, _ = report(kept("operators"))
    with Browser() as browser:
        browser.open(page)
        browser.run('document.getElementById("timeline").scrollIntoView({behavior: "instant"})')
        focus(browser, "timeline")
        begin, end = shown(browser)
        browser.key("w")
        first, last = shown(browser)
        assert begin < first < last < end
        browser.key("d")
        assert shown(browser)[0] > first and abs(shown(browser)[1] - shown(browser)[0] - (last - first)) < 1
        browser.key("a")
        browser.key("s")
        browser.key("0")
        assert shown(browser) == [begin, end]
        box = browser.run("""(({x, y, width, height}) => [x, y, width, height])(document.activeElement.getBoundingClientRect())""")
        at = {"x": box[0] + box[2] * 0.6, "y": box[1] + 8}
        browser.mouse("mouseWheel", deltaX=0, deltaY=-600, **at)
        zoomed = shown(browser)
        assert zoomed[1] - zoomed[0] < (end - begin) / 2, (zoomed, begin, end)
        browser.mouse("mousePressed", button="left", clickCount=1, **at)
        browser.mouse("mouseMoved", button="left", x=at["x"] - 100, y=at["y"])
        browser.mouse("mouseReleased", button="left", clickCount=1, x=at["x"] - 100, y=at["y"])
        assert shown(browser)[0] > zoomed[0]
        browser.key("0")
        for _ in range(30):
            browser.key("ArrowDown")
            text = reading(browser, "timeline")
            if text.startswith("operator"):
                break
        for _ in range(30):
            if text.startswith("operator#1"):
                break
            browser.key("ArrowLeft")
            text = reading(browser, "timeline")
        assert text.startswith("operator#1"), text
        browser.key("Enter")
        first, last = shown(browser)
        took = nanoseconds(re.match(r"operator#1 (\S+ \S+) at", text).group(1))
        assert abs((last - first) / took - 1.2) < 0.02, (text, first, last)
        check_quiet(browser, page)


def hostile(path):
    """Programs and frames with such names, and one that is no UTF-8."""
    names = list(MARKUP[:-1]) + ["long" * 2000]
    records, at = [], START
    for number, name in enumerate(names, 1):
        records.append(text_record(FRAME, 0, 0, {"kind": "native", "function": name, "file": name, "line": 1}, number))
        records.append(stack_record(number, [number]))
    for i in range(60):
        number = i % len(names) + 1
        records += [sample_record(number, 1, at, at, 1), call_record(EXECUTE, at, at + 10000 + i, [HANDLE * number, 0])]
        at += 20000
    with_records(kept("counted"), path, {HANDLE * i: name for i, name in enumerate(names, 1)}, records)
    return names


def test_hostile_names():
    """Markup, ends of scripts, control characters: they are text. The policy of the page refuses what is put in afterwards."""
    path = os.path.join(scratch(), 'x<img src=x onerror=window.hit=5>.xpt')
    names = hostile(path)
    page, _ = report(path)
    with open(page, "rb") as file:
        document = file.read()
    assert document.lower().count(b"<script") == 2 and b"onerror" not in document and b"hit=" not in document
    with Browser() as browser:
        browser.open(page)
        for index in range(len(names)):
            browser.run('document.querySelectorAll("#programs tbody button")[%d].click()' % index)
            browser.frames()
        (_, *rows), = tables(browser, "programs")
        frames = tables(browser, "flame")
        browser.run('document.querySelector("#flame details").open = true')
        assert browser.run("typeof window.hit") == "undefined"
        assert browser.run('document.querySelectorAll("img, iframe, object, embed, form, script[src], b:not(.read b, .note b, .head b)").length') == 0
        found = browser.run('[...document.querySelectorAll("#programs tbody th button")].map((each) => each.textContent)')
        check_quiet(browser, page)
        browser.run('document.body.append(Object.assign(document.createElement("script"), {textContent: "window.hit = 6"}))')
        browser.run('document.body.insertAdjacentHTML("beforeend", "<img src=data:, onerror=window.hit=7>")')
        browser.run('fetch("http://localhost:9/").catch(() => 0)')
        browser.frames()
        assert browser.run("typeof window.hit") == "undefined"
        assert any("Content Security Policy" in text for text in browser.logged), browser.logged
    visible = {"".join(c if c.isprintable() and c != "\u202e" else "\\x%02x" % ord(c) if ord(c) < 256 else "\\u{%x}" % ord(c) for c in name)
               for name in names}
    assert len(rows) == len(names) and {name[:200] for name in found} == {name[:200] for name in visible}, found
    assert frames


def test_invalid_utf8():
    """Each byte that is none is a replacement character."""
    path, page = os.path.join(scratch(), "x.xpt"), os.path.join(scratch(), "y.xpt")
    with_records(kept("counted"), path, {HANDLE: "ab?cd"}, [call_record(EXECUTE, START, START + 10000, [HANDLE, 0])])
    rewrite(path, page, lambda records: [(*one[:3], one[3].replace(b"ab?cd", b"ab\xffcd")) for one in records])
    page, _ = report(page)
    with Browser() as browser:
        browser.open(page)
        assert "ab\ufffdcd" in [row[0] for row in tables(browser, "programs")[0]]
        check_quiet(browser, page)


def test_themes_and_print():
    """Dark and light by the system and by the button, a narrow window, and paper, which is light and leaves the theme as it was."""
    page, _ = report(kept("operators"))
    shade = "getComputedStyle(document.body).backgroundColor"
    with Browser() as browser:
        browser.media("light")
        browser.open(page)
        light = browser.run(shade)
        browser.media("dark")
        dark = browser.run(shade)
        assert light != dark
        browser.run('document.querySelector("header .tool").click()')
        assert browser.run(shade) == light
        browser.run('document.querySelector("header .tool").click()')
        paper = os.path.join(scratch(), "x.pdf")
        browser.print(paper)
        assert os.path.getsize(paper) > 20000 and browser.run(shade) == dark
        browser.size(360, 700)
        browser.frames()
        assert browser.run("document.documentElement.scrollWidth") <= 360
        check_quiet(browser, page)


def check_accessible(browser):
    """What is drawn has words, tables have captions and heads, parts have names, and everything that is chosen can be by keyboard."""
    missing = browser.run("""[...document.querySelectorAll("canvas")].filter((each) => !each.getAttribute("aria-label")).length +
        [...document.querySelectorAll("table")].filter((each) => !each.caption || !each.querySelector("th")).length +
        [...document.querySelectorAll("section")].filter((each) => !document.getElementById(each.getAttribute("aria-labelledby"))).length +
        [...document.querySelectorAll("input")].filter((each) => !each.getAttribute("aria-label")).length +
        [...document.querySelectorAll("tr.choice")].filter((each) => !each.querySelector("button")).length""")
    assert missing == 0
    assert browser.run('document.querySelectorAll("main, header, nav[aria-label], footer").length') == 4
    assert browser.run("document.documentElement.lang") == "en"
    links = browser.run('[...document.querySelectorAll("nav a")].every((each) => document.querySelector(each.getAttribute("href")))')
    assert links


def test_accessible():
    """As check_accessible() has it."""
    page, _ = report(kept("jobs"))
    with Browser() as browser:
        browser.open(page)
        check_accessible(browser)


def test_outputs():
    """By name, by format, compressed, from a pipe, to one; and what makes no sense."""
    command = [need(XPUTRACE, "collector"), "report", "-q"]
    page, _ = report(kept("jobs"))
    with open(page, "rb") as file:
        expected = file.read()
    by_name = os.path.join(scratch(), "y.html")
    assert run([*command, kept("jobs"), "-o", by_name]).status == 0
    with open(by_name, "rb") as file:
        assert file.read() == expected
    piped = subprocess.run("cat %s | %s - --html - | cat" % (kept("jobs"), " ".join(command)), shell=True, capture_output=True, check=True)
    assert piped.stdout.startswith(b"<!DOCTYPE html>") and piped.stdout.endswith(b"</html>\n")
    for options, reason in ((["--html", by_name, "--slowest", "3"], "beside"), (["--html", by_name, "-o", "z"], "stands for"),
                            (["--format", "html"], "requires a file"), (["--html", by_name, "--flame", "cpu"], "--flame")):
        result = run([*command, kept("jobs"), *options])
        assert result.status == 2 and reason in result.stderr, (options, result)


def test_flame():
    """Sums of frames as in folded text; a search gives the part of the time; Enter zooms into a frame, Escape back."""
    made = Made()
    lines, totals = made.folded("inference"), totals_of(made.folded("inference"))
    page, _ = report(made.path)
    with Browser() as browser:
        browser.open(page)
        browser.run('document.querySelector("#flame details").open = true')
        browser.run('[...document.querySelectorAll("#flame button")].filter((each) => each.innerText.startsWith("Show all ")).forEach((each) => each.click())')
        (_, *rows), = tables(browser, "flame")
        browser.run("""(() => { const field = document.querySelector("#flame input"); field.value = "model\\\\.py:20";
                       field.dispatchEvent(new Event("input")); })()""")
        found = browser.run('document.querySelector("#flame .bar:nth-child(1) span").innerText')
        focus(browser, "flame")
        browser.key("ArrowDown")
        whole = reading(browser, "flame")
        for _ in range(5):
            browser.key("ArrowDown")
        browser.key("Enter")
        inner = reading(browser, "flame")
        browser.key("Escape")
        assert reading(browser, "flame").startswith("all ")
        browser.run('document.querySelectorAll("#flame [role=tab]")[1].click()')
        assert browser.run('document.querySelectorAll("#flame [role=tab]")[1].getAttribute("aria-selected")') == "true"
        check_quiet(browser, page)
    shown = {row[0]: row[3] for row in rows}
    named = {name.replace("futex_wait_[k]", "futex_wait").replace("ranker:", "ranker;"): value for name, value in totals.items()}
    assert set(shown) == set(named), (shown, named)
    assert all(near(text.split(" (")[0], named[name]) for name, text in shown.items()), (shown, named)
    part = 100 * totals["décode (model.py:20)"] / sum(lines.values())
    assert found == "1 frame match, %.1f %% of the time" % part, (found, part)
    assert whole.startswith("all ") and any(inner.startswith(name + " ") for name in shown), (whole, inner)


def test_budget_and_losses():
    """Changes to keep a budget are listed with their times."""
    path = os.path.join(scratch(), "x.xpt")
    with_budget(kept("counted"), path)
    page, summary = report(path)
    with Browser() as browser:
        browser.open(page)
        browser.run('document.querySelector("#overview details").open = true')
        listed = [table for table in tables(browser, "overview") if "Change" in table[0]]
        check_quiet(browser, page)
    (head, *rows), = listed
    assert len(rows) == len(summary["budget_changes"]) == 6, (head, rows)
    assert [row[1] for row in rows][:3] == ["sampling: 1 in 8, 2 programs", "nrt_execute off", "other off"], rows


def test_choice():
    """One program, as the summary of the same choice."""
    page, summary = report(kept("operators"), "--program", "multiply")
    with Browser() as browser:
        browser.open(page)
        (_, *rows), = tables(browser, "programs")
        check_quiet(browser, page)
    assert [row[0] for row in rows] == [program["name"] for program in summary["programs"]] == ["multiply"]


def test_recorded():
    """record -o x.html: what the workload did, from a recording that is not kept."""
    page = os.path.join(scratch(), "x.html")
    result = run([need(XPUTRACE, "collector"), "record", "-q", "--why", "--stacks", "-o", page, "--", workload_path("linked-nrt"), "nrt",
                  "--calls", "300"])
    assert result.status == 0, result.stderr
    made = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    with Browser() as browser:
        browser.open(page)
        (head, *rows), = tables(browser, "programs")
        check_quiet(browser, page)
    column = [title.split()[0] for title in head].index("Inferences")
    counted = sum(int(row[column].replace(",", "")) for row in rows)
    assert counted == sum(entry["count"] for entry in run_entries(made)) > 0, (rows, made)
    assert os.listdir(os.path.dirname(page)) == ["x.html"]


def test_driver_events():
    """Failed jobs, errors and resets of drivers with their statuses, and memory events: as many as the trace and the summary have, and on the axis."""
    path, sizes = os.path.join(scratch(), "x.xpt"), [4096, 8192, 4096]
    with_driver_events(kept("jobs"), path, [-5, -5, -110], sizes)
    events = [event for event in trace_of(path) if event.get("cat") in ("error,told", "reset,told", "memory,told")]
    summary = run([need(XPUTRACE, "collector"), "report", path]).stdout.splitlines()
    at = next(i for i, line in enumerate(summary) if line.startswith("QUEUE "))
    failed = int(summary[at + 1].split()[summary[at].split().index("FAILED")])
    page, _ = report(path)
    with Browser() as browser:
        browser.open(page)
        browser.run('[...document.querySelectorAll("#devices details")].forEach((each) => each.open = true)')
        found = {table[0][0].split("\n")[0].strip(" \u25be\u25b4"): [dict(zip([re.sub(r"\W+$", "", title) for title in table[0]], row)) for row in table[1:]]
                 for table in tables(browser, "devices")}
        figures = dict(browser.run('[...document.querySelectorAll("#overview .figures > div")].map((each) => [each.children[0].innerText, each.children[1].innerText])'))
        focus(browser, "devices")
        browser.key("ArrowDown")
        text = reading(browser, "devices")
        check_quiet(browser, page)
        check_accessible(browser)
    errors, memory = found["Event or job"], found["Event"]
    jobs = {row["Status"]: int(row["Times"]) for row in errors if row["What"] == "failed job"}
    assert sum(jobs.values()) == failed == 3, (jobs, summary)
    for what in ("error", "reset"):
        expected = collections.Counter(str(event["args"].get("status", "\u2013")) for event in events if event["cat"] == what + ",told")
        assert {row["Status"]: int(row["Times"]) for row in errors if row["What"] == what} == expected, (errors, expected)
    assert [int(row["Times"]) for row in memory] == [len(sizes)] == [sum(event["cat"] == "memory,told" for event in events)]
    assert memory[0]["Bytes"] == "%.1f kB" % (sum(sizes) / 1000), memory
    assert figures["Errors of drivers"] == str(failed + sum(event["cat"] != "memory,told" for event in events)), figures
    assert text.startswith(("error told:failed", "failed job")) and "status -5" in text, text


def test_tokens():
    """Of two contexts of a language model, prompts and answers: as the summary has them, in the table and with the program."""
    path = os.path.join(scratch(), "x.xpt")
    assert run([need(XPUTRACE, "collector"), "record", "-q", "--wait-limit", "30s", "-o", path, "--", workload_path("tokens")]).status == 0
    lines = run([XPUTRACE, "report", path]).stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("LANGUAGE MODEL"))
    expected = [re.split(r"\s{2,}", line) for line in lines[at + 1:lines.index("", at)]]
    page, _ = report(path)
    with Browser() as browser:
        browser.open(page)
        rows = tables(browser, "programs")[1][1:]
        detail = [table for table in tables(browser, "program") if table[0][0].startswith("Language model")]
        check_quiet(browser, page)
    assert len(rows) == len(expected) >= 2, (rows, expected)
    for row, (name, _, pid, phase, batches, tokens, rate, _, *times) in zip(rows, expected):
        assert row[0] == name and row[2:4] == [pid, phase] and [row[4].replace(",", ""), row[5].replace(",", "")] == [batches, tokens], (row, name)
        assert abs(float(row[6].replace(",", "")) / float(rate) - 1) < 0.01, (row, rate)
        for shown, text in zip([row[8], row[9], row[11], row[12]], times):
            number, unit = re.match(r"([\d.]+)(\w+)$", text).groups()
            assert near(shown, float(number) * UNITS[unit.replace("us", "\u00b5s")]), (row, times)
    assert detail and all(row in rows for row in detail[0][1:]) and detail[0][1:], detail
