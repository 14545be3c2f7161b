#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Decodes batches with llama.cpp: serve.py LIBRARY_FOLDER MODEL. Prints a line of JSON for each, as tokens.c does."""

import ctypes
import glob
import json
import os
import struct
import sys
import time

SEQUENCES = 3
N_SEQ_MAX = 12  # offset in the context's parameters


class Parameters(ctypes.Structure):
    """Of a model or a context: what they are is the library's, whose structs are smaller."""

    _fields_ = [("bytes", ctypes.c_ubyte * 512)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32)] + [
        (name, ctypes.c_void_p) for name in ("token", "embd", "pos", "n_seq_id", "seq_id", "logits")]


def load(folder):
    for name in ("libggml-base.so", "libggml.*so", "libllama.*so"):
        path, = glob.glob(os.path.join(folder, name))
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        if name == "libggml.*so":
            library.ggml_backend_load_all_from_path(folder.encode())
    library.llama_model_default_params.restype = library.llama_context_default_params.restype = Parameters
    library.llama_model_load_from_file.restype = library.llama_init_from_model.restype = ctypes.c_void_p
    library.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Parameters]
    library.llama_init_from_model.argtypes = [ctypes.c_void_p, Parameters]
    library.llama_set_n_threads.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
    library.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    library.llama_free.argtypes = library.llama_model_free.argtypes = [ctypes.c_void_p]
    return library


def decode(library, context, phase, items):
    """items: position and sequence of each token."""
    count = len(items)
    tokens = (ctypes.c_int32 * count)(*[5] * count)
    positions = (ctypes.c_int32 * count)(*[position for position, _ in items])
    counts = (ctypes.c_int32 * count)(*[1] * count)
    numbers = [(ctypes.c_int32 * 1)(sequence) for _, sequence in items]
    sequences = (ctypes.c_void_p * (count + 1))(*[ctypes.addressof(number) for number in numbers], None)
    logits = (ctypes.c_int8 * count)(*[0] * (count - 1), 1)
    batch = Batch(count, *[array and ctypes.addressof(array) for array in (tokens, None, positions, counts, sequences, logits)])
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    status = library.llama_decode(context, batch)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if status:
        sys.exit("llama_decode: %d" % status)
    print(json.dumps({"context": "0x%x" % context, "phase": phase, "tokens": count, "before": before, "after": after},
                     separators=(",", ":")), flush=True)


def main():
    library = load(sys.argv[1])
    model = library.llama_model_load_from_file(sys.argv[2].encode(), library.llama_model_default_params())
    parameters = library.llama_context_default_params()
    struct.pack_into("<I", parameters.bytes, N_SEQ_MAX, SEQUENCES)
    context = library.llama_init_from_model(model, parameters)
    library.llama_set_n_threads(context, 1, 1)
    for sequence in range(SEQUENCES):
        decode(library, context, "prefill", [(position, sequence) for position in range(20)])
    for position in range(20, 25):
        decode(library, context, "decode", [(position, sequence) for sequence in range(SEQUENCES)])
    decode(library, context, "decode", [(25, 0)])
    decode(library, context, "prefill", [(position, 0) for position in range(26, 34)])
    decode(library, context, "decode", [(34, 0)])
    library.llama_free(context)
    library.llama_model_free(model)


main()
