#!/usr/bin/env python3
"""The errors that figures.py finds in the page of judged families, and the page that it writes."""

import tempfile
import unittest
from pathlib import Path

import figures
from figures import Row

CELLS = {"patched": "mlp.up; mlp.experts.\\*.w2", "full run": "1.9e-5", "same process": "2.4e-6",
         "predicted": "2.1e-6", "other program": "2.5e-5", "control": "8.19",
         "bf16": "1.1e-5 / 1.2e-5", "f16": "stored quantised"}


def row(family, plan="default", **changes):
    return Row(family, plan, CELLS | {key.replace("_", " "): value for key, value in changes.items()})


class FiguresTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "page.md"
        self.rows = [row("llama"), row("gpt2", full_run="3.0e-6", control="12.1")]

    def faults(self, rows, families=("gpt2", "llama")):
        return figures.faults(self.page, rows, families)

    def test_what_is_written_is_read(self):
        figures.write(self.page, self.rows, ["gpt2", "llama"])
        self.assertEqual(figures.read_rows(self.page), {one.key: one for one in self.rows})
        self.assertEqual(self.faults(self.rows), [])
        self.assertIn("| **worst** |  |  | 1.9e-5 | 2.4e-6 | 2.1e-6 | 2.5e-5 | 8.19 | 1.1e-5 / 1.2e-5 |  |",
                      self.page.read_text())

    def test_shards_write_one_page(self):
        families = ["gpt2", "llama"]
        figures.write(self.page, [self.rows[0], row("llama", "fewest-parameters"), row("gone")],
                      families + ["gone"])
        figures.write(self.page, self.rows[1:], families)
        self.assertEqual([key for key in sorted(figures.read_rows(self.page))],
                         [("gpt2", "default"), ("llama", "default"), ("llama", "fewest-parameters")])
        figures.write(self.page, self.rows[:1], families)  # its two plans are one now
        self.assertEqual(self.faults(self.rows), [])

    def test_a_page_that_lacks_something(self):
        self.assertIn("has no row gpt2 default", self.faults(self.rows))
        figures.write(self.page, self.rows, ["gpt2", "llama"])
        self.assertIn("has no row opt default", self.faults([row("opt")], ["gpt2", "llama", "opt"])[0])
        self.assertIn("has a row gpt2 default", self.faults(self.rows[:1], ["llama"])[0])
        self.assertIn("patched is", self.faults([row("llama", patched="mlp.down")])[0])
        self.page.write_text(self.page.read_text().replace("# Judged", "# Other"))
        self.assertEqual(self.faults(self.rows), ["is not what its rows make it"])

    def test_figures_of_other_digits_are_as_good(self):
        figures.write(self.page, self.rows, ["gpt2", "llama"])
        self.assertEqual(self.faults([row("llama", full_run="7.7e-6")]), [])

    def test_limits(self):
        self.assertEqual(figures.beyond_limits(row("llama")), [])
        for changes in ({"full_run": "1.1e-4"}, {"same_process": "0.2"}, {"other_program": "1.1e-3"},
                        {"other_program": "nan"}, {"bf16": "1.1e-5 / 1.1e-3"}, {"f16": "1e-5"},
                        {"full_run": ""}):
            self.assertEqual(len(figures.beyond_limits(row("llama", **changes))), 1, changes)

    def test_how_a_figure_reads(self):
        for x, text in ((2.13e-6, "2.1e-6"), (0.0, "0"), (8.19, "8.19"), (0.12, "0.12"),
                        (1.0, "1"), (123.4, "123"), (1234.0, "1.2e3"), (5e6, "5.0e6"), (float("nan"), "nan")):
            self.assertEqual(figures.figure(x), text)


if __name__ == "__main__":
    unittest.main()
