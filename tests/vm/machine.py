# SPDX-License-Identifier: BSD-2-Clause
"""One emulated machine: started, listened to over a port of its own, ended whatever it does."""

import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time

# Debian's name of an architecture to the emulator, its machine and console. Checking pointers as QEMU does is quicker
# than as processors do.
EMULATORS = {
    "amd64": ("qemu-system-x86_64", ["-machine", "pc", "-cpu", "max"], "ttyS0 tsc=reliable"),
    "arm64": ("qemu-system-aarch64", ["-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"], "ttyAMA0"),
}
PROCESSORS = 2
MEGABYTES = 1536
BOOT_SECONDS = 180  # from the start to the first line on the port
SILENT_SECONDS = 360  # between two lines: no test takes longer, it is given up before (harness.TIMEOUT)
# Between two lines; then it is looked at whether all processors are stuck: the kernel cannot tell, and 360 s are long.
QUIET_SECONDS = 20
LOOKS = 20
INTERRUPTS = 0x200  # the flag of x86-64: they are taken
# A processor that runs nothing else for 30 s is the end, with the stacks of all.
LOCKED_UP = "watchdog_thresh=15 softlockup_panic=1 softlockup_all_cpu_backtrace=1"
KEPT_LINES = 30  # of the console, shown when something went wrong


class Machine:
    """Boots a kernel on a root file system. Nothing that it writes to its disks is kept."""

    def __init__(self, kernel, initial, root, modules, console=None, processors=PROCESSORS, words=()):
        """words: for the kernel's command line."""
        shell = console is None
        emulator, kind, port = EMULATORS[kernel.architecture]
        arguments = "console=%s panic=-1 oops=panic mitigations=off random.trust_cpu=on %s" % (port, LOCKED_UP)
        command = [emulator, *kind, "-accel", "tcg,thread=multi", "-smp", str(processors), "-m", str(MEGABYTES),
                   "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                   "-kernel", kernel.image, "-initrd", initial,
                   "-append", " ".join([arguments, *words] + ["xputrace.shell"] * shell),
                   "-device", "virtio-rng-pci", "-device", "virtio-gpu-pci", "-device", "virtio-serial-pci",
                   "-serial", "mon:stdio" if shell else "file:" + console]
        for name, path in (("root", root), ("modules", modules)):
            command += ["-drive", "file=%s,format=raw,if=none,id=%s,snapshot=on" % (path.replace(",", ",,"), name),
                        "-device", "virtio-blk-pci,drive=" + name]
        if not shell:
            command += ["-chardev", "stdio,id=results,signal=off", "-device",
                        "virtserialport,chardev=results,name=xputrace.results"]
            self.folder = tempfile.TemporaryDirectory()
            self.monitor = os.path.join(self.folder.name, "monitor")
            command += ["-monitor", "unix:%s,server=on,wait=off" % self.monitor]
        self.kernel = kernel
        self.processors = processors
        self.stuck = False
        self.shell = shell
        self.console = console
        self.command = command
        self.booted_after = None

    def interact(self):
        """Its console on this terminal, until it is switched off."""
        return subprocess.run(self.command, check=False).returncode

    def events(self, seconds):
        """What comes from the port, object by object, until it is done, ends or has had its time. The last one is
        {"event": "gone", "reason": ...} when the machine did not say that it was done."""
        start = time.monotonic()
        # The port is standard input and output; at the end of its input it would count as closed.
        process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            reason, silent = "it ended too early", False
            for line in self._lines(process, start, seconds):
                if line is None:
                    silent = self.booted_after is not None and time.monotonic() - start < seconds
                    reason = ("it did not come up within %d s" % BOOT_SECONDS if self.booted_after is None else
                              "no processor takes interrupts any more" if self.stuck else
                              "nothing came from it for %d s" % SILENT_SECONDS if silent else
                              "it was not done after %d s" % seconds)
                    break
                event = json.loads(line)
                if event["event"] == "booted":
                    self.booted_after = time.monotonic() - start
                yield event
                if event["event"] == "done":
                    return
            process.kill()
            said = process.communicate()[1].decode("utf-8", "replace").strip()
            yield {"event": "gone", "reason": reason + (": " + said if said else ""), "silent": silent}
        finally:
            process.kill()
            process.communicate()

    def _lines(self, process, start, seconds):
        """Lines of the port as they come; None when the time is over."""
        waiting, latest = b"", start
        port = process.stdout.fileno()
        while True:
            limit = start + BOOT_SECONDS if self.booted_after is None else min(start + seconds, latest + SILENT_SECONDS)
            while not select.select([port], [], [], max(0, min(limit - time.monotonic(), QUIET_SECONDS)))[0]:
                self.stuck = self.kernel.architecture == "amd64" and self._takes_no_interrupts()
                if self.stuck or time.monotonic() >= limit:
                    yield None
                    return
            data = os.read(port, 65536)
            latest = time.monotonic()
            if not data:
                return
            waiting += data
            *lines, waiting = waiting.split(b"\n")
            yield from lines

    def _takes_no_interrupts(self):
        """Whether no processor does, whenever it is looked at."""
        try:
            with socket.socket(socket.AF_UNIX) as monitor:
                monitor.settimeout(5)
                monitor.connect(self.monitor)
                for _ in range(LOOKS):
                    monitor.sendall(b"info registers -a\n")
                    text = b""
                    while text.count(b"RFL=") < self.processors or not text.endswith(b"(qemu) "):
                        received = monitor.recv(65536)
                        if not received:
                            return False
                        text += received
                    if any(int(flags, 16) & INTERRUPTS for flags in re.findall(rb"RFL=([0-9a-f]+)", text)):
                        return False
                    time.sleep(0.1)
        except OSError:
            return False
        return True

    def has_said(self, expression):
        """Whether something that matches it stands anywhere in what was printed on its console."""
        try:
            with open(self.console, encoding="utf-8", errors="replace") as file:
                return re.search(expression, file.read()) is not None
        except OSError:
            return False

    def last_words(self):
        """The end of what was printed on its console."""
        try:
            with open(self.console, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-KEPT_LINES:])
        except OSError:
            return ""


def missing_emulator(architecture):
    """Why there are no machines of an architecture; None: there are."""
    emulator = EMULATORS[architecture][0]
    return None if shutil.which(emulator) else "%s is not installed" % emulator
