"""A plugin of pytest: `pytest --ctxc-sarif FILE` writes all that assert_controllable found, for code scanning.

A wheel registers it; from a build folder it is `pytest -p ctxc.pytest_plugin`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ctxc import testing
from ctxc._report import CheckReport


def pytest_addoption(parser: Any) -> None:
    parser.getgroup("ctxc").addoption("--ctxc-sarif", metavar="FILE", help="write the findings of ctxc's checks as SARIF 2.1.0")


def pytest_configure(config: Any) -> None:
    path = config.getoption("--ctxc-sarif")
    if path:
        config.pluginmanager.register(Collected(Path(path).absolute(), Path(str(config.rootpath))))


class Collected:
    """All reports of a session, as one SARIF log. Files below the root are named relative to it, as code scanning expects."""

    def __init__(self, path: Path, root: Path):
        self.path, self.logs = path, list[dict[str, Any]]()
        self.root = f"file://{quote(str(root.resolve()))}/"

    def record(self, report: CheckReport) -> None:
        self.logs.append(report.sarif)

    def pytest_sessionstart(self) -> None:
        testing.recorders.append(self.record)

    def pytest_sessionfinish(self) -> None:
        testing.recorders.remove(self.record)
        if not self.logs:
            return
        merged = json.loads(json.dumps(self.logs[0]))
        run = merged["runs"][0]
        runs = [log["runs"][0] for log in self.logs]
        run["results"] = [self._relative(result) for each in runs for result in each["results"]]
        invocation = run["invocations"][0]
        invocation["exitCode"] = max(each["invocations"][0]["exitCode"] for each in runs)
        told = [note for each in runs for note in each["invocations"][0].get("toolExecutionNotifications", [])]
        if told:
            invocation["toolExecutionNotifications"] = told
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        new.write_text(json.dumps(merged, indent=2), encoding="utf-8")
        new.replace(self.path)

    def _relative(self, value: Any) -> Any:
        if isinstance(value, dict):
            found = {key: self._relative(each) for key, each in value.items()}
            if isinstance(found.get("uri"), str) and found["uri"].startswith(self.root):
                found.update(uri=found["uri"][len(self.root):], uriBaseId="%SRCROOT%")
            return found
        return [self._relative(each) for each in value] if isinstance(value, list) else value
