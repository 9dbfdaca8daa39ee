"""What torch.export could not follow, in a few lines: where in the module's own code, why, and what to write instead."""
from __future__ import annotations

import linecache
import os
import re
import traceback
from typing import Iterator

from ctxc._built import Unbuilt
from ctxc._own_lines import whose

_MOST = 4  # of the module's own frames that are shown, the innermost ones
# Parts of messages of torch, what they mean, and what to write instead.
_REASONS = (
    (r"Could not guard|data-dependent expression \(?(Eq|Ne|[ui]\d+ |zu?f?\d+ )", "the numbers of a tensor decide which code runs, and a "
     "program has one code for all numbers", "torch.where(condition, a, b), which computes both"),
    (r"Could not extract specialized integer|data-dependent", "a size, an index or a number of rounds depends on the numbers of a tensor, "
     "and a program has the same for all numbers", "a constant, a size of a tensor (x.shape[1]), or an op on the tensor itself"),
    (r"\.numpy\(\) is not supported|numpy", "the numbers leave torch for NumPy, where torch cannot follow them",
     "torch's own function of that name"),
    (r"\.item\(|_local_scalar_dense|\.tolist\(", "a tensor becomes a number of Python", "an op on the tensor itself"),
    (r"deepcopy|pickle", "the module has something that cannot be copied", "a module of tensors and modules alone"),
)


def summary_of(error: BaseException, name: str) -> str:
    """At most ten lines about an error in exporting a module, which the module's code raised in torch.export or when it ran."""
    what = "the module fails on its example inputs"
    if isinstance(error, Unbuilt) and error.__cause__ is not None:
        what, error = str(error), error.__cause__
    message = str(error).strip().splitlines()
    first = next((line.strip() for line in message if line.strip()), type(error).__name__)
    text = "\n".join(message)
    is_torchs = "torch.export" in text or type(error).__module__.startswith("torch")
    lines = [f"{name}: the module cannot be exported" if is_torchs or _reason_of(text) else f"{name}: {what}"]
    lines += _frames_of(error)
    reason = _reason_of(text)
    if reason is not None:
        lines += [f"  {reason[0]}", f"  expected {reason[1]}"]
    lines.append(f"  ({type(error).__name__}: {first[:200]})")
    return "\n".join(lines)


def _reason_of(text: str) -> tuple[str, str] | None:
    return next(((why, instead) for pattern, why, instead in _REASONS if re.search(pattern, text)), None)


def _frames_of(error: BaseException) -> Iterator[str]:
    """The innermost frames that a person wrote, the last call last."""
    found: list[traceback.FrameSummary] = []
    seen: BaseException | None = error
    while seen is not None and not found:
        frames = list(traceback.extract_tb(seen.__traceback__))
        within = [at for at, each in enumerate(frames) if os.path.dirname(each.filename) == os.path.dirname(__file__)]
        frames = frames[within[0] if within else 0:]  # without those that called ctxc
        # Where none is a person's own, those of another package, such as transformers.
        owners = [whose(each.filename) for each in frames]
        found = [each for each, owner in zip(frames, owners) if owner == min(owners, default=2) < 2]
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield f"  {os.path.relpath(error.filename)}:{error.lineno}: {(error.text or '').strip()[:160]}"
        return
    for each in found[-_MOST:]:
        line = linecache.getline(each.filename, each.lineno or 0).strip()
        yield f"  {os.path.relpath(each.filename)}:{each.lineno}: in {each.name}: {line[:160]}"
