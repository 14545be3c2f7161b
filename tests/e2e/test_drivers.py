# SPDX-License-Identifier: BSD-2-Clause
"""list drivers: what this machine's kernel has of them, against an independent reading of descriptions and formats."""

import glob
import json
import os
import re
import sys

from harness import NOBODY, ROOT, XPUTRACE, Skip, need, run, scratch

TRACEFS = "/sys/kernel/tracing"
BITS = {"8": 1, "16": 2, "32": 4, "64": 8}


def in_namespace(script, *arguments):
    """Runs a shell script with a mount namespace of its own, so that mounts are gone afterwards."""
    return run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"] + list(arguments))


def with_tracefs(*arguments):
    return in_namespace("grep -q ' %s tracefs ' /proc/mounts || mount -t tracefs tracefs %s && exec \"$@\"" % (
        TRACEFS, TRACEFS), *arguments)


def list_drivers(*arguments):
    result = with_tracefs(need(XPUTRACE, "collector"), "list", "drivers", *arguments)
    assert result.status == 0, "status %d:\n%s" % (result.status, result.stderr)
    return result


def descriptions():
    """What the repository has; a machine that was given only what is built has none to compare with."""
    paths = sorted(glob.glob(os.path.join(ROOT, "user", "drivers", "*.json")))
    if not paths:
        raise Skip("the folder of driver descriptions is not here")
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield json.load(file)


def formats():
    """Of each event on this machine that some description names: {field: (type, size)}."""
    wanted = sorted({event["event"] for driver in descriptions() for set_ in driver.get("sets", ())
                     for event in set_["events"]} | {"syscalls:sys_enter_ioctl", "syscalls:sys_exit_ioctl"})
    script = "for f in \"$@\"; do test -e $f && echo \"== $f\" && cat $f; done; true"
    paths = [os.path.join(TRACEFS, "events", *event.split(":"), "format") for event in wanted]
    result = with_tracefs("sh", "-c", script, "sh", *paths)
    assert result.status == 0, result.stderr
    found = {}
    for part in result.stdout.split("== ")[1:]:
        path, _, text = part.partition("\n")
        fields = {}
        for line in re.findall(r"^\tfield:(.*?);\toffset:\d+;\tsize:(\d+);", text, re.MULTILINE):
            declaration, name, array = re.match(r"(.*?)\s*(\w+)(\[\w*\])?$", line[0]).groups()
            fields[name] = (declaration + (array or ""), int(line[1]))
        found["%s:%s" % tuple(path.split("/")[-3:-1])] = fields
    return found


def has_field(fields, expression):
    name, _, types = expression.rstrip("?").partition(":")
    if name not in fields:
        return expression.endswith("?")
    declaration, size = fields[name]
    text = "char" in declaration
    for kind in types.split("|"):
        if kind == "string" and text and "[" in declaration:
            return True
        if kind == "kernel_string" and text and "*" in declaration and "[" not in declaration:
            return True
        if kind in BITS and "[" not in declaration and size == BITS[kind]:
            return True
    return False


def has_event(known, event):
    fields = known.get(event["event"])
    wanted = event.get("key", []) + list(event.get("fields", {}).values())
    if "when" in event:
        wanted.append(event["when"]["field"])
    return fields is not None and all(has_field(fields, expression) for expression in wanted)


def expected(known, driver):
    """[(event, found)] of the set that must have been taken, without those of ioctls."""
    best = None
    for set_ in driver.get("sets", ()):
        found = [(event["event"], has_event(known, event)) for event in set_["events"]]
        if all(here or event.get("optional") for (_, here), event in zip(found, set_["events"])):
            return found
        if best is None or sum(here for _, here in found) > sum(here for _, here in best):
            best = found
    return best or []


