"""A headless Chromium, controlled with the DevTools protocol over two pipes, using only Python's
standard library."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60
# The file descriptors from which Chromium reads commands and to which it writes responses.
READS_FD, WRITES_FD = 3, 4


def program():
    """The browser that is installed, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A browser with one tab, as a context manager."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="pages.")
        commands_read, self.commands = os.pipe()
        self.answers, answers_write = os.pipe()
        command = [program(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "--no-first-run",
                   "--disable-gpu", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars",
                   "--force-color-profile=srgb", "about:blank"]
        if os.geteuid() == 0:
            # Its sandbox does not work for root, and the pages are trusted.
            command.insert(1, "--no-sandbox")
        # The shell moves the pipes to the expected descriptors; in Python this would need a
        # function between fork and exec.
        moved = f'exec {READS_FD}<&{commands_read} {WRITES_FD}>&{answers_write}; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", moved, "bash", *command], pass_fds=(commands_read, answers_write),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        os.close(commands_read)
        os.close(answers_write)
        self.buffer, self.last_id, self.events, self.session = b"", 0, [], None

    def __enter__(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            self.process.kill()
        # Child processes of the browser may still write for a moment after it has ended.
        for _ in range(20):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.2)

    def ask(self, method, **parameters):
        """Sends a command and returns its result; events in the meantime are added to `events`."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(PATIENCE_S)
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, patience_s):
        end = time.monotonic() + patience_s
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("no message from the browser")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError("the browser ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def look(self, width, height=900, dark=False):
        """Sets the size of the window and the preferred colour scheme."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media="screen", features=[scheme])

    def open(self, address):
        """Loads a page; returns its status and the browser's complaints."""
        return self._loaded(address, lambda: self.ask("Page.navigate", url=address))

    def _loaded(self, address, load):
        self.events.clear()
        load()
        end = time.monotonic() + PATIENCE_S
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(max(0.1, end - time.monotonic())))
        # For late requests (an icon) and late log entries.
        self.evaluate("new Promise(done => setTimeout(done, 60))")
        status, complaints = None, []
        for event in self.events:
            parameters = event.get("params", {})
            match event.get("method"):
                case "Network.responseReceived":
                    response = parameters["response"]
                    if parameters.get("type") == "Document":
                        status = response["status"]
                    elif response["status"] >= 400:
                        complaints.append(f"{response['status']} for {response['url']}")
                case "Log.entryAdded":
                    entry = parameters["entry"]
                    # The caller checks the status of the document itself.
                    if entry["source"] != "network" or entry.get("url") != address:
                        complaints.append(f"{entry['level']}: {entry['text']}")
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                    complaints.append(f"console: {json.dumps(parameters)[:300]}")
        return status, complaints

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def click(self, expression):
        """Evaluates a click that opens another page; returns the same as `open`, and the new
        address."""
        return self._loaded(None, lambda: self.evaluate(f"void ({expression})")) + (self.evaluate("location.href"),)

    def screenshot(self, height_max=None):
        """A picture of the whole page, or of its upper part: PNG in Base64."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        height = int(min(size["height"], height_max or size["height"]))
        clip = {"x": 0, "y": 0, "width": int(size["width"]), "height": height, "scale": 1}
        return self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
