# SPDX-License-Identifier: BSD-2-Clause
"""diff --html: its figures are those of --json, its words those of the tables, its histogram is exact; and no name becomes markup."""

import base64
import json
import os
import re
import zlib

from browser import Browser
from harness import XPUTRACE, need, run, scratch
from recordings import EXECUTE, call_record, with_records
from test_page import HANDLE, MARKUP, START, check_accessible, check_quiet, hostile, kept, near, tables

RUNS = 400
LATER = START + 10 ** 10  # when the kept recording's process has ended


def durations(base):
    """ns, of which no two are the same."""
    return [int(base * (1 + (i * 7919 % RUNS) / RUNS / 20)) + i for i in range(RUNS)]


def recording(name, programs):
    """Of programs with such durations, one after the other."""
    path, records, at = os.path.join(scratch(), name), [], LATER
    for number, (_, made) in enumerate(programs, 1):
        for duration in made:
            records.append(call_record(EXECUTE, at, at + duration, [HANDLE * number, 0]))
            at += duration + 1000
    with_records(kept("counted"), path, {HANDLE * i: name for i, (name, _) in enumerate(programs, 1)}, records)
    return path


def pair():
    """Of two programs, one is 90 % slower after; each side has one that the other has not."""
    return (recording("a.xpt", [("ranker", durations(1000000)), ("same", durations(300000)), ("gone", durations(50000))]),
            recording("b.xpt", [("ranker", durations(1900000)), ("same", durations(300000)), ("come", durations(50000))]))


def compared(before, after, *options, status=0):
    """The page, its data, the comparison as JSON and as text."""
    page, document = os.path.join(scratch(), "x.html"), os.path.join(scratch(), "x.json")
    done = run([need(XPUTRACE, "collector"), "diff", before, after, "--all", "--html", page, "--json", document, *options])
    assert done.status == status, done.stderr
    with open(page, encoding="utf-8") as file:
        packed = re.search(r"id=.data.[^>]*>([^<]*)<", file.read())[1]
    with open(document, encoding="utf-8") as file:
        return page, json.loads(zlib.decompress(base64.b64decode(packed))), json.load(file), done.stdout


def press(browser, text, section="rows"):
    browser.run('[...document.querySelectorAll("#%s button")].find((each) => each.innerText.startsWith("%s")).click()' % (section, text))


def percents(text):
    return float(text.rstrip("* %").replace("\u2212", "-"))


def test_figures():
    """Rows of each program, what they consist of, programs on one side, conditions: as in the JSON and in the tables."""
    page, data, expected, text = compared(*pair(), "--fail-if", "p50 > +10% of ranker", "--fail-if", "p50 > +500%", "--fail-if", "none > +1%", status=3)
    for key in ("schema", "version", "command", "host", "time", "status"):
        expected.pop(key)
    assert data["comparison"] == expected
    assert data["summary"].splitlines() == text.splitlines()[:2]
    with Browser() as browser:
        browser.open(page)
        (_, *programs), = tables(browser, "programs")
        shown = {}
        for index, program in enumerate(expected["programs"]):
            browser.run('document.querySelectorAll("#programs tbody button")[%d].click()' % index)
            press(browser, "All rows")
            shown[program["name"]] = tables(browser, "rows")
            words = browser.run('[...document.querySelectorAll("#rows .block > p")].map((each) => each.innerText)')
            assert (len(words) == 3) == (program["name"] == "ranker") and all("  " + line in text.splitlines() for line in words), (words, text)
        (_, *unmatched), = tables(browser, "unmatched")
        overview = tables(browser, "overview")[0][1:]
        check_quiet(browser, page)
        check_accessible(browser)
    assert {program["name"] for program in expected["programs"]} == {"ranker", "same"} == {row[0] for row in programs}
    for program in expected["programs"]:
        found = {row[0]: row for row in shown[program["name"]][0][1:]}
        assert len(found) == len(program["rows"]) >= 5, found
        for row in program["rows"]:
            cells = found[row["name"]]
            if row["unit"] == "ns":
                assert near(cells[1], row["before"]) and near(cells[2], row["after"]), (cells, row)
                assert near(cells[3].replace("\u2212", "").replace("+", ""), abs(row["change"])) and (cells[3][0] == "+") == (row["change"] >= 0), (cells, row)
            assert abs(percents(cells[4]) - row["percent"]) <= 0.05 + abs(row["percent"]) / 100, (cells, row)
            assert cells[-1] == ("not tested" if row["adjusted"] is None else "yes *" if row["significant"] else "no"), (cells, row)
    assert {row["name"] for row in expected["programs"][0]["rows"] if row["significant"]} >= {"p50", "mean"}
    assert [row[:2] + row[4:5] for row in unmatched] == [["gone", "before", str(RUNS)], ["come", "after", str(RUNS)]]
    assert [row[1] for row in overview] == ["FAILED", "passed", "not checked"], overview


