"""Runs ctxc as subprocess.run does, in a process for each call. If CTXC_FORK_SERVER names the library of
forkserver.c, and that has been built, the process is forked from one that has already loaded the program's
libraries."""

import atexit
import os
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SERVER = os.environ.get("CTXC_FORK_SERVER", "")
SERVER = SERVER if Path(SERVER).is_file() else ""
mine = threading.local()  # the servers of this thread, by program
every = []


class Server:
    """A server that runs command lines of one program, one after the other."""

    def __init__(self, program):
        environment = dict(os.environ, LD_PRELOAD=SERVER)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)
        every.append(self)
        self.folder = tempfile.TemporaryDirectory()
        self.files = [Path(self.folder.name) / name for name in ("out", "err")]

    def run(self, command):
        text = b"".join(os.fsencode(word) + b"\0" for word in [*self.files, *command])
        self.process.stdin.write(struct.pack("<I", len(text)) + text)
        self.process.stdin.flush()
        answer = self.process.stdout.read(4)
        if len(answer) != 4:
            raise RuntimeError(f"the fork server of {command[0]} is gone")
        code = os.waitstatus_to_exitcode(struct.unpack("<i", answer)[0])
        out, err = (file.read_text() for file in self.files)
        return subprocess.CompletedProcess(command, code, out, err)


def run(command, check=False, environment=None):
    """The program's output and exit code. With `check`, the exit code must be 0. With an `environment`, which is added to
    this process's, it is a process of its own."""
    command = [os.fspath(word) for word in command]
    if environment or not SERVER:
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}))
    else:
        if command[0] not in mine.__dict__:
            mine.__dict__[command[0]] = Server(command[0])
        done = mine.__dict__[command[0]].run(command)
    if check and done.returncode:
        sys.stderr.write(done.stderr)
        done.check_returncode()
    return done


@atexit.register
def close():
    """Ends the servers, so that their time counts as that of this process's children."""
    while every:
        every.pop().process.communicate()
    mine.__dict__.clear()
