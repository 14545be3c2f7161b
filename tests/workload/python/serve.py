# SPDX-License-Identifier: BSD-2-Clause
"""Serves models with ONNX Runtime's Python package, and measures itself.

serve.py MODEL... [--sessions N] [--runs N] [--rate HZ] [--threads N] [--wait] [--recreate] [--array] [--fail N] [--linger SECONDS]
	[--profile PREFIX]

MODEL.json, which make_model.py writes, tells the inputs. Prints {"ready":true,"pid":N} when the sessions exist, at the end one line with
what it did: runs and their median in us, and when each session began to be made, was made, began to be released and was (ns, CLOCK_MONOTONIC). --wait: sessions are made first, the runs begin when a line comes on standard input. --recreate:
release the sessions after the runs, make new ones, run again. --array: models are given as bytes, not as paths. --fail: so many runs
with an input that does not fit, more. --linger: sessions stay so long after their runs. --profile: ONNX Runtime writes its own profile of session N, counted from 0, into PREFIX-N_*.json.
"""

import argparse
import json
import os
import sys
import threading
import time

import numpy
import onnxruntime


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    for name, default in (("sessions", 1), ("runs", 100), ("rate", 0), ("threads", 1), ("fail", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    for name in ("wait", "recreate", "array"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--linger", type=float, default=0)
    parser.add_argument("--profile", default="")
    return parser.parse_args()


class Session:
    """One session, and what it measures."""

    made = 0

    def __init__(self, model, settings):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        if settings.profile:
            options.enable_profiling = True
            options.profile_file_prefix = "%s-%d" % (settings.profile, Session.made)
        Session.made += 1
        self.model, self.settings = model, settings
        with open(model, "rb") as file:
            given = file.read() if settings.array else model
        self.times = [time.monotonic_ns()]
        self.session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        self.times.append(time.monotonic_ns())
        with open(model + ".json", encoding="utf-8") as file:
            described = json.load(file)["inputs"]
        self.feeds = {one["name"]: numpy.resize(numpy.arange(64, dtype=numpy.float32) / 64, one["shape"])
                      for one in described}
        self.runs, self.failed = [], 0

    def run(self):
        following = time.monotonic()
        for _ in range(self.settings.runs):
            if self.settings.rate:
                following += 1 / self.settings.rate
                time.sleep(max(0, following - time.monotonic()))
            self.session.run(None, self.feeds)
            self.runs.append(None)  # from several threads: += could lose one
        wrong = {name: numpy.zeros([7, 7, 7], dtype=numpy.float32) for name in self.feeds}
        for _ in range(self.settings.fail):
            try:
                self.session.run(None, wrong)
            except Exception:  # what it raises differs between releases
                self.failed += 1

    def end(self):
        if self.settings.profile:
            self.session.end_profiling()
        self.times.append(time.monotonic_ns())
        del self.session
        self.times.append(time.monotonic_ns())


def serve(settings, sessions):
    threads = [threading.Thread(target=session.run) for session in sessions for _ in range(settings.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(settings.linger)
    for session in sessions:
        session.end()


def main():
    settings = arguments()
    done = []

    def create():
        sessions = [Session(model, settings) for model in settings.models for _ in range(settings.sessions)]
        done.extend(sessions)
        return sessions

    sessions = create() if settings.wait else None
    print(json.dumps({"ready": True, "pid": os.getpid()}), flush=True)
    if settings.wait:
        sys.stdin.readline()
    serve(settings, sessions or create())
    if settings.recreate:
        serve(settings, create())
    # The key that comes first is how results are found among what a runtime prints.
    print(json.dumps({"runtime": "onnxruntime", "pid": os.getpid(), "version": onnxruntime.__version__,
                      "runs": sum(len(session.runs) for session in done), "failed": sum(session.failed for session in done),
                      "sessions": [session.times for session in done]}),
          flush=True)


main()