def test_against_the_formats():
    """Every described event: found, or not, as a reading in another language says."""
    known = formats()
    answer = {driver["driver"]: driver for driver in json.loads(list_drivers("--format", "json").stdout)}
    names = [driver["driver"] for driver in descriptions()]
    assert sorted(answer) == sorted(names), "listed: %s" % sorted(answer)
    for driver in descriptions():
        said = answer[driver["driver"]]
        wanted = expected(known, driver)
        tracepoints = [(event["event"], event["found"]) for event in said["events"]
                       if not event["event"].startswith("syscalls:")]
        assert tracepoints == wanted, "%s: said %s, wanted %s" % (driver["driver"], tracepoints, wanted)
        assert said["found"] == sum(event["found"] for event in said["events"])
        for event in said["events"]:
            assert event["found"] != bool(event.get("reason")), event
            if not event["found"]:
                for word in (driver["driver"], event["event"], os.uname().release):
                    assert word in event["reason"], "%s is not in: %s" % (word, event["reason"])
        required = [event["found"] for event in said["events"] if not event["optional"]]
        state = "absent" if not said["found"] else "complete" if all(required) else "partial"
        assert said["state"] == state, "%s: %s, wanted %s" % (driver["driver"], said["state"], state)


def test_table():
    """The table has the numbers of the JSON; what is missing stands below with --verbose."""
    drivers = json.loads(list_drivers("--format", "json").stdout)
    short, long = list_drivers(), list_drivers("--verbose")
    lines = short.stdout.splitlines()
    assert lines[0].split()[:3] == ["DRIVER", "EVENTS", "STATE"]
    assert len(lines) == len(drivers) + 1, short.stdout
    for line, driver in zip(lines[1:], drivers):
        assert line.split()[:3] == [driver["driver"], "%(found)d/%(described)d" % driver, driver["state"]], line
        for event in driver["events"]:
            if not event["found"]:
                assert event["reason"] in long.stdout, "not said: %s" % event["reason"]


def test_own_description():
    """A driver of the user's whose events every kernel has, with its ioctls on /dev/null; one field is wrong."""
    path = os.path.join(scratch(), "own.json")
    own = {"schema": 1, "driver": "own", "title": "Own", "sets": [{"events": [
        {"event": "syscalls:sys_enter_ioctl", "role": "submit", "fields": {"value": "cmd:64"}},
        {"event": "syscalls:sys_exit_ioctl", "role": "wait", "fields": {"status": "ret:32"}}]}],
        "ioctls": {"devices": ["/dev/nul[l]"], "numbers": [{"number": "0x1", "name": "GO", "role": "submit"}]}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(own, file)
    if "syscalls:sys_enter_ioctl" not in formats():
        raise Skip("the kernel has no tracepoints of system calls")
    answer = json.loads(list_drivers("--driver", path, "--format", "json").stdout)
    driver = next(one for one in answer if one["driver"] == "own")
    assert driver["state"] == "partial" and driver["devices"] == ["/dev/null"], driver
    assert [event["found"] for event in driver["events"]] == [True, False, True, True], driver
    assert "field ret is 'long' of 8 bytes, and 32 bits is wanted" in driver["events"][1]["reason"], driver
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\"schema\": 1,\n\"driver\": \"Own\"}")
    result = with_tracefs(XPUTRACE, "list", "drivers", "--driver", path)
    assert result.status == 2 and "%s:2: driver:" % path in result.stderr, (result.status, result.stderr)


def test_without_tracefs():
    """Not mounted: said, with what to do, and no failure."""
    hide = ("while grep -q ' %s tracefs ' /proc/mounts; do umount %s || exit 9; done; mount -t tmpfs none /sys/kernel/debug; "
            "exec \"$@\"" % (TRACEFS, TRACEFS))
    result = in_namespace(hide, need(XPUTRACE, "collector"), "list", "drivers")
    if result.status == 9:
        raise Skip("tracefs cannot be unmounted here")
    assert result.status == 0, result.stderr
    assert "mount -t tracefs" in result.stderr, result.stderr
    rows = result.stdout.splitlines()[1:]
    assert rows and all("no tracefs" in row for row in rows), result.stdout


def test_without_root():
    """tracefs is mounted, and not for everyone: said, with what to do."""
    if os.geteuid():
        raise Skip("needs root to give it up")
    give_up = "import os, sys; os.setgroups([]); os.setuid(%d); os.execv(sys.argv[1], sys.argv[1:])" % NOBODY
    result = with_tracefs(sys.executable, "-c", give_up, need(XPUTRACE, "collector"), "list", "drivers")
    assert result.status == 0, result.stderr
    assert "sudo" in result.stderr, result.stderr
    assert all("no tracefs" in row for row in result.stdout.splitlines()[1:]), result.stdout
