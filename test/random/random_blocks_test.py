"""tools/random-blocks.py: a run that was stopped goes on where it stopped, and counts the same as one
that was not; false verdicts and tests that fail are named.

    random_blocks_test.py UNIT_PROPERTY
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = sys.argv.pop(1)

FAKE = """#!/bin/sh
echo 'seeds of a run:'
echo '  8 cases'
echo '  1 false verdicts'
echo 'test.cpp:1: Failure'
echo 'seed 13, rejected, all sites'
exit 1
"""


class RandomBlocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_on(self, state, *options, program=PROGRAM):
        command = [sys.executable, os.path.join(ROOT, "tools", "random-blocks.py")]
        command += [os.path.join(self.folder, state), "--program", program, "--each", "8", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_goes_on_where_it_stopped(self):
        whole = self.run_on("whole", "--first", "40", "--count", "64")
        self.assertEqual(whole.returncode, 0, whole.stdout + whole.stderr)
        self.assertIn("64 of 64 done", whole.stdout)
        for kind in ("blocks: 16", "deceiving blocks: 16", "models: 16", "sized blocks: 16"):
            self.assertIn(kind + "\n", whole.stdout)

        some = self.run_on("parts", "--first", "40", "--count", "64", "--parts", "4")
        self.assertEqual(some.returncode, 0, some.stdout + some.stderr)
        self.assertIn("32 of 64 done", some.stdout)
        path = os.path.join(self.folder, "parts")
        with open(path, encoding="utf-8") as file:
            done = file.read()
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"first": 72, "cou')  # killed while it wrote
        rest = self.run_on("parts", "--first", "40", "--count", "64")
        self.assertEqual(rest.stdout, whole.stdout)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertTrue(text.startswith(done))
        self.assertEqual(len(text.splitlines()), 9)
        for line in text.splitlines():
            json.loads(line)

    def test_a_file_is_of_one_range(self):
        first = self.run_on("state", "--first", "0", "--count", "16", "--parts", "0")
        self.assertEqual(first.returncode, 0, first.stderr)
        other = self.run_on("state", "--first", "16", "--count", "16")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("name another file", other.stderr)

    def test_what_is_false_is_named(self):
        fake = os.path.join(self.folder, "fake")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(FAKE)
        os.chmod(fake, 0o755)
        done = self.run_on("state", "--first", "8", "--count", "8", program=fake)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 verdicts are false; seeds [13]", done.stdout)
        again = self.run_on("state", "--first", "8", "--count", "8", program=fake)
        self.assertEqual(again.returncode, 1, "what failed is judged again, and fails again")
        self.assertIn("1 verdicts are false; seeds [13]", again.stdout)
        mended = self.run_on("state", "--first", "8", "--count", "8")
        self.assertEqual(mended.returncode, 0, mended.stdout + mended.stderr)
        self.assertIn("8 of 8 done", mended.stdout)
        self.assertEqual(self.run_on("state", "--first", "8", "--count", "8", program="/bin/false").returncode, 0, "it is done")

    def test_seeds_that_were_not_judged_are_a_failure(self):
        done = self.run_on("state", "--first", "8", "--count", "8", program="/bin/true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("seeds [8]", done.stdout)


if __name__ == "__main__":
    unittest.main()
