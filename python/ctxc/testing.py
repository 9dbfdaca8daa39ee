"""For tests of architectures: an assertion that fails with the report of `ctxc check`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Union

from ctxc._model import Model, check
from ctxc._report import CheckReport

if TYPE_CHECKING:
    import torch

recorders: list[Callable[[CheckReport], None]] = []
"""Each is called with every report; ctxc.pytest_plugin collects them for SARIF."""


def assert_controllable(module: Union[Model, str, os.PathLike[str], torch.nn.Module],
                        inputs: Union[torch.Tensor, Sequence[torch.Tensor], None] = None, *,
                        output_only: bool = False, **options: Any) -> CheckReport:
    """The report on `module`, each layer of which is controllable; else AssertionError, whose message is the report: which op prevents
    a patch, at which line, and the way out. `output_only` also accepts layers whose patch is exact while the MLP's internals differ.
    The rest is as in `ctxc.check`: example inputs, (1, tokens, …), and options such as sites="all" or objective="numbers".

    >>> ctxc.testing.assert_controllable("examples/models/gemma3-kjv-1m").patchable
    True
    >>> try:
    ...     ctxc.testing.assert_controllable("test/python/Inputs/refused.mlir")
    ... except AssertionError as error:
    ...     "rejected [bounded-output]" in str(error)
    True
    """
    __tracebackhide__ = True  # pytest then shows the caller's line
    report = check(module, inputs, **options)
    for record in recorders:
        record(report)
    allowed = {"controllable", "output-only"} if output_only else {"controllable"}
    if not report.patchable or any(each["verdict"] not in allowed for each in report.verdicts):
        raise AssertionError(f"expected {' or '.join(sorted(allowed))}\n{report}")
    return report
