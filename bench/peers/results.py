"""The measurements, the comparisons made of them, and their goals.

results.json: {"machine": {…}, "setups": {NAME: {"model", "dtype", "threads", "weight_bytes", "about",
"rounds": [ROUND]}}, "gemv" and "gemm": {THREADS: Google Benchmark's JSON}}. A ROUND has "ours":
{PROGRAM: {MEASUREMENT: its median}}; "peers": {PROGRAM: {MEASUREMENT: [{"theirs", "ours"}]}}, ours being
the mean of the run before theirs and the run after it; "decode", our decoding of all kinds and the
speed of memory, token by token in turn; and "positions", the patches of a prompt in units of
reading it. Times are milliseconds, "read_gbps" is GB/s.
"""

import statistics
from dataclasses import dataclass

MODELS = {"gemma-3-270m": "Gemma 3 270M", "llama-260m": "Llama 260M"}

CTXC = "ctxc"
ROUNDED = "ctxc, rounded"  # rounds activations in prefill, as the others do
PYTORCH = "PyTorch"
LLAMA_CPP = "llama.cpp"


@dataclass(frozen=True)
class Comparison:
    """A comparison, and how many times faster than the peer ctxc should be."""
    ours: str
    program: str
    measurement: str
    label: str
    goals: dict  # by type; "llama-260m f32" is for that model only; default 1: never slower

    def goal(self, setup):
        model = f"{setup['model']} {setup['dtype']}"
        return self.goals.get(model, self.goals.get(setup["dtype"], 1))

    def ours_in(self, programs):
        """The program of ctxc that computes the same as the peer."""
        return ROUNDED if self.ours == "prefill" and ROUNDED in programs else CTXC


REPEATS = {"plain": 3, "patch": 1, "prefill": 1}  # of a comparison in a round
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


def median_of(setup, function):
    """The median of `function` over the rounds that have the measurement."""
    values = []
    for round_ in setup["rounds"]:
        try:
            values.append(function(round_))
        except KeyError:
            pass
    return statistics.median(values) if values else None


def ours(setup, measurement, program=CTXC):
    """The median; None where it was not measured."""
    return median_of(setup, lambda round_: round_["ours"][program][measurement])


def of_pairs(setup, program, measurement, function):
    """The median over all pairs of all rounds."""
    values = [function(pair) for round_ in setup["rounds"]
              for pair in round_["peers"].get(program, {}).get(measurement, [])]
    return statistics.median(values) if values else None


def theirs(setup, program, measurement):
    return of_pairs(setup, program, measurement, lambda pair: pair["theirs"])


def factor_over(setup, program, measurement):
    """How many times faster ours is: the median of the ratios of times next to each other."""
    return of_pairs(setup, program, measurement, lambda pair: pair["theirs"] / pair["ours"])


def ratio(setup, comparison):
    return factor_over(setup, comparison.program, comparison.measurement)


def share_of_bandwidth(setup):
    """The time to read the weights once, in units of our plain decoding between such readings."""
    return median_of(setup, lambda each: setup["weight_bytes"] / each["decode"]["read_gbps"] / 1e6
                     / each["decode"]["plain"])


def their_share_of_bandwidth(setup, program):
    """The peer's share of the bandwidth, from ctxc's share and the factor between the two."""
    share, factor = share_of_bandwidth(setup), factor_over(setup, program, "plain")
    return None if share is None or factor is None else share / factor


def decode_factor(setup, measurement):
    """The time in units of plain decoding."""
    return median_of(setup, lambda each: each["decode"][measurement] / each["decode"]["plain"])


def positions_factor(setup):
    """The patches of every position of a prompt, in units of reading it."""
    return median_of(setup, lambda each: each["positions"])


def title(setup):
    return f"{MODELS[setup['model']]}, {setup['dtype']}"
