"""Speaks the language server protocol to a server on its standard input and output."""

import json
import queue
import subprocess
import threading


class Server:
    """A running server. Requests wait for their answers; notifications that arrive in between are kept."""

    def __init__(self, command, timeout=60):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.timeout = timeout
        self.messages, self.kept, self.number = queue.Queue(), [], 0
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            length = 0
            while line := self.process.stdout.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                return self.messages.put(None)
            self.messages.put(json.loads(self.process.stdout.read(length)))

    def _send(self, message):
        text = json.dumps({"jsonrpc": "2.0"} | message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self.process.stdin.flush()

    def _receive(self, wanted):
        for i, message in enumerate(self.kept):
            if wanted(message):
                return self.kept.pop(i)
        while True:
            message = self.messages.get(timeout=self.timeout)
            if message is None:
                raise EOFError(f"the server ended with {self.process.wait()}")
            if wanted(message):
                return message
            self.kept.append(message)

    def notify(self, method, **params):
        self._send({"method": method, "params": params})

    def request(self, method, **params):
        """The result of a request; fails where the server answers with an error."""
        self.number += 1
        number = self.number
        self._send({"id": number, "method": method, "params": params})
        answer = self._receive(lambda m: m.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def diagnostics(self, uri, version):
        """The diagnostics that the server publishes for a version of a document."""
        def wanted(m):
            return (m.get("method") == "textDocument/publishDiagnostics"
                    and m["params"]["uri"] == uri and m["params"].get("version", version) == version)
        return self._receive(wanted)["params"]["diagnostics"]

    def end(self):
        """Shuts the server down as the protocol demands, and returns its exit code."""
        self.request("shutdown")
        self.notify("exit")
        self.process.stdin.close()
        code = self.process.wait(timeout=self.timeout)
        self.reader.join()
        self.process.stdout.close()
        return code
