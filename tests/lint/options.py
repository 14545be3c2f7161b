#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that manual pages and completions know exactly the options of the command: options.py XPUTRACE.

What `xputrace COMMAND --help` prints is the truth. Every option must stand in the OPTIONS section of the command's
manual page, and nothing else there; every long option must stand in each completion. A command of several words has
the options of all of them.
"""
import pathlib
import re
import subprocess
import sys

CLI = pathlib.Path(__file__).resolve().parents[2] / "user" / "cli"
COMMANDS = ["record", "profile", "stream", "top", "agent", "continuous", "inspect", "codeobj", "counters", "report", "explain", "diff",
            "merge",
            "list", "check"]

WORDS = {"continuous": ["start", "save", "status", "stop"], "codeobj": [None, "show"]}


def help_options(program, *command):
    """Options as --help lists them: {"-p", "--pid", ...}."""
    text = subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = set()
    for line in text.partition("options:\n")[2].splitlines():
        match = re.match(r"\s{2,6}(?:(-\w), )?(--[\w-]+)", line)
        if match:
            found.update(option for option in match.groups() if option)
        elif not line.strip():
            break
    return found


def manual_options(command):
    """Options that have an entry of their own in the manual page."""
    text = (CLI / "man" / f"xputrace-{command}.1").read_text(encoding="utf-8")
    section = text.partition(".Sh OPTIONS\n")[2].partition("\n.Sh ")[0]
    found = set()
    for line in re.findall(r"^\.It Fl (.*)$", section, re.MULTILINE):
        flags = line.split(" Ar ")[0].split(" Cm ")[0].split(" Ns ")[0]
        for flag in flags.split(","):
            found.add("-" + flag.replace(" Fl ", "").strip())
    return found


def completion_text(name, command):
    """The part of a completion that is about the command."""
    text = (CLI / "completion" / name).read_text(encoding="utf-8")
    if name == "xputrace.fish":
        lines = [line for line in text.splitlines()
                 if "__fish_seen_subcommand_from" not in line or re.search(rf"from [\w ]*\b{command}\b[\w ]*'", line)]
        return re.sub(r"-l (\w)", r"--\1", "\n".join(lines))
    section = text.rpartition("case $command in\n")[2]
    section = re.search(rf"^\t{command}\)\n(.*?)\t\t;;", section, re.MULTILINE | re.DOTALL).group(1)
    for name in re.findall(r"\$([a-z]+)", section):  # lists that commands have in common
        shared = re.search(rf"\b{name}=(\(.*?^\t\)|\"[^\"]*\")", text, re.MULTILINE | re.DOTALL)
        section += shared.group(1) if shared else ""
    return section


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    faults = count = 0
    for command in COMMANDS:
        options = set()
        for word in WORDS.get(command, [None]):
            options |= help_options(sys.argv[1], *filter(None, (command, word)))
        manual = manual_options(command)
        if "--help" not in options:
            print(f"xputrace {command} --help: no options found")
            faults += 1
        for option in sorted(options - manual):
            print(f"xputrace-{command}.1: {option} is missing")
            faults += 1
        for option in sorted(manual - options):
            print(f"xputrace-{command}.1: there is no {option}")
            faults += 1
        for name in ("xputrace.bash", "_xputrace", "xputrace.fish"):
            text = completion_text(name, command)
            for option in sorted(options):
                count += 1
                if option.startswith("--") and not re.search(rf"(?<![\w-]){option}(?![\w-])", text):
                    print(f"{name}: {command} {option} is missing")
                    faults += 1
    print(f"options: {count} looked for, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
