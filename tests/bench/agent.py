# SPDX-License-Identifier: BSD-2-Clause
"""What metrics cost: the CPU time of xputrace agent beside 100 processes with 1,000 programs, with and without a budget."""

import os
import socket
import time

from scale import recorder_cpu
from tools import BUILD, XPUTRACE, Process

WORKLOAD = os.path.join(BUILD, "workload", "workload")
PROCESSES, PROGRAMS, RATE = 100, 10, 10  # programs and inferences a second of each process
SCRAPE_EVERY = 15  # s
SETTLED = 15  # s, before it is measured: what is new in the first seconds costs more
LIMIT = 1  # percent of a core
MODES = (("without a budget", ["--budget", "none"]), ("default budget", []))


def scrape(path):
    """The metrics, as sums by name."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()
    sums = {}
    for line in text.partition("\r\n\r\n")[2].splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            sums[name] = sums.get(name, 0) + float(value)
    return sums


def run_agent(options, pids, seconds, path):
    """Percent of a core, percent of the inferences that were recorded, inferences a second, MB of memory."""
    agent = Process([XPUTRACE, "agent", "--listen", "unix:" + path, "-p", ",".join(map(str, pids))] + options)
    agent.wait_line("stderr", "metrics are at")
    time.sleep(SETTLED if seconds >= SETTLED else 1)
    before, used, begun = scrape(path), recorder_cpu(agent), time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(min(SCRAPE_EVERY, max(0, begun + seconds - time.monotonic())))
        after = scrape(path)
    took = time.monotonic() - begun
    share = (recorder_cpu(agent) - used) / took / 1e7
    made, recorded = (after.get(name, 0) - before.get(name, 0)
                      for name in ("xputrace_inferences_total", "xputrace_inferences_recorded_total"))
    agent.signal(15)
    agent.wait()
    counted = after["xputrace_last_report_timestamp_seconds"] - before["xputrace_last_report_timestamp_seconds"]
    return share, 100 * recorded / (PROCESSES * RATE * counted), made / counted, after["xputrace_process_resident_memory_bytes"] / 1e6


def agent_section(results, settings, folder):
    results.section("agent: %d processes with %d programs and %d inferences/s each, scraped every %d s"
                    % (PROCESSES, PROGRAMS, RATE, SCRAPE_EVERY))
    rows = {title: [] for title, _ in MODES}
    workloads = [Process([WORKLOAD, "nrt", "--programs", str(PROGRAMS), "--rate", str(RATE), "--calls", "0", "--load-first",
                          "--name", "bench-%03d" % number]) for number in range(PROCESSES)]
    try:
        time.sleep(2)
        for _ in range(settings.repetitions):
            for title, options in MODES:
                rows[title].append(run_agent(options, [each.pid for each in workloads], settings.agent_seconds,
                                             os.path.join(folder, "agent")))
    finally:
        for each in workloads:
            each.kill()
    for title, _ in MODES:
        shares, recorded, rates, memory = map(list, zip(*rows[title]))
        results.add(title + ": CPU time", shares, "% of a core", LIMIT)
        results.add(title + ": inferences that are recorded", recorded, "%", note="%.0f/s counted" % rates[0])
        results.add(title + ": resident memory", memory, "MB")
