#!/usr/bin/env python3
"""Tests run_readme.py: correct READMEs pass, and each kind of wrong README fails."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

RUNNER = Path(__file__).resolve().parent / "run_readme.py"


def run(text):
    with tempfile.TemporaryDirectory() as folder:
        readme = Path(folder) / "README.md"
        readme.write_text("Text.\n\n```console\n" + text + "```\n\n```\n$ false\n```\n")
        return subprocess.run([sys.executable, RUNNER, readme, "--build", folder],
                              stdout=subprocess.PIPE, text=True).returncode


class RunReadme(unittest.TestCase):
    def test_right_results_pass(self):
        for text in ("$ echo a; echo b >&2\na\nb\n",
                     "$ printf 'one \\n\\ntwo'\none\n\ntwo\n\n$ true\n",
                     "$ echo a \\\n    b\na b\n",
                     "$ exit 3\n$ echo $?\n3\n",
                     "$ cat > x <<'END'\n$ b\nEND\n$ wc -l < x\n1\n",
                     "$ echo x > left; ls CMakeLists.txt > /dev/null\n$ cat left\nx\n"):
            self.assertEqual(run(text), 0, text)

    def test_wildcards(self):
        self.assertEqual(run("$ seq 5\n1\n...\n5\n"), 0)
        self.assertEqual(run("$ seq 5\n1\n...\n2\n3\n4\n5\n"), 0)
        self.assertEqual(run("$ echo took 12 s.\ntook ... s.\n"), 0)
        self.assertEqual(run("$ seq 5\n1\n...\n4\n"), 1)
        self.assertEqual(run("$ echo took 12 h\ntook ... s\n"), 1)
        self.assertEqual(run("$ printf '1\\n2'\n...2\n"), 1)

    def test_what_differs_between_machines(self):
        self.assertEqual(run("$ echo 'in 0.50 s, L   2e-16 of 12.5'\nin 3 s, L 8.88e-16 of 12.4\n"), 0)
        self.assertEqual(run("$ echo 1.13\n1.14\n$ echo 0\n1e-5\n$ echo 0.02\n0.01\n"), 0)
        self.assertEqual(run("$ echo 'L 1e-14'\nL 8.88e-16\n"), 1)
        self.assertEqual(run("$ echo 'L nan'\nL 8.88e-16\n"), 1)
        self.assertEqual(run("$ echo 12.1\n12.5\n"), 1)
        self.assertEqual(run("$ echo 4 of 5\n5 of 5\n"), 1)

    def test_wrong_results_fail(self):
        for text in ("$ echo a\nb\n", "$ echo a\n", "$ true\na\n", "$ echo a.c\nabc\n",
                     "$ false\n$ echo $?\n0\n", "$ echo abc\na.c\n"):
            self.assertEqual(run(text), 1, text)

    def test_a_readme_without_commands_is_an_error(self):
        self.assertEqual(run(""), 2)


if __name__ == "__main__":
    unittest.main()
