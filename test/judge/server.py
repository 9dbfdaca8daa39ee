"""Runs Python programs in forks of one process, which has imported what judges import: that takes torch and
transformers eight seconds of a processor.

  server.py start FOLDER            starts the process; a socket in the folder leads to it
  server.py run FOLDER SCRIPT [ARGUMENTS…]
                                    runs a script as this interpreter does, with this command's folder, environment
                                    and streams, and exits with its code. Without a server, in this process.
  server.py stop FOLDER             ends the process, and what it runs

A process that runs a script ends where the command that asked for it does. The server ends by itself where nobody asks
for ten minutes.
"""

import array
import contextlib
import json
import os
import selectors
import signal
import socket
import struct
import sys

NAME = "judges.socket"
IDLE_SECONDS = 600
LENGTH = struct.Struct("<I")
STATUS = struct.Struct("<i")


def address(folder):
    """A name of the socket that is short enough for the system, whatever the folder's is."""
    return f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{NAME}"


def connect(folder):
    """A connection to the server, or none."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address(folder))
    except OSError:
        return None
    return connection


def send(connection, request, streams=()):
    text = json.dumps(request).encode()
    fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))] if streams else []
    connection.sendmsg([LENGTH.pack(len(text))], fds)
    connection.sendall(text)


def receive(connection):
    """A request, and the streams that came with it."""
    header, streams, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
    if len(header) != LENGTH.size:
        return None, []
    with connection.makefile("rb") as file:
        return json.loads(file.read(LENGTH.unpack(header)[0])), list(streams)


def become(request, streams):
    """Makes this process what the request says. Gives the script's code and its module."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams, default=2) + 1)
    os.chdir(request["folder"])
    for name in set(os.environ) - set(request["environment"]):
        del os.environ[name]
    os.environ.update(request["environment"])
    script = request["arguments"][0]
    sys.argv = request["arguments"]
    wanted = os.environ.get("PYTHONPATH", "")
    sys.path[:0] = [os.path.dirname(os.path.abspath(script)), *filter(None, wanted.split(os.pathsep))]
    return script


class Server:
    def __init__(self, folder):
        self.listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, NAME))
        self.listener.bind(address(folder))
        self.listener.listen(64)
        self.folder = folder
        self.connections = {}  # of a process that runs a script
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.wakeup, self.woken = socket.socketpair()
        for end in (self.wakeup, self.woken):
            end.setblocking(False)
        self.selector.register(self.woken, selectors.EVENT_READ)
        signal.set_wakeup_fd(self.wakeup.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self):
        """Answers requests until one says stop. In a process that is to run a script, gives its request."""
        while True:
            events = self.selector.select(IDLE_SECONDS)
            if not events and not self.connections:
                return None
            for key, _ in events:
                if key.fileobj is self.listener:
                    request = self.answer(self.listener.accept()[0])
                    if request:
                        return request
                    if request is None:
                        return None
                elif key.fileobj is self.woken:
                    self.woken.recv(4096)
                else:
                    self.gone(key.fileobj)
            self.reap()

    def answer(self, connection):
        """In the process of a script, its request; in the server, False, or None where it is to stop."""
        request, streams = receive(connection)
        if request is None:
            return False
        if request["stop"]:
            self.end()
            return None
        process = os.fork()
        if process == 0:
            self.leave()
            connection.close()
            return request, streams
        for stream in streams:
            os.close(stream)
        self.connections[process] = connection
        self.selector.register(connection, selectors.EVENT_READ)
        return False

    def leave(self):
        """Lets go of all that is the server's, in a fork of it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.selector.close()
        for end in (self.listener, self.wakeup, self.woken, *self.connections.values()):
            end.close()

    def gone(self, connection):
        """Who asked has ended, so the process that it asked for does too."""
        self.selector.unregister(connection)
        for process, its in self.connections.items():
            if its is connection:
                self.kill(process)

    def kill(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

    def reap(self):
        while self.connections:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            connection = self.connections.pop(process)
            with contextlib.suppress(KeyError):
                self.selector.unregister(connection)
            with contextlib.suppress(OSError):
                connection.sendall(STATUS.pack(status))
            connection.close()

    def end(self):
        os.unlink(os.path.join(self.folder, NAME))
        for process in self.connections:
            self.kill(process)


def load():
    """What judges import, and nothing that starts a thread: a fork has none of them."""
    os.environ.update(HF_HUB_OFFLINE="1", OPENBLAS_NUM_THREADS="1")
    import gc

    import peft  # noqa: F401
    import torch._dynamo  # noqa: F401
    import transformers.modeling_utils  # noqa: F401

    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        sys.exit(f"imports have started {threads - 1} threads, which a fork would lack")
    gc.freeze()


def start(folder):
    """The request of a script, in the process that is to run it."""
    stop(folder)
    ready, loaded = os.pipe()
    if os.fork():
        os.close(loaded)
        message = os.fdopen(ready).read()
        sys.exit(None if message == "ready" else message or "the judges' server has ended")
    os.setsid()
    os.close(ready)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(loaded, 2)  # a failure to import is told where the start waits
    os.dup2(null, 1)
    load()
    server = Server(folder)
    os.write(loaded, b"ready")
    os.close(loaded)
    os.dup2(null, 2)
    return server.serve()


def stop(folder):
    connection = connect(folder)
    if connection:
        send(connection, {"stop": True})
        connection.recv(1)


def run(folder, arguments):
    connection = connect(folder)
    if not connection:
        os.execv(sys.executable, [sys.executable, *arguments])
    request = {"stop": False, "arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    send(connection, request, [0, 1, 2])
    answer = connection.recv(STATUS.size, socket.MSG_WAITALL)
    if len(answer) != STATUS.size:
        sys.exit("the judges' server is gone")
    code = os.waitstatus_to_exitcode(STATUS.unpack(answer)[0])
    sys.exit(code if code >= 0 else 128 - code)


def main():
    verb, folder, *arguments = sys.argv[1:]
    if verb == "run":
        run(folder, arguments)
    elif verb == "stop":
        stop(folder)
    elif verb == "start":
        return start(folder)
    else:
        sys.exit(__doc__)
    return None


if __name__ == "__main__":
    asked = main()
    if asked:
        path = become(*asked)
        sys.modules["__main__"] = module = type(sys)("__main__")
        module.__file__ = path
        with open(path, "rb") as source:
            code = compile(source.read(), path, "exec")
        exec(code, module.__dict__)
