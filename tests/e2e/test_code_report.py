# SPDX-License-Identifier: BSD-2-Clause
"""Code objects and symbols of a recording that is made here, from user/record/FORMAT.md, as `xputrace report` shows them."""

import json
import os
import struct

from harness import XPUTRACE, run, scratch
from recordings import CODE_OBJECT, CODE_UNLOADED, SYMBOL, Recording, crc32c

RUNTIME, SPEC, PROCESS, CALL = 25, 16, 17, 1
PID = 4321


def padded(data):
    return data + bytes(-len(data) % 8)


def text_record(kind, time, number, text, tgid=PID):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    body = struct.pack("<QII", number, len(text), 0) + text
    return padded(struct.pack("<HHIQ", kind, (16 + len(body) + 7) // 8 * 8, tgid, time) + body)


def launch(start, end, handle):
    return struct.pack("<HHIQQIHBBBBHIQ", CALL, 48, PID, end, start, PID, 0, 0, 0, 1, 1, 0, 1, handle)


def write_recording(path, records):
    text = json.dumps({"monotonic_ns": "1", "realtime_ns": "2"}).encode()
    info = padded(text)
    header = struct.pack("<8sIHHIII", b"XPUTRACE", 0x01020304, 1, 1, 32 + len(info), 32, len(text))
    payload = b"".join(records)
    chunk = struct.pack("<4sIII", b"XPCK", 0, len(payload), len(records))
    with open(path, "wb") as file:
        file.write(header + struct.pack("<I", crc32c(header + bytes(4) + info)) + info)
        file.write(chunk + struct.pack("<II", crc32c(chunk + bytes(8) + payload), 0) + payload)


def test_recording_made_by_hand():
    """Loads, an unload, a stop and the name of a launched address: in the trace and in the table."""
    path = os.path.join(scratch(), "made.xpt")
    output = os.path.join(scratch(), "made.json")
    loaded = {"uri": "file:///opt/my.hsaco#offset=64&size=8192", "kind": "hsaco", "machine": "gfx90a", "size": 8192,
              "sha256": "9f" * 32, "runtime": "hip", "function": "hipModuleLoad", "tid": PID, "waited_ns": 2000000,
              "kernels": ["vector_add"], "functions": 3}
    write_recording(path, [
        text_record(RUNTIME, 0, 0, {"name": "hip", "statuses": []}, 0),
        text_record(SPEC, 0, 0, {"runtime": 0, "function": "hipLaunchKernel", "role": "launch", "success": 0,
                                 "fetches": [{"meaning": "program", "type": "u64"}]}, 0),
        text_record(PROCESS, 1, 0, {"name": "python", "command": "python"}),
        text_record(CODE_OBJECT, 1000000, 0x77, loaded),
        text_record(CODE_OBJECT, 2000000, 0, {"kind": "onnx", "name": "resnet", "missing": 5}),
        text_record(SYMBOL, 3000000, 0x401000, b"vector_add(float*)"),
        launch(4000000, 4001000, 0x401000),
        text_record(CODE_UNLOADED, 5000000, 0x77, b""),
    ])
    second = Recording(path)
    assert [entry.text for entry in second.code] == [loaded, {"kind": "onnx", "name": "resnet", "missing": 5}, None]
    assert second.symbols == {(PID, 0x401000): "vector_add(float*)"}
    result = run([XPUTRACE, "report", path, "-o", output])
    assert result.status == 0 and "cut short" in result.stdout, "%d: %s" % (result.status, result.stdout)
    with open(output, encoding="utf-8") as file:
        document = json.load(file)
    shown = {(event["ph"], event["name"]): event for event in document["traceEvents"]}
    args = shown["i", "load hsaco my.hsaco"]["args"]
    for name in ("uri", "kind", "machine", "size", "sha256", "runtime", "function", "kernels", "functions"):
        assert args[name] == loaded[name], name
    assert shown["i", "load hsaco my.hsaco"]["ts"] == 1000 and args["waited_us"] == 2000
    assert shown["e", "waited"]["ts"] - shown["b", "waited"]["ts"] == 2000
    assert shown["i", "load onnx resnet"]["args"]["found"] and shown["i", "load onnx resnet"]["s"] == "p"
    assert shown["i", "unload hsaco my.hsaco"]["ts"] == 5000
    assert ("X", "vector_add(float*)") in shown, "the launch is named by its symbol"
    code = document["metadata"]["code_objects"]
    assert (code["loads"], code["unloads"], code["incomplete"]) == (2, 1, 1), code
    assert code["kinds"] == [{"kind": "hsaco", "loads": 1}, {"kind": "onnx", "loads": 1}]
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["file:///opt/my.hsaco#offset=64&size=8192", "hsaco", "gfx90a", "8.00KiB", "1", "1"] in lines, lines
    assert ["incomplete:", "1", "of", "2", "code", "objects"] in lines, lines
