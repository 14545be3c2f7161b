# SPDX-License-Identifier: BSD-2-Clause
"""Language models: prompts and answers apart, with tokens and times of them, in trace, summary and CSV."""

import csv
import json
import os

from harness import XPUTRACE, need, record_command, run, scratch, workload_path


class Batch:
    """One that was decoded, as the program printed it, with the bounds (ns) of times that end with its begin."""

    def __init__(self, line):
        vars(self).update(json.loads(line))
        self.first_token = self.output_token = None


def batches(text):
    """By context, in order. A call begins between the times before and after it."""
    contexts = {}
    for line in text.splitlines():
        if line.startswith('{"context"'):
            batch = Batch(line)
            contexts.setdefault(batch.context, []).append(batch)
    for listed in contexts.values():
        prompt = None
        for before, batch in zip([None] + listed, listed):
            new_prompt = not before or before.phase == "decode" or batch.tokens == 20  # one for each sequence
            if batch.phase == "prefill":
                prompt = batch if new_prompt else prompt
                continue
            origin = prompt if before.phase == "prefill" else before
            setattr(batch, "first_token" if before.phase == "prefill" else "output_token",
                    (batch.before - origin.after, batch.after - origin.before))
    return contexts


def check_bounds(what, value, bounds):
    """Times come in microseconds with three decimals."""
    if bounds is None:
        assert value is None, (what, value)
    else:
        assert bounds[0] - 1 <= float(value) * 1e3 <= bounds[1] + 1, (what, value, bounds)


def expected_rows(listed):
    """What the summary's two rows of a context have: phase, batches, tokens."""
    return [(phase, str(sum(batch.phase == phase for batch in listed)),
             str(sum(batch.tokens for batch in listed if batch.phase == phase))) for phase in ("prefill", "decode")]


def test_trace_and_summary():
    """Each batch in the trace; the summary and the trace's metadata have their sums."""
    _, trace, recorder = record_command([workload_path("tokens")])
    contexts = batches(recorder.stdout)
    assert len(contexts) == 2
    trace.check()
    rows = [line.split() for line in recorder.stdout.splitlines() if " prefill " in line or " decode " in line]
    for context, listed in contexts.items():
        calls = sorted((call for call in trace.of("llama_decode") if call.handle == int(context, 16)), key=lambda call: call.start)
        failed = [call for call in calls if call.status == 1]
        assert all("phase" not in call.event["args"] and call.event["args"]["tokens"] == 65 for call in failed), failed
        calls = [call for call in calls if call.status == 0]
        assert len(calls) == len(listed)
        for call, batch in zip(calls, listed):
            arguments = call.event["args"]
            assert (arguments["phase"], arguments["tokens"]) == (batch.phase, batch.tokens), (arguments, vars(batch))
            check_bounds("first", arguments.get("first_token_us"), batch.first_token)
            check_bounds("output", arguments.get("output_token_us"), batch.output_token)
        program, = [program for program in trace.programs(runtime="llama") if int(program["handle"], 16) == int(context, 16)]
        for phase, count, tokens in expected_rows(listed):
            total = program["tokens"][phase]
            assert (str(total["batches"]), str(total["tokens"])) == (count, tokens), (total, count, tokens)
            assert ["/models/tokens.gguf", "llama", phase, count, tokens] in [row[:2] + row[3:6] for row in rows], rows
            assert total["time_ns"] >= sum(call.duration * 1e3 for call, batch in zip(calls, listed) if batch.phase == phase) - 100
        assert program["tokens"]["output_token_ns"]["count"] == sum(batch.output_token is not None for batch in listed)


def test_csv():
    """A row a batch, with its tokens in the column of its phase; times where one ends."""
    path = os.path.join(scratch(), "tokens.csv")
    done = run([need(XPUTRACE, "collector"), "stream", "-q", "--report-every", "1h", "-o", path, "--append", "--",
                workload_path("tokens")])
    assert done.status == 0, done.stderr
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    for context, listed in batches(done.stdout).items():
        first = next(i for i, line in enumerate(lines) if context in line)
        heading = lines[first + 3]
        assert heading[0] == "Sample", heading
        rows = []
        for line in lines[first + 4:]:
            if line[0] == "program":
                break
            rows.append(dict(zip(heading, line)))
        rows = [row for row in rows if row["status"] != "no room in the cache for the batch"]
        assert len(rows) == len(listed)
        for row, batch in zip(rows, listed):
            other = {"prefill": "decode", "decode": "prefill"}[batch.phase]
            assert (row[batch.phase + "Tokens"], row[other + "Tokens"]) == (str(batch.tokens), "N/A"), (row, vars(batch))
            rate = batch.tokens / float(row["totalRoundtripTime(Us)"]) * 1e6
            assert abs(float(row["tokensPerSec"]) - rate) <= rate * 0.001, row
            for column, bounds in (("firstTokenTime(Us)", batch.first_token), ("outputTokenTime(Us)", batch.output_token)):
                check_bounds(column, None if row[column] == "N/A" else row[column], bounds)