def test_histogram():
    """Its counts are exact, and keys read them; percentiles are those of the durations."""
    before, after = pair()
    page, data, expected, _ = compared(before, after)
    index = [program["name"] for program in expected["programs"]].index("ranker")
    made = data["durations"][index]
    for side, base in enumerate((1000000, 1900000)):
        counts = [sum(low <= each < high for each in durations(base)) for low, high in zip(made["bounds"], made["bounds"][1:])]
        assert made["counts"][side] == counts and sum(counts) == RUNS, (made, counts)
    with Browser() as browser:
        browser.open(page)
        browser.run('document.querySelectorAll("#programs tbody button")[%d].click()' % index)
        browser.run('document.querySelector("#latency canvas").focus()')
        browser.key("ArrowRight")
        browser.frames()
        read = browser.run('document.querySelector("#latency .chart + .read").innerText')
        (_, *sides), = tables(browser, "latency")
        check_quiet(browser, page)
    assert "before %d inferences" % made["counts"][0][0] in read and "after 0 inferences" in read, read
    for row, base in zip(sides, (1000000, 1900000)):
        ordered = sorted(durations(base))
        assert row[1] == str(RUNS) and near(row[2], ordered[0]) and near(row[8], ordered[-1]), row
        assert abs(float(row[3].split(" ")[0]) / (ordered[RUNS // 2 - 1] / 1e6) - 1) < 0.02, row


def test_find_and_sort():
    """Programs are found by name; rows by name, all or those that have changed, and in the order of a column."""
    page, _, expected, _ = compared(*pair())
    with Browser() as browser:
        browser.open(page)
        browser.run('(() => { const field = document.querySelector("#programs input"); field.value = "SAM"; field.dispatchEvent(new Event("input")); })()')
        (_, *found), = tables(browser, "programs")
        assert [row[0] for row in found] == ["same"]
        changed = tables(browser, "rows")[0][1:]
        press(browser, "All rows")
        press(browser, "Before")
        values = [row[1] for row in tables(browser, "rows")[0][1:]]
        browser.run('(() => { const field = document.querySelector("#rows input"); field.value = "p9"; field.dispatchEvent(new Event("input")); })()')
        names = [row[0] for row in tables(browser, "rows")[0][1:]]
        check_quiet(browser, page)
    first, = [program for program in expected["programs"] if program["name"] == "ranker"]
    assert [row[0] for row in changed] == [row["name"] for row in first["rows"] if row["significant"]]
    before = {row["name"]: row["before"] for row in first["rows"] if row["unit"] == "ns"}
    assert all(near(text, value) for text, value in zip(values[:len(before)], sorted(before.values(), reverse=True))), (values, before)
    assert sorted(names) == ["p90", "p99"], names


def test_hostile_names():
    """Of programs, processes and files, and in a condition: text, whatever it is. The policy refuses what is put in afterwards."""
    paths = [os.path.join(scratch(), 'x<img src=x onerror=window.hit=%d>.xpt' % i) for i in range(2)]
    hostile(paths[0])
    names = hostile(paths[1])
    with open(paths[1], "rb") as file:
        assert MARKUP[0].encode() in file.read()
    page, data, _, _ = compared(*paths, "--fail-if", '"%s" > +1%%' % MARKUP[1], status=1)
    assert {program["name"][:200] for program in data["comparison"]["programs"]} == {name[:200] for name in names}
    with open(page, "rb") as file:
        document = file.read()
    assert document.lower().count(b"<script") == 2 and b"onerror" not in document and b"hit=" not in document
    with Browser() as browser:
        browser.open(page)
        for index in range(len(names)):
            browser.run('document.querySelectorAll("#programs tbody button")[%d].click()' % index)
            press(browser, "All rows")
            browser.frames()
        assert browser.run("typeof window.hit") == "undefined"
        assert browser.run('document.querySelectorAll("img, iframe, object, embed, form, script[src]").length') == 0
        assert browser.run('document.querySelectorAll("#programs tbody th button").length') == len(names)
        check_quiet(browser, page)
        browser.run('document.body.insertAdjacentHTML("beforeend", "<img src=data:, onerror=window.hit=7>")')
        browser.frames()
        assert browser.run("typeof window.hit") == "undefined"
        assert any("Content Security Policy" in text for text in browser.logged), browser.logged


def test_shapes():
    """Several recordings of a side, operators, counters, nothing in common: light, dark, narrow, on paper."""
    pages = [compared(",".join((kept("operators"), kept("window"))), ",".join((kept("operators"), kept("counters"), kept("jobs")))),
             compared(kept("counted"), kept("counters")), compared(kept("operators"), kept("codeobj"))]
    with Browser() as browser:
        for page, data, expected, _ in pages:
            browser.size(1280, 800)
            browser.media("dark")
            browser.requested.clear()
            browser.open(page)
            assert expected["recordings_before"] == len(data["sides"][0]["recordings"])
            check_accessible(browser)
            paper = os.path.join(scratch(), "x.pdf")
            browser.print(paper)
            assert os.path.getsize(paper) > 10000
            browser.size(360, 700)
            browser.frames()
            assert browser.run("document.documentElement.scrollWidth") <= 360
            check_quiet(browser, page)
    _, data, _, _ = pages[0]
    for side, names in zip(data["sides"], (("operators", "window"), ("operators", "counters", "jobs"))):
        assert [os.path.basename(each["file"]) for each in side["recordings"]] == [name + ".xpt" for name in names]


def test_side_totals():
    """What a recording had, lost and cost is what `report` says of it."""
    _, data, _, _ = compared(kept("operators"), kept("qaic"))
    for side, name in zip(data["sides"], ("operators", "qaic")):
        summary = os.path.join(scratch(), "s.json")
        assert run([XPUTRACE, "report", kept(name), "-q", "--summary-json", summary]).status == 0
        with open(summary, encoding="utf-8") as file:
            expected = json.load(file)
        recorded, = side["recordings"]
        assert recorded["duration"] == expected["duration_ns"] and recorded["lost"] == expected["lost"]
        assert recorded["collector_cpu"] == expected["collector_cpu_ns"] and recorded["complete"] == expected["complete"]
        assert recorded["inferences"] == sum(program["inferences"] for program in expected["programs"])
        assert recorded["failed"] == sum(program["failed"] for program in expected["programs"])


def test_outputs():
    """On standard output instead of the tables; what cannot be written; the same file for the same recordings."""
    path = kept("operators")
    command = [need(XPUTRACE, "collector"), "diff", path, path]
    page, _, _, text = compared(path, path)
    assert text.startswith("1 recording before, 1 after")
    done = run([*command, "--html", "-"])
    with open(page, encoding="utf-8") as file:
        assert done.status == 0 and done.stdout == file.read()
    assert run([*command, "--html", "-", "--json", "-"]).status == 2
    done = run([*command, "-q", "--html", os.path.join(scratch(), "none", "x.html")])
    assert done.status == 1 and "cannot be written" in done.stderr, done.stderr
