# SPDX-License-Identifier: BSD-2-Clause
"""Chromium without a window, driven through its DevTools protocol over two pipes: pages, what they log, request and draw."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time

from harness import Skip, scratch

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--remote-debugging-pipe", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--hide-scrollbars")


class Browser:
    """One page; a context manager. logged: errors and warnings of the console; requested: URLs of everything that was loaded."""

    def __init__(self, width=1280, height=800):
        if not shutil.which("chromium"):
            raise Skip("chromium is not there")
        self.number, self.logged, self.requested, self.waiting = 0, [], [], b""
        (low, self.to), (self.out, high) = os.pipe(), os.pipe()
        there, back = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (low, high))
        os.close(low)
        os.close(high)

        def pipes():
            os.dup2(there, 3)
            os.dup2(back, 4)

        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            ["chromium", *FLAGS, "--window-size=%d,%d" % (width, height), "--user-data-dir=" + scratch(), "about:blank"], preexec_fn=pipes,
            pass_fds=(3, 4), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(back)
        self.session = None
        target = next(each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, EOFError):
            pass
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.out)

    def receive(self):
        """The next message, noted where it is an event."""
        while b"\0" not in self.waiting:
            got = os.read(self.out, 1 << 20)
            if not got:
                raise EOFError("chromium has ended")
            self.waiting += got
        text, self.waiting = self.waiting.split(b"\0", 1)
        message = json.loads(text)
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif message.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.logged.append(str([each.get("value") or each.get("description") for each in parameters["args"]]))
        elif message.get("method") == "Runtime.exceptionThrown":
            self.logged.append(str(parameters["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.logged.append(parameters["entry"]["text"])
        return message

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def run(self, script):
        """The value of an expression in the page, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, path):
        """Returns when the page says that it is complete (data-ready), or cannot be."""
        self.call("Page.navigate", url="file://" + path)
        while not self.run('!!document.documentElement && (!!document.documentElement.dataset.ready || !!document.querySelector("main"))'):
            time.sleep(0.01)
        self.frames()

    def frames(self):
        """Until what has changed is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))")

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def media(self, scheme, kind=""):
        self.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path, whole=False):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))

    def print(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))
