#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the fuzz targets, or counts the lines that they reach.

    run.py replay FOLDER TARGET...          each over its corpus only, by replay.c
    run.py each SECONDS FOLDER TARGET...    each so long, from its corpus, with a dictionary of its parser's words
    run.py total SECONDS FOLDER TARGET...   all in so many seconds together
    run.py coverage FOLDER TARGET...        lines of each parser that its corpus reaches; fails below LEAST of them, names files below it

All targets run, whatever fails before. Inputs that fail are kept in FOLDER/TARGET.failures, what is found in
FOLDER/TARGET.corpus. The table that comes last is Markdown.
"""

import collections
import fnmatch
import glob
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEAST = 60  # per cent

# The parser of each target: files, "!" leaves some out, "FILE:REGEX" has the functions that match only: the others read or
# write files, or are not for what comes from outside.
PARSERS = {
    "code": ["user/code/format/*.c"],
    "codeobj_index": ["user/code/store/index.c"],
    "control": ["user/control/message.c"],
    "description": ["user/describe/runtime/*.c", "!user/describe/runtime/registry.c", "user/describe/reader/reader.c"],
    "driver": ["user/describe/driver/*.c"],
    "elf": ["user/target/elf/*.c", "!user/target/elf/type_name.c", "user/target/probe/*.c", "user/target/process/loaded_code.c"],
    "event_terms": ["user/counter/pmu.c"],
    "expression": ["user/profile/handle/choice.c:refuse|compile|expression_|count_step|decode|match"],
    "format": ["user/target/tracepoint/tracefs.c:"
               "skip|is_(declaration|field|text)|layout_of|type_of|access_of|describe_types|refuse_layout|find_field|tracepoint_parse"],
    "inspect": ["user/session/inspect/settings.c"],
    "merge": ["user/report/merge/*.c"],
    "model": ["user/model/*/*.c", "!user/model/stats/significance.c", "user/report/flame/*.c"],
    "otlp": ["user/base/format/otlp.c:otlp_pairs|digit_of|decode_percent|trim|set_message|parse_|otlp_answer"],
    "proc": ["user/target/process/process.c:take_number|cut_deleted|maps_entry_parse|maps_entry_has|process_stat_parse"],
    "recording": ["user/record/recording.c", "user/report/trace/*.c", "user/report/chrome/*.c", "user/report/perfetto/*.c",
                  "user/report/table/*.c", "user/session/offline/report.c", "user/analysis/*.c", "user/page/*.c"],
    "stack": ["user/stack/*.c"],
    "trigger": ["user/profile/trigger/text.c", "user/profile/trigger/trigger.c"],
    "type_name": ["user/target/elf/type_name.c"],
    "window": ["user/record/window.c"],
}
# Seeds beside those of corpus/TARGET: files of this repository that are of the kind.
SEEDS = {"description": ["user/runtimes"], "driver": ["user/drivers"]}
WORD = re.compile(r'"((?:[^"\\\n]|\\.)+)"')


def parser_files(target):
    """Path and pattern of its functions, or None."""
    found = {}
    for entry in PARSERS[target]:
        path, _, functions = entry.partition(":")
        if path.startswith("!"):
            found = {name: kept for name, kept in found.items() if not fnmatch.fnmatch(name, path[1:])}
            continue
        paths = sorted(glob.glob(path, root_dir=ROOT))
        assert paths, "%s is not there" % path
        found.update((name, functions or None) for name in paths)
    return found


def write_dictionary(target, path):
    """Strings of the parser's sources that look like words: what is compared stands there."""
    words = set()
    for source in parser_files(target):
        with open(os.path.join(ROOT, source), encoding="utf-8") as file:
            text = re.sub(r"^#include.*", "", file.read(), flags=re.M)
        words.update(word for word in WORD.findall(text) if re.fullmatch(r"[!-~]{1,40}", word) and "%" not in word and
                     "\\" not in word)
    with open(path, "w", encoding="ascii") as file:
        file.writelines('"%s"\n' % word for word in sorted(words))
    return bool(words)


def seeds(target):
    folders = [os.path.join("tests", "fuzz", "corpus", target), *SEEDS.get(target, ())]
    return [folder for folder in (os.path.join(ROOT, one) for one in folders) if os.path.isdir(folder)]


def statistic(log, name):
    found = re.findall(r"^stat::%s: *(\d+)" % name, log, re.M)
    return int(found[-1]) if found else 0


def run_target(folder, target, seconds):
    """What libFuzzer says of it, and whether it has failed."""
    program = os.path.join(folder, target)
    found, failures = program + ".corpus", program + ".failures"
    words = [program, "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-artifact_prefix=%s/" % failures]
    for each in (found, failures):
        os.makedirs(each, exist_ok=True)
    before = set(os.listdir(failures))
    words.append("-max_total_time=%d" % seconds)
    if write_dictionary(target, program + ".dict"):
        words.append("-dict=%s.dict" % program)
    # Seeds come second: what is found is written to the first folder, never to the source tree.
    with open(program + ".log", "wb") as log:
        begun = time.monotonic()
        status = subprocess.run(words + [found, *seeds(target)], stdout=log, stderr=subprocess.STDOUT, check=False).returncode
        spent = time.monotonic() - begun
    with open(program + ".log", encoding="utf-8", errors="replace") as log:
        text = log.read()
    row = {"inputs": statistic(text, "number_of_executed_units"), "seconds": spent, "findings": len(set(os.listdir(failures)) - before),
           "edges": max(map(int, re.findall(r"\bcov: (\d+)", text)), default=0), "failed": status != 0}
    if status:
        print("fuzz %s: FAILED, log in %s.log" % (target, program))
        print("\n".join(text.splitlines()[-30:]))
    else:
        print("fuzz %s: ok, %d inputs" % (target, row["inputs"]))
    sys.stdout.flush()
    return row


