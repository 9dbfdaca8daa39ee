#!/usr/bin/env python3
"""The tables that bench/side_by_side.py and bench/prompts_in_tiles.py make from measurements."""

import sys
import unittest
import unittest.mock
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
import page  # noqa: E402
import report  # noqa: E402
import results as r  # noqa: E402
import prompts_in_tiles  # noqa: E402
import side_by_side  # noqa: E402


def setup(rounds, **changes):
    return {"model": "gemma-3-270m", "dtype": "f32", "threads": 2, "context": 64, "prefill": 512,
            "weight_bytes": 10**9, "about": {}, "rounds": rounds} | changes


def round_(ours, factored, gbps=20.0):
    """Plain decoding takes half of Algorithm 1."""
    return {"ours": {r.CTXC: {"patch": ours, "plain": ours / 2}},
            "peers": {r.PYTORCH: {"factored": [{"theirs": factored, "ours": ours}]}},
            "decode": {"patch": ours, "plain": ours / 2, "read_gbps": gbps}, "positions": 2.2}


class ReportTest(unittest.TestCase):
    FACTORED = next(c for c in r.TABLES["patch"] if c.measurement == "factored")

    def test_ratio_is_the_median_of_the_rounds_own(self):
        # In the middle round, both programs were slow.
        s = setup([round_(10, 40), round_(100, 350), round_(10, 30)])
        self.assertEqual(r.ratio(s, self.FACTORED), 3.5)

    def test_a_missed_goal_is_bold(self):
        self.assertEqual(report.factor(setup([round_(10, 36)]), self.FACTORED), "3.60 (≥ 3.5)")
        self.assertEqual(report.factor(setup([round_(10, 34)]), self.FACTORED), "**3.40** (≥ 3.5)")
        self.assertEqual(report.factor(setup([round_(10, 36)], dtype="bf16"), self.FACTORED),
                         "**3.60** (≥ 7)")

    def test_goals_of_one_model(self):
        materialised = next(c for c in r.TABLES["patch"] if c.measurement == "materialised")
        self.assertEqual(materialised.goal(setup([])), 1)
        self.assertEqual(materialised.goal(setup([], model="llama-260m")), 9)
        self.assertEqual(materialised.goal(setup([], model="llama-260m", dtype="bf16")), 22)

    def test_what_was_not_measured_is_a_dash(self):
        s = setup([{"ours": {}, "peers": {r.PYTORCH: {"factored": [{"theirs": 36.0, "ours": 9.0}]}},
                    "decode": {}}])
        self.assertIn("| – | 36.0 | 4.00 (≥ 3.5) | – | – |",
                      report.comparison_table([s], "patch", report.milliseconds))
        self.assertIn("| – | – | – | – |", report.decode_table([s]))

    def test_what_rounds_as_the_others_is_compared(self):
        against = r.TABLES["prefill"][0]
        self.assertEqual(against.ours_in({r.CTXC, r.PYTORCH}), r.CTXC)
        self.assertEqual(against.ours_in({r.CTXC, r.ROUNDED}), r.ROUNDED)
        self.assertEqual(self.FACTORED.ours_in({r.CTXC, r.ROUNDED}), r.CTXC)
        s = setup([{"ours": {r.CTXC: {"prefill": 512}, r.ROUNDED: {"prefill": 256}},
                    "peers": {r.PYTORCH: {"prefill": [{"theirs": 384, "ours": 256}]}},
                    "positions": 2.2}])
        self.assertIn("| 1000 | 2000 | 1333 | 1.50 (≥ 1) | – | – | 2.20 × (≤ 2.3) |",
                      report.prefill_table([s]))
        self.assertEqual(report.limited(2.4, 2.3), "**2.40** × (≤ 2.3)")

    def test_share_of_bandwidth(self):
        # 1 GB at 20 GB/s takes 50 ms. Plain decoding takes 62.5 ms; it takes 70 ms next to
        # llama.cpp, which takes twice as long.
        each = round_(125, 400)
        each["peers"][r.LLAMA_CPP] = {"plain": [{"theirs": 140.0, "ours": 70.0}]}
        self.assertIn("| 62.5 | **80** % | – | – | 140 | 2.00 (≥ 1.15) | 40 % |",
                      report.plain_table([setup([each])]))
        self.assertIn("| 62.5 | – | – | **2.00** × (≤ 1.3) |", report.decode_table([setup([each])]))

    def test_each_peer_is_between_two_runs_of_ours(self):
        class Program:
            """A program that answers with the number of questions so far."""
            asked = 0

            def __init__(self, columns=None):
                self.columns = columns

            def measure(self, name):
                Program.asked += 1
                value = float(Program.asked)
                return {c: value for c in self.columns[name]} if self.columns else value

        kinds = ["plain", "patch", "prefill", "positions"]
        columns = {"read": ["read_gbps"], "decode": ["plain", "patch"], **{k: [k] for k in kinds}}
        side_by_side.SETTLED = 0
        found = side_by_side.Round({r.CTXC: Program(columns), r.PYTORCH: Program()}).run()
        self.assertEqual(found["decode"], {"plain": 2, "patch": 2})
        self.assertEqual(found["positions"], 1)  # 4 divided by the mean of 3 and 5
        peer = found["peers"][r.PYTORCH]
        self.assertEqual(peer["plain"], [{"theirs": at, "ours": at} for at in (7, 10, 13)])
        self.assertEqual(peer["factored_tuned"], [{"theirs": 18, "ours": 18}])
        self.assertNotIn(r.LLAMA_CPP, found["peers"])

    def test_gemv_takes_a_librarys_fastest_way_and_no_wrong_result(self):
        def benchmark(name, gbps, **more):
            return {"name": name, "run_name": name, "bytes_per_second": gbps * 1e9,
                    "aggregate_name": "median"} | more
        run = {"context": {"read_gbps": "30"}, "benchmarks": [
            benchmark("Eigen/f32/4x2/S2/real_time", 5), benchmark("Eigen-product/f32/4x2/S2/real_time", 7),
            benchmark("ctxc/f32/4x2/S2/real_time", 20),
            benchmark("ctxc/f32/4x2/S2/real_time", 99, aggregate_name="max")]}
        self.assertIn("| 4 × 2 | f32 | 1 | – | – | – | 20.0 | 7.0 | – | 30.0 |", report.gemv_table({"1": run}))
        run["benchmarks"].append(benchmark("ctxc/f32/4x2/S1/real_time", 1, error_occurred=True,
                                           error_message="its result is wrong"))
        with self.assertRaises(ValueError):
            report.gemv_table({"1": run})

    def test_gemm_has_a_column_for_each_way(self):
        def benchmark(name, gflops):
            return {"name": name, "run_name": name, "GFLOPS": gflops, "aggregate_name": "median"}
        run = {"context": {}, "benchmarks": [benchmark("ctxc/f32/4x2/real_time", 100),
                                             benchmark("oneDNN-rounded/bf16/4x2/real_time", 220)]}
        self.assertIn("| 4 × 2 | 2 | 100 | – | – | – | – | 220 |", report.gemm_table({"2": run}))

    def test_prompts_in_tiles_are_compared_with_pytorch_in_the_same_round(self):
        # In the last round, all programs were slow. The processor has no tiles.
        names = prompts_in_tiles.VECTORS, prompts_in_tiles.EXACT, prompts_in_tiles.PYTORCH
        rounds = [dict(zip(names, times)) for times in ((100, 200, 50), (100, 250, 50), (1000, 2000, 250))]
        with unittest.mock.patch("prompts_in_tiles.rounds_of", return_value=rounds):
            self.assertEqual(prompts_in_tiles.row(None, "bf16", threads=2, prefill=10),
                             ["bf16", "10", 2, "40 (0.20)", "–", "–", "100 (0.50)", "200"])

    def test_a_section_takes_its_place_in_the_page(self):
        text, heading = "# Page\n\n## One\n\ntext\n", report.HEADING
        first = page.with_section(text, heading, heading + "\n\nold\n")
        self.assertEqual(first, text + "\n" + heading + "\n\nold\n")
        self.assertEqual(page.section_of(first, heading), heading + "\n\nold\n")
        second = page.with_section(first + "\n## Two\n", heading, heading + "\n\nnew\n")
        self.assertEqual(second, text + "\n" + heading + "\n\nnew\n\n## Two\n")
        self.assertEqual(page.section_of(text, heading), "")


if __name__ == "__main__":
    unittest.main()
