#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the checks can fail: small trees with one fault each, all of which must be found, and one without."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LICENCE = "/* SPDX-License-Identifier: BSD-2-Clause */\n"
SOUND = {
    "user/base/log.h": LICENCE,
    "user/target/site.h": LICENCE + '#include "base/log.h"\n',
    "user/kern/links.c": LICENCE + '#include "target/site.h"\n#include <bpf/libbpf.h>\n#include "x.skel.h"\n',
    "user/model/model.h": LICENCE + '#include "base/log.h"\n#include "model/core/state.h"\n#include "bpf/wire.h"\n',
    "user/model/stream/order.h": LICENCE,
    "user/model/core/state.h": LICENCE + '#include "model/stream/order.h"\n',
    "user/report/chrome.c": LICENCE + '#include "model/model.h"\n/* printf() is for the command */\nint a = \'"\';\n',
    "user/session.c": LICENCE + '#include "model/model.h"\nchar c[] = "process %d (%s) " "has ended\\n";\n',
    "user/cli/main.c": LICENCE + '#include <xputrace/error.h>\n#include "base/log.h"\nint b = printf("");\n',
    "include/xputrace/error.h": LICENCE,
    "include/xputrace/region.h": LICENCE,
    "bpf/wire.h": LICENCE,
    "bpf/calls.bpf.c": LICENCE + '#include "vmlinux.h"\n#include <bpf/bpf_helpers.h>\n#include "wire.h"\n',
    "README.md": "# Name\n\n[What](docs/architecture.md#the-folders) and [where](https://example.org/x)\n",
    "docs/architecture.md": "# Architecture\n\n## The folders\n\n`bpf/` `docs/` `include/` `include/xputrace/` `user/` `user/base/` "
                            "`user/target/` `user/kern/` `user/model/` `user/model/stream/` `user/model/core/` `user/report/` "
                            "`user/code/` `user/cli/`\n",
    "docs/troubleshooting.md": "    xputrace: error: process 1 (init) has ended\n",
}
SOUND.update({f"user/code/format_{number}.c": LICENCE for number in range(25)})
# name of the fault: (checker, file, text that is added to it; None: user/base/ is taken out of it; or files and their texts,
# None: it is not there)
FAULTS = {
    "folder before": ("layers.py", "user/base/log.h", '#include "target/site.h"\n'),
    "report includes target": ("layers.py", "user/report/chrome.c", '#include "target/site.h"\n'),
    "model includes kern": ("layers.py", "user/model/model.h", '#include "kern/links.c"\n'),
    "cli includes model": ("layers.py", "user/cli/main.c", '#include "model/model.h"\n'),
    "cli includes wire": ("layers.py", "user/cli/main.c", '#include "bpf/wire.h"\n'),
    "skeleton outside kern": ("layers.py", "user/session.c", '#include "x.skel.h"\n'),
    "libbpf outside kern": ("layers.py", "user/session.c", "#include <bpf/libbpf.h>\n"),
    "BPF internals in user space": ("layers.py", "user/kern/links.c", '#include "bpf/maps.bpf.h"\n'),
    "relative include": ("layers.py", "user/target/site.h", '#include "../base/log.h"\n'),
    "no folder": ("layers.py", "user/target/site.h", '#include "decoder.h"\n'),
    "folder before, inside": ("layers.py", "user/model/stream/order.h", '#include "model/core/state.h"\n'),
    "folder of files includes above": ("layers.py", "user/model/core/state.h", '#include "model/model.h"\n'),
    "unknown folder inside": ("layers.py", "user/model/misc/misc.h", LICENCE),
    "third level": ("layers.py", "user/model/core/deep/deep.h", LICENCE),
    "too many sources": ("layers.py", "user/code", {"user/code/format_25.c": LICENCE}),
    "unknown folder": ("layers.py", "user/utils/misc.h", LICENCE),
    "library prints": ("layers.py", "user/model/print.c", LICENCE + 'void f(void) { printf("x"); }\n'),
    "library exits": ("layers.py", "user/session.c", "void f(void) { exit(1); }\n"),
    "library writes to stderr": ("layers.py", "user/session.c", 'void f(void) { fprintf(stderr, "x"); }\n'),
    "public includes private": ("layers.py", "include/xputrace/error.h", '#include "base/log.h"\n'),
    "region.h needs another": ("layers.py", "include/xputrace/region.h", "#include <xputrace/error.h>\n"),
    "kernel side includes user side": ("layers.py", "bpf/calls.bpf.c", '#include "user/base/log.h"\n'),
    "kernel side includes libc": ("layers.py", "bpf/calls.bpf.c", "#include <stdint.h>\n"),
    "unfinished": ("words.sh", "user/session.c", "/* TO" "DO */\n"),
    "machine path": ("words.sh", "README.md", "see /home" "/someone/x\n"),
    "registry host": ("words.sh", "x.json", '{"resolved": "https://' 'registry.example.org"}\n'),
    "trailing blank": ("words.sh", "user/session.c", "int c; \n"),
    "link to no file": ("documents.py", "README.md", "[no](docs/no.md)\n"),
    "link to no heading": ("documents.py", "README.md", "[no](docs/architecture.md#no)\n"),
    "long README": ("documents.py", "README.md", "\n" * 160),
    "long line": ("documents.py", "README.md", "x" * 121 + "\n"),
    "folder that is not named": ("documents.py", "docs/architecture.md", None),
    "message that is not there": ("documents.py", "docs/troubleshooting.md", "    xputrace: process 1 (init) lives\n"),
    "folder that is not there": ("documents.py", "docs/architecture.md", "`user/gone/`\n"),
    "no licence": ("words.sh", "user/model/new.c", "int d;\n"),
}


def run(checker, tree):
    """Exit status and output of one checker over a tree."""
    command = [sys.executable] if checker.endswith(".py") else ["sh"]
    result = subprocess.run(command + [str(HERE / checker), tree], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False, text=True, env={"PATH": "/usr/bin:/bin", "GIT_DIR": "/nonexistent"})
    return result.returncode, result.stdout


def tree_with(folder, files):
    for name, text in files.items():
        if text is None:
            continue
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main():
    failed = 0
    cases = [("sound", checker, None, None, 0) for checker in ("layers.py", "words.sh", "documents.py")]
    cases += [(name, *fault, 1) for name, fault in FAULTS.items()]
    for name, checker, path, text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            files = dict(SOUND)
            if isinstance(text, dict):
                files.update(text)
            elif path:
                files[path] = files.get(path, "") + text if text else files[path].replace("`user/base/` ", "")
            tree_with(folder, files)
            status, output = run(checker, folder)
            if status != expected or (expected and path not in output):
                print(f"selftest: {checker}, {name}: exit status {status} instead of {expected}\n{output}")
                failed += 1
    print(f"selftest: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