def run_all(folder, targets, seconds):
    rows = {target: run_target(folder, target, seconds) for target in targets}
    print("\n| target | seconds | inputs | inputs/s | edges | findings |\n| --- | --- | --- | --- | --- | --- |")
    for target, row in rows.items():
        print("| %s | %d | %d | %d | %d | %d |" % (target, row["seconds"], row["inputs"], row["inputs"] / max(row["seconds"], 1),
                                              row["edges"], row["findings"]))
    print("| all | %d | %d | | | %d |" % tuple(sum(row[name] for row in rows.values()) for name in ("seconds", "inputs", "findings")))
    return not any(row["failed"] for row in rows.values())


def replay(folder, targets):
    failed = False
    for target in targets:
        done = subprocess.run([os.path.join(folder, target), *seeds(target)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False)
        found = re.search(r"^inputs: (\d+)$", done.stdout, re.M)
        failed |= done.returncode != 0 or not found
        print("fuzz %s: %s" % (target, "ok, %s inputs" % found.group(1) if found and not done.returncode else "FAILED\n" + done.stdout), flush=True)
    return not failed


# ---- coverage ----

def tool(name):
    """Of the compiler's version, where its files are called by it."""
    version = re.search(r"version (\d+)", subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout).group(1)
    for each in ("%s-%s" % (name, version), name):
        if not subprocess.call("command -v %s >/dev/null" % each, shell=True):
            return each
    sys.exit("fuzz: %s is missing (package llvm)" % name)


def lines_of(export):
    """File to [(line, count)] and to its functions' first lines, of llvm-cov's lcov text."""
    lines, functions, path = collections.defaultdict(dict), collections.defaultdict(dict), None
    for entry in export.splitlines():
        kind, _, value = entry.partition(":")
        if kind == "SF":
            path = os.path.relpath(value, ROOT) if os.path.isabs(value) else os.path.normpath(value)
        elif kind == "FN":
            first, _, name = value.partition(",")
            functions[path][int(first)] = name.rpartition(":")[2]
        elif kind == "DA":
            line, count = value.split(",")[:2]
            lines[path][int(line)] = int(count)
    return lines, functions


def of_functions(lines, functions, pattern):
    """The lines of functions that match."""
    kept, name = {}, ""
    for line in sorted(lines):
        name = functions.get(line, name)
        if re.match(pattern, name):
            kept[line] = lines[line]
    return kept


def export(folder, target):
    program = os.path.join(folder, target)
    for name in glob.glob(program + ".*.profraw"):
        os.remove(name)
    done = subprocess.run([program, "-runs=0", "-rss_limit_mb=4096", "-artifact_prefix=%s/" % folder, *seeds(target)], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LLVM_PROFILE_FILE": program + ".%p.profraw"})
    if done.returncode:
        sys.exit("fuzz %s: its corpus fails, as make test-fuzz does" % target)
    raw = glob.glob(program + ".*.profraw")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", program + ".profdata", *raw], check=True)
    return subprocess.run([tool("llvm-cov"), "export", "--format=lcov", "-instr-profile=%s.profdata" % program, program,
                           *(os.path.join(".", path) for path in parser_files(target))],
                          stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3, 7"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join("%d" % first if first == last else "%d-%d" % (first, last) for first, last in parts)


def coverage(folder, targets):
    table, low, failed = [], [], []
    for target in targets:
        lines, functions = lines_of(export(folder, target))
        reached = total = 0
        for path, pattern in parser_files(target).items():
            counts = of_functions(lines[path], functions[path], pattern) if pattern else lines[path]
            assert counts, "nothing of %s is in the target %s" % (path, target)
            hit = sum(count > 0 for count in counts.values())
            reached, total = reached + hit, total + len(counts)
            if 100 * hit < LEAST * len(counts):
                low.append("%s: %s: %d of %d lines, %d %%; not reached: %s" % (target, path, hit, len(counts), 100 * hit / len(counts), ranges(
                    line for line, count in sorted(counts.items()) if not count)))
        if 100 * reached < LEAST * total:
            failed.append(target)
        table.append("| %s | %d | %d | %d %% |" % (target, total, reached, 100 * reached / total))
        print(table[-1], flush=True)
    print("\n| target | lines | reached | |\n| --- | --- | --- | --- |", *table, sep="\n")
    print(*low, sep="\n")
    print("%d files below %d %%; %d targets: %s" % (len(low), LEAST, len(failed), ", ".join(failed) or "none"))
    return not failed


def main():
    kind, *words = sys.argv[1:]
    seconds = int(words.pop(0)) if kind in ("each", "total") else 0
    assert seconds > 0 or kind not in ("each", "total"), "how many seconds?"
    folder, *targets = words
    assert targets and not set(targets) - set(PARSERS), "run.py does not know the parser of %s" % ", ".join(set(targets) - set(PARSERS))
    os.chdir(ROOT)
    if kind == "coverage":
        return coverage(os.path.abspath(folder), targets)
    if kind == "replay":
        return replay(folder, targets)
    return run_all(folder, targets, max(seconds // len(targets), 1) if kind == "total" else seconds)


sys.exit(0 if main() else 1)
