"""What was measured, with what is compared of it, and what is aimed at.

results.json: {"machine": {…}, "setups": {NAME: {"model", "dtype", "threads", "weight_bytes", "about",
"rounds": [{PROGRAM: {MEASUREMENT: number}}]}}, "gemv" and "gemm": {THREADS: Google Benchmark's
JSON}}. Times are
milliseconds, bandwidth is GB/s.
"""

import statistics
from dataclasses import dataclass

MODELS = {"gemma-3-270m": "Gemma 3 270M", "llama-260m": "Llama 260M"}


@dataclass(frozen=True)
class Comparison:
    """How many times faster ours is to be than a peer."""
    ours: str
    program: str
    measurement: str
    label: str
    goals: dict  # by dtype; "llama-260m f32" is of that model only. Without one: 1, never slower

    def goal(self, setup):
        model = f"{setup['model']} {setup['dtype']}"
        return self.goals.get(model, self.goals.get(setup["dtype"], 1))


ROUNDED = "ctxc, rounded"  # measures what rounds as the others do, in place of what does not
PYTORCH = "PyTorch"
LLAMA_CPP = "llama.cpp"
TABLES = {
    "plain": [
        Comparison("plain", PYTORCH, "plain", "PyTorch", {}),
        Comparison("plain", LLAMA_CPP, "plain", "llama.cpp", {"f32": 1.15, "bf16": 2.3}),
    ],
    "patch": [
        Comparison("patch", PYTORCH, "factored", "factored", {"f32": 3.5, "bf16": 7}),
        Comparison("patch", PYTORCH, "factored_tuned", "factored, tuned", {}),
        Comparison("patch", PYTORCH, "materialised", "materialised",
                   {"llama-260m f32": 9, "llama-260m bf16": 22}),
        Comparison("patch", PYTORCH, "materialised_tuned", "materialised, tuned", {}),
    ],
    "prefill": [
        Comparison("prefill", PYTORCH, "prefill", "PyTorch", {}),
        Comparison("prefill", LLAMA_CPP, "prefill", "llama.cpp", {}),
    ],
}


def median(setup, program, measurement):
    """None where it was not measured."""
    return median_of(setup, lambda round_: round_[program][measurement])


def median_of(setup, function):
    """The median over the rounds, where `function` of a round is not a measurement that it lacks."""
    values = []
    for round_ in setup["rounds"]:
        try:
            values.append(function(round_))
        except KeyError:
            pass
    return statistics.median(values) if values else None


def ratio(setup, comparison):
    """The median of the rounds' own ratios: what slows a whole round down is not in it."""
    return median_of(setup, lambda round_: round_[comparison.program][comparison.measurement]
                     / {**round_["ctxc"], **round_.get(ROUNDED, {})}[comparison.ours])


def memory_gbps(round_):
    """The faster of what was read before ours, in its process, and after it: memory's own speed
    changes from second to second where a machine is shared."""
    return max(round_["bandwidth"]["read_gbps"], round_.get("ctxc", {}).get("read_gbps", 0))


def floor_ms(setup, round_=None):
    """The time to read the weights once, at the speed of memory in a round; the rounds' median."""
    if round_:
        return setup["weight_bytes"] / memory_gbps(round_) / 1e6
    return median_of(setup, lambda each: floor_ms(setup, each))


def share_of_bandwidth(setup, program):
    """Of plain decoding."""
    return median_of(setup, lambda round_: floor_ms(setup, round_) / round_[program]["plain"])


def positions_factor(setup):
    """The patches of every position of a prompt, in units of reading it."""
    return median_of(setup, lambda round_: round_["ctxc"]["positions"] / round_["ctxc"]["prefill"])


def title(setup):
    return f"{MODELS[setup['model']]}, {setup['dtype']}"
