# SPDX-License-Identifier: BSD-2-Clause
"""Language models: prompts and answers apart, with tokens and times of them, in trace, summary and CSV."""

import csv
import glob
import json
import os
import random
import struct

import code_files
from harness import BUILD, ROOT, XPUTRACE, Skip, need, record_command, run, scratch, workload_path


PATIENT = ["--wait-limit", "30s"]  # every batch counts


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


def check_trace(trace, recorder, model):
    """Each batch is in the trace; the summary and the trace's metadata have their sums."""
    contexts = batches(recorder.stdout)
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
            assert [model, "llama", phase, count, tokens] in [row[:2] + row[3:6] for row in rows], rows
            assert total["time_ns"] >= sum(call.duration * 1e3 for call, batch in zip(calls, listed) if batch.phase == phase) - 100
        assert program["tokens"]["output_token_ns"]["count"] == sum(batch.output_token is not None for batch in listed)


    return len(contexts)


def test_trace_and_summary():
    """Two contexts: batches with positions and sequences, and without."""
    _, trace, recorder = record_command([workload_path("tokens")], *PATIENT)
    assert check_trace(trace, recorder, "/models/tokens.gguf") == 2


# Of a model of one layer, 32 wide, with 64 tokens.
TENSORS = {"token_embd": (32, 64), "output_norm": (32,), "output": (32, 64), "blk.0.attn_norm": (32,), "blk.0.attn_q": (32, 32),
           "blk.0.attn_k": (32, 32), "blk.0.attn_v": (32, 32), "blk.0.attn_output": (32, 32), "blk.0.ffn_norm": (32,),
           "blk.0.ffn_gate": (32, 64), "blk.0.ffn_up": (32, 64), "blk.0.ffn_down": (64, 32)}


def write_model(path):
    """A model that says nothing sensible, in the format GGUF."""
    numbers = {"llama.context_length": 256, "llama.embedding_length": 32, "llama.block_count": 1,
               "llama.feed_forward_length": 64, "llama.attention.head_count": 4, "llama.rope.dimension_count": 8,
               "llama.vocab_size": 64}
    pairs = [(key, code_files.GGUF_STRING, code_files.gguf_string(value))
             for key, value in (("general.architecture", "llama"), ("tokenizer.ggml.model", "no_vocab"))]
    pairs += [(key, 4, struct.pack("<I", value)) for key, value in numbers.items()]
    pairs.append(("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)))
    head, data = code_files.gguf(pairs, tensors=len(TENSORS)), b""
    numbers = random.Random(1)
    for name, shape in TENSORS.items():
        head += code_files.gguf_string(name + ".weight") + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, 0, len(data))
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        data += struct.pack("<%df" % count, *[numbers.uniform(-0.1, 0.1) for _ in range(count)])
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32) + data)


def test_real_library():
    """llama.cpp as npm has it: where the batch lies, and what is in it, is as described."""
    libraries = glob.glob(os.path.join(BUILD, "npm-llama/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"))
    if not libraries:
        raise Skip("llama.cpp is not there (make npm-releases)")
    model = os.path.join(scratch(), "m.gguf")
    write_model(model)
    _, trace, recorder = record_command(["python3", os.path.join(ROOT, "tests/workload/llama/serve.py"), libraries[0], model],
                                        *PATIENT)
    assert check_trace(trace, recorder, model) == 1


def test_csv():
    """A row a batch, with its tokens in the column of its phase; times where one ends."""
    path = os.path.join(scratch(), "tokens.csv")
    done = run([need(XPUTRACE, "collector"), "stream", "-q", "--report-every", "1h", "-o", path, "--append", *PATIENT, "--",
                workload_path("tokens")])
    assert done.status == 0, done.stderr
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for context, listed in batches(done.stdout).items():
        own = [row for row in rows if row["handle"] == context and row["status"] != "no room in the cache for the batch"]
        assert len(own) == len(listed), (len(own), len(listed))
        for row, batch in zip(own, listed):
            other = {"prefill": "decode", "decode": "prefill"}[batch.phase]
            assert (row[batch.phase + "_tokens"], row[other + "_tokens"]) == (str(batch.tokens), ""), (row, vars(batch))
            rate = batch.tokens / float(row["duration_us"]) * 1e6
            assert abs(float(row["tokens_per_s"]) - rate) <= rate * 0.001, row
            for column, bounds in (("first_token_us", batch.first_token), ("output_token_us", batch.output_token)):
                check_bounds(column, row[column] or None, bounds)
