"""A language server for PyTorch modules: what `ctxc check` finds stands at a person's own lines whenever she saves a file.

    python -m ctxc.lsp [--function build] [--ctxc PROGRAM]

An editor starts it for Python files. A file that is open and defines the function is exported and judged when it is opened, and
again when it, or a file that it imports, is saved. torch stays loaded. This needs torch, and a `ctxc` beside this Python or on PATH.
"""
from __future__ import annotations

import argparse
import json
import linecache
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Optional, Sequence
from urllib.parse import unquote, urlsplit

from ctxc._built import saves
from ctxc.export import write_named

SEVERITIES = {"error": 1, "warning": 2, "note": 3}
Diagnostics = dict[str, list[dict[str, Any]]]  # by file


def messages(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    while True:
        size = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        text = stream.read(size)
        if not size or len(text) < size:
            return
        yield json.loads(text)


def file_of(uri: str) -> str:
    return os.path.realpath(unquote(urlsplit(uri).path))


def range_of(file: str, line: int, start: int = 0, end: Optional[int] = None) -> dict[str, Any]:
    """From one column to another, which count from 0; to the line's end where there is none. The protocol counts UTF-16."""
    text = linecache.getline(file, line).rstrip("\n")

    def place(column: int) -> dict[str, int]:
        return {"line": max(line - 1, 0), "character": len(text[:column].encode("utf-16-le")) // 2}
    start = start or len(text) - len(text.lstrip())
    return {"start": place(start), "end": place(len(text) if end is None else end)}


def defined(file: str, function: str) -> int:
    """The line in which a file defines a function, which may stand behind an error; 0 where it does not."""
    try:
        lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return 0
    pattern = re.compile(rf"(?:def|class)\s+{re.escape(function)}\b|{re.escape(function)}\s*=")
    return next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 0)


class Judge:
    """What is found in what a function builds."""

    def __init__(self, program: str, folder: str):
        self.program, self.folder, self.pages = program, Path(folder), dict[str, str]()

    def __call__(self, source: str) -> Diagnostics:
        file, _, function = source.rpartition(":")
        whole = file, range_of(file, max(defined(file, function), 1))
        written = self.folder / "model.ctxc"
        written.unlink(missing_ok=True)
        try:
            write_named(source, str(written))
        except SystemExit as error:
            return self.unexported(str(error), whole)
        run = subprocess.run([self.program, "check", str(written), "--format", "sarif"], stdin=subprocess.DEVNULL, capture_output=True,
                             text=True)
        if not run.stdout:
            said = [line.strip() for line in run.stderr.replace(str(written), source).splitlines() if line.strip()]
            return {file: [self.diagnostic(whole[1], "\n".join(said) or f"{self.program} ended with {run.returncode}")]}
        found: Diagnostics = {}
        log, = json.loads(run.stdout)["runs"]
        self.pages |= {rule["id"]: rule["help"]["markdown"] for rule in log["tool"]["driver"]["rules"]}
        for result in log["results"]:
            at, where = self.place(result["locations"][0], whole)
            related = [{"location": {"uri": Path(own).as_uri(), "range": place}, "message": note["message"]["text"]}
                       for note in result.get("relatedLocations", []) for own, place in [self.place(note, (at, where))]]
            found.setdefault(at, []).append({**self.diagnostic(where, result["message"]["text"].replace("; way out: ", "\nway out: "),
                                                               SEVERITIES.get(result["level"], 3), result["ruleId"]),
                                             "relatedInformation": related})
        return found

    @staticmethod
    def diagnostic(where: dict[str, Any], message: str, severity: int = 1, code: str = "export") -> dict[str, Any]:
        return {"range": where, "severity": severity, "code": code, "source": "ctxc", "message": message}

    @staticmethod
    def place(location: dict[str, Any], whole: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
        """A file and a range of it; those of the `whole` where an op has no line of a person's."""
        physical = location.get("physicalLocation", {})
        file, region = unquote(physical.get("artifactLocation", {}).get("uri", "").removeprefix("file://")), physical.get("region")
        if not file.endswith(".py") or region is None:
            return whole
        end = region.get("endColumn")
        return os.path.realpath(file), range_of(file, region["startLine"], region["startColumn"] - 1, None if end is None else end - 1)

    def unexported(self, said: str, whole: tuple[str, dict[str, Any]]) -> Diagnostics:
        """The message stands at the innermost of the lines that it names."""
        lines, frames = [], list[tuple[str, int]]()
        for line in said.removeprefix("ctxc.export: ").splitlines():
            frame = re.match(r"  (.+?):(\d+): ", line)
            if frame:
                frames.append((os.path.realpath(frame[1]), int(frame[2])))
            elif "--traceback" not in line:
                lines.append(line.strip())
        file, where = (frames[-1][0], range_of(*frames[-1])) if frames else whole
        related = [{"location": {"uri": Path(own).as_uri(), "range": range_of(own, line)}, "message": "called here"}
                   for own, line in frames[-2::-1]]
        return {file: [{**self.diagnostic(where, "\n".join(lines)), "relatedInformation": related}]}


class Server:
    def __init__(self, functions: Sequence[str], stream: BinaryIO):
        self.functions, self.stream, self.sending = functions, stream, threading.Lock()
        self.open: dict[str, str] = {}  # files, by their URI
        self.ends, self.is_shut = False, False
        self.found: dict[str, Diagnostics] = {}  # by source
        self.pages: dict[str, str] = {}

    def send(self, **message: Any) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.sending:
            self.stream.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            self.stream.flush()

    def read(self, stream: BinaryIO) -> None:
        for message in messages(stream):
            method, params = message.get("method"), message.get("params") or {}
            uri = params.get("textDocument", {}).get("uri", "")
            if method == "textDocument/didOpen":
                self.open = {**self.open, uri: file_of(uri)}
            elif method == "textDocument/didClose":
                self.open = {own: file for own, file in self.open.items() if own != uri}
            elif method == "exit":
                break
            elif "id" in message and method:
                self.answer(message["id"], method, params)
        self.ends = True

    def answer(self, number: Any, method: str, params: dict[str, Any]) -> None:
        result: Any = None
        if method == "initialize":
            result = {"capabilities": {"textDocumentSync": {"openClose": True, "change": 0, "save": True}, "hoverProvider": True},
                      "serverInfo": {"name": "ctxc.lsp"}}
        elif method == "shutdown":
            self.is_shut = True
        elif method == "textDocument/hover":
            file, line = file_of(params["textDocument"]["uri"]), params["position"]["line"]
            rules = {each["code"] for found in list(self.found.values()) for each in found.get(file, ())
                     if each["range"]["start"]["line"] <= line <= each["range"]["end"]["line"]}
            pages = [self.pages[rule] for rule in sorted(rules) if rule in self.pages]
            result = {"contents": {"kind": "markdown", "value": "\n\n---\n\n".join(pages)}} if pages else None
        else:
            self.send(id=number, error={"code": -32601, "message": f"{method}: is not known here"})
            return
        self.send(id=number, result=result)

    def sources(self) -> Optional[list[str]]:
        """What is to be judged; None at the end."""
        if self.ends:
            return None
        files = dict.fromkeys(self.open.values())
        sources = [f"{file}:{name}" for file in files for name in self.functions if file.endswith(".py") and defined(file, name)]
        for gone in self.found.keys() - set(sources):
            self.publish(gone, {})
            del self.found[gone]
        return sources

    def publish(self, source: str, found: Diagnostics) -> None:
        before = self.found.get(source, {})
        self.found[source] = found
        names = {file: uri for uri, file in self.open.items()}
        for file in {*before, *found, source.rpartition(":")[0]}:
            told = [each for own in self.found.values() for each in own.get(file, ())]
            self.send(method="textDocument/publishDiagnostics", params={"uri": names.get(file, Path(file).as_uri()), "diagnostics": told})


def find_program(given: Optional[str]) -> str:
    beside = os.path.join(os.path.dirname(sys.executable), "ctxc")
    found = shutil.which(given or (beside if os.path.exists(beside) else "ctxc"))
    if found is None:
        raise SystemExit(f"ctxc.lsp: {given or 'ctxc'}: is no program that can be run; name it with --ctxc")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ctxc.lsp", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--function", action="append", metavar="NAME",
                        help="a function that builds a module, in any file that defines it (default: build); can be given several times")
    parser.add_argument("--ctxc", metavar="PROGRAM", help="the ctxc that judges (default: the one beside this Python, or on PATH)")
    given = parser.parse_args()
    program = find_program(given.ctxc)
    # What a person's module prints is no message to the editor.
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = Server(given.function or ["build"], stream)
    threading.Thread(target=server.read, args=(os.fdopen(os.dup(0), "rb"),), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(program, folder)
        for source in saves(server.sources):
            found = judge(source)
            server.pages = judge.pages
            server.publish(source, found)
    sys.exit(not server.is_shut)


if __name__ == "__main__":
    main()
