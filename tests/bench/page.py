# SPDX-License-Identifier: BSD-2-Clause
"""The page of a recording: how long it takes to make, how large it is, how fast a browser opens and draws it."""

import json
import os
import resource
import subprocess
import time

from load import RATE, run_load
from results import AT_LEAST
from tools import XPUTRACE

from browser import Browser
from harness import Skip

SECONDS = 2  # of scrolling, and of zooming
# The page is moved at each frame that the browser draws; frames a second, and the longest time between two, ms.
FRAMES = """new Promise((done) => {
    const canvas = document.querySelector("#timeline canvas"), height = document.documentElement.scrollHeight - innerHeight;
    const begin = performance.now();
    let frames = 0, last = begin, longest = 0;
    const step = () => {
        const now = performance.now(), part = (now - begin) / %d;
        longest = Math.max(longest, now - last);
        last = now;
        frames++;
        %s;
        part < 1 ? requestAnimationFrame(step) : done([frames * 1000 / (now - begin), longest]);
    };
    document.documentElement.style.scrollBehavior = "auto";
    requestAnimationFrame(step);
})"""
SCROLL = "scrollTo(0, height * part)"
ZOOM = 'canvas.dispatchEvent(new KeyboardEvent("keydown", {key: frames % 60 < 30 ? "w" : "s"}))'


def make(recording, page):
    """Seconds of wall-clock time, and the peak of memory in MiB."""
    start = time.monotonic()
    subprocess.run([XPUTRACE, "report", "-q", recording, "--html", page], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def browse(page):
    """Seconds until the page is drawn, and the frames of scrolling and zooming."""
    with Browser(1400, 900) as browser:
        start = time.monotonic()
        browser.open(page)
        opened = time.monotonic() - start
        scrolled = browser.run(FRAMES % (SECONDS * 1000, SCROLL))
        zoomed = browser.run(FRAMES % (SECONDS * 1000, ZOOM))
        assert not browser.logged, json.dumps(browser.logged)
    return opened, scrolled, zoomed


def page_section(results, settings, folder):
    recording, page = os.path.join(folder, "page.xpt"), os.path.join(folder, "page.html")
    made = run_load(recording, settings.page_inferences / RATE, RATE)["calls"]
    results.section("page of {:,} inferences, recording {:.0f} MB".format(made, os.stat(recording).st_size / 1e6))
    took, memory = zip(*(make(recording, page) for _ in range(settings.repetitions)))
    results.add("xputrace report --html: time", took, "s")
    results.add("its peak of memory", memory[:1], "MiB")
    results.add("size of the page", [os.stat(page).st_size / 1e6], "MB")
    try:
        opened, scrolled, zoomed = zip(*(browse(page) for _ in range(settings.repetitions)))
    except Skip as skip:
        results.add("opened in a browser", [], "s", note=str(skip))
    else:
        results.add("opened in Chromium, until it is drawn", opened, "s", 3)
        results.add("scrolled", [frames for frames, _ in scrolled], "frames/s", 30, AT_LEAST)
        results.add("the longest time between two frames of it", [longest for _, longest in scrolled], "ms")
        results.add("timeline zoomed in and out", [frames for frames, _ in zoomed], "frames/s", 30, AT_LEAST)
        results.add("the longest time between two frames of it", [longest for _, longest in zoomed], "ms")
    os.unlink(recording)
    os.unlink(page)
