# SPDX-License-Identifier: BSD-2-Clause
"""The completion for bash, by the function that bash calls."""

import json
import os

from harness import BUILD, ROOT, XPUTRACE, Process, need, run, standin, workload_path

CALL = """
. %s
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_xputrace xputrace "${@: -1}" "${@: -2:1}"
printf '%%s\\n' "${COMPREPLY[@]}"
""" % os.path.join(ROOT, "user/cli/completion/xputrace.bash")


def complete(*words):
    need(XPUTRACE, "collector")
    result = run(["env", "-i", "PATH=%s:%s" % (BUILD, os.environ["PATH"]), "bash", "--norc", "-euc", CALL, "bash",
                  "xputrace"] + list(words))
    assert result.status == 0 and not result.stderr, (result.status, result.stderr)
    return result.stdout.split()


def test_processes():
    """-p: those that have a library of a runtime, and no others; behind a comma, too."""
    workload = standin("nrt", "--calls", "1")
    other = Process([workload_path("sleeper")])
    other.wait_line("stdout", "ready")
    found = complete("record", "-p", "")
    assert str(workload.pid) in found and str(other.pid) not in found, (workload.pid, other.pid, found)
    behind = complete("record", "-p", "1,")
    assert "1,%d" % workload.pid in behind and "1,%d" % other.pid not in behind, behind
    assert str(workload.pid) in complete("list", "sites", "--pid", str(workload.pid)[:-1])
    workload.go()
    workload.results()
    other.kill()


def test_runtimes():
    """--only: every runtime, by name."""
    listed = json.loads(run([XPUTRACE, "list", "runtimes", "--format", "json"]).stdout)
    assert sorted(complete("record", "--only", "")) == sorted(runtime["runtime"] for runtime in listed)
    assert complete("stream", "--only", "nrt,onn") == ["nrt,onnxruntime"]


def test_options():
    """Options of the command; values of those that have a few."""
    assert complete("record", "--exit") == ["--exit-status"]
    assert complete("record", "--exit-status", "") == ["command", "own"]
    assert complete("profile", "--exit") == []
