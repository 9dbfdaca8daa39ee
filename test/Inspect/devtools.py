"""Controls a headless Chromium with the DevTools protocol through pipes, using only the standard library."""

import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    """One page. `problems` collects console errors, exceptions and refused resources, `requests` the
    addresses that the page requested."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # The browser reads commands from file descriptor 3 and writes answers to 4.
        their_in, self.write_to = os.pipe()
        self.read_from, their_out = os.pipe()

        def place():
            copies = os.dup(their_in), os.dup(their_out)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile.name, "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_in)
        os.close(their_out)
        self.buffer, self.last = b"", 0
        self.session, self.problems, self.requests = None, [], []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self.write_to)  # the browser exits when its pipe is closed
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read_from)
        self.profile.cleanup()

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_from], [], [], max(0, deadline - time.time()))
            data = os.read(self.read_from, 1 << 20) if ready else b""
            if not data:
                raise SystemExit("the browser does not answer")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(given["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
            self.problems.append(str(given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.problems.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        return method

    def call(self, method, **parameters):
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.write_to, json.dumps(command).encode() + b"\0")
        deadline = time.time() + 30
        while True:
            message = self._receive(deadline)
            if message.get("id") != self.last:
                self._note(message)
            elif "error" in message:
                raise SystemExit(f"{method}: {message['error']['message']}")
            else:
                return message["result"]

    def open(self, path):
        self.call("Page.navigate", url=path.resolve().as_uri())
        deadline = time.time() + 30
        while self._note(self._receive(deadline)) != "Page.loadEventFired":
            pass

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name.replace("_", "-"), "value": value}
                            for name, value in features.items()])

    def press(self, key):
        codes = {"Tab": 9, "Home": 36, "End": 35, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37,
                 "ArrowDown": 40, "ArrowUp": 38, "Enter": 13}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=codes[key])

    def move_to(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
