# SPDX-License-Identifier: BSD-2-Clause
"""list drivers: what this machine's kernel has of them, against an independent reading of descriptions and formats."""

import glob
import json
import os
import re
import sys

from harness import (NOBODY, ROOT, TRACEFS_STATES, XPUTRACE, Skip, cases, need, public, run, scratch, tracefs,
                     with_tracefs)

BITS = {"8": 1, "16": 2, "32": 4, "64": 8}


def list_drivers(*arguments):
    result = run([need(XPUTRACE, "collector"), "list", "drivers"] + list(arguments))
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
    found = {}
    for event in wanted:
        try:
            with open(os.path.join(tracefs(), "events", *event.split(":"), "format"), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        fields = found[event] = {}
        for line in re.findall(r"^\tfield:(.*?);\toffset:\d+;\tsize:(\d+);", text, re.MULTILINE):
            declaration, name, array = re.match(r"(.*?)\s*(\w+)(\[\w*\])?$", line[0]).groups()
            fields[name] = (declaration + (array or ""), int(line[1]))
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
    assert "field ret is 'long' of 8 bytes, expected 32 bits" in driver["events"][1]["reason"], driver
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\"schema\": 1,\n\"driver\": \"Own\"}")
    result = run([XPUTRACE, "list", "drivers", "--driver", path])
    assert result.status == 2 and "%s:2: driver:" % path in result.stderr, (result.status, result.stderr)


@cases(*TRACEFS_STATES)
def test_tracefs(state):
    """Found in one of its own, or in the one that is mounted, which `check` names; without either: said, with what to do."""
    wanted = [driver["state"] for driver in json.loads(list_drivers("--format", "json").stdout)]
    result = with_tracefs(state, [XPUTRACE, "list", "drivers", "--format", "json"])
    assert result.status == 0, result.stderr
    states = [driver["state"] for driver in json.loads(result.stdout)]
    assert ("mount -t tracefs" in result.stderr) == (state == "nowhere"), result.stderr
    assert states == (["no tracefs"] * len(wanted) if state == "nowhere" else wanted), states
    result = with_tracefs(state, [XPUTRACE, "check"])
    line = next(line.split() for line in result.stdout.splitlines() if line.split()[1:2] == ["tracefs"])
    place = [words.split()[1] for words in result.stderr.splitlines() if " tracefs rw" in words]
    assert line == {"own": "ok tracefs a mount of its own".split(),
                    "nowhere": "no tracefs (No such file or directory)".split()}.get(
                        state, ["ok", "tracefs", "mounted", "on"] + place), (line, place)


def test_without_root():
    """tracefs is mounted, and not for everyone: said, with what to do."""
    if os.geteuid():
        raise Skip("needs root to give it up")
    give_up = "import os, sys; os.setgroups([]); os.setuid(%d); os.execv(sys.argv[1], sys.argv[1:])" % NOBODY
    result = with_tracefs("mounted", [sys.executable, "-c", give_up, public(need(XPUTRACE, "collector")), "list", "drivers"])
    assert result.status == 0, result.stderr
    assert "sudo" in result.stderr, result.stderr
    assert all("no tracefs" in row for row in result.stdout.splitlines()[1:]), result.stdout
