"""ctxc.testing and the plugin of pytest, on the example of a project that uses both.

  testing_test.py EXAMPLE
"""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ctxc

EXAMPLE = Path(sys.argv.pop(1))


class Project(unittest.TestCase):
    def test_a_failure_is_the_report_and_sarif(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "ctxc.sarif")
            told = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "ctxc.pytest_plugin", "-p", "no:cacheprovider",
                                   "tests", "--ctxc-sarif", log], cwd=EXAMPLE, capture_output=True, text=True)
            self.assertEqual(told.returncode, 1, told.stdout + told.stderr)
            run, = json.loads(log.read_text())["runs"]
        self.assertIn("1 failed, 1 passed", told.stdout)
        self.assertIn("block.py:29:20: error: block 'model' cannot take the context", told.stdout)
        self.assertIn("way out: add a trainable scale after this norm", told.stdout)
        self.assertNotIn("_model.py", told.stdout)  # only the test's own line
        result, = run["results"]
        physical = result["locations"][0]["physicalLocation"]
        self.assertEqual(physical["artifactLocation"], {"uri": "examples/10-in-ci/block.py", "uriBaseId": "%SRCROOT%"})
        self.assertEqual((physical["region"]["startLine"], result["ruleId"], result["level"]), (29, "bounded-output", "error"))
        self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], "bounded-output")
        self.assertEqual(run["invocations"][0]["exitCode"], 1)


class Assertion(unittest.TestCase):
    def test_output_only_is_asked_for(self):
        one_matrix = """xf.block @one_matrix(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %v = xf.add %x, %a : tensor<8xf32>
  %h = xf.activation gelu %v : tensor<8xf32>
  %W = xf.param "w" : tensor<8x8xf32>
  %d = xf.linear %W * %h : tensor<8x8xf32>, tensor<8xf32>
  %y = xf.add %v, %d : tensor<8xf32>
  xf.yield %y : tensor<8xf32>
}
"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "block.mlir")
            path.write_text(one_matrix)
            verdict = ctxc.check(path).verdicts[0]["verdict"]
            self.assertEqual(verdict, "output-only")
            with self.assertRaisesRegex(AssertionError, "expected controllable\n"):
                ctxc.testing.assert_controllable(path)
            self.assertTrue(ctxc.testing.assert_controllable(path, output_only=True).patchable)


if __name__ == "__main__":
    unittest.main()
