"""Runs a command whose output is a terminal, and prints what it wrote there with \\xNN for control
characters: `terminal.py COMMAND…`."""

import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=theirs)
os.close(theirs)
seen = b""
while True:
    try:
        seen += os.read(ours, 65536)
    except OSError:  # nobody has the terminal open any more
        break
for line in seen.decode("utf-8", "replace").splitlines():
    print("".join(c if ord(c) >= 32 else f"\\x{ord(c):02x}" for c in line))
sys.exit(process.wait())
