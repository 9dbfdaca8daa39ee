"""The judge by numpy notices claims that are false, and none that are true.

    numpy_judge_test.py CTXC
"""
import collections
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np  # noqa: E402
from numpy_blocks import Block  # noqa: E402
from numpy_judge import fails_of, judge  # noqa: E402
from numpy_verdicts import Maker, claims_of  # noqa: E402

CTXC = sys.argv.pop(1)
PLAIN = {"inputsDepend": False, "cut": [], "parameters": ["down"], "patchable": ["down"]}


def block(change):
    """What `change` makes of a matrix's product is added to a stream; with the matrix's op."""
    b = Block(4)
    v = b.add(b.x, b.conv(b.x, "conv"))
    d = b.linear(b.param("down", 4, 4), v)
    b.outputs = [b.add(v, change(b, d))]
    return b, d


def success(b, op, fails="null-set"):
    patch = {"op": op.name, "parameter": "down", "fails": fails}
    output = {"goal": b.outputs[0].name, "patches": [patch], "divisors": []}
    return {**PLAIN, "verdict": "output-only", "outputs": [output]}


def opposite_of(claim):
    """A rejection of what a success patches, or that a rejection's parameters suffice; none of what has conditions."""
    if claim["verdict"] == "rejected":
        outputs = [{"patches": [{"op": "another"}], "divisors": []}]
        return {**claim, "verdict": "output-only", "parameters": claim["patchable"], "cut": [], "outputs": outputs}
    if "parameters" not in claim or "open-set" in fails_of(claim):
        return None
    return {**claim, "verdict": "rejected", "patchable": claim["parameters"]}


class Judge(unittest.TestCase):
    def test_true_claims(self):
        for change in (lambda b, d: d, lambda b, d: b.times(d, -2), lambda b, d: b.unary("power @ to 3", d, lambda a: a**3)):
            b, op = block(change)
            self.assertEqual(judge(b, success(b, op), 0, 1), "")
        b, op = block(lambda b, d: b.unary("softcap @ at 3.0", d, lambda a: 3 * np.tanh(a / 3)))
        self.assertEqual(judge(b, {**PLAIN, "verdict": "rejected"}, 0, 1), "")

    def test_patches_that_no_search_finds(self):
        b, op = block(lambda b, d: b.unary("power @ to 2", b.mul(d, b.setting("m", [1e-12] * 4)), lambda a: a * abs(a)))
        claim = success(b, op)
        self.assertNotEqual(judge(b, claim, 0, 1), "")
        names = [each.name for each in b.ops if each.kind != "setting"]
        claim["outputs"][0]["chain"] = names[names.index(op.name):]
        self.assertEqual(judge(b, claim, 0, 1), "")

    def test_false_claims(self):
        for change in (lambda b, d: b.mul(d, b.setting("m", [1.0, 0.0, 1.0, 1.0])), lambda b, d: b.activation("relu", d)):
            b, op = block(change)
            self.assertNotEqual(judge(b, success(b, op), 0, 1), "")
        b, op = block(lambda b, d: d)
        self.assertNotEqual(judge(b, {**PLAIN, "verdict": "rejected"}, 0, 1), "")

    def test_unknown_constants_are_zeros_too(self):
        b, op = block(lambda b, d: b.scale(d, b.param("c", 4, flags=" frozen constant")))
        self.assertEqual(judge(b, success(b, op, "open-set"), 0, 1), "")
        wrong = judge(b, {**PLAIN, "verdict": "rejected"}, 0, 1)
        self.assertEqual(wrong, "", "with zeros, no patch is exact")

    def test_planted(self):
        """Of the opposite of each claim about random blocks nearly all are found to be false. (Where one number of a
        block has the right side nearly always, or a search misses the patch, that is not seen.)"""
        found, planted = collections.Counter(), collections.Counter()
        with tempfile.TemporaryDirectory() as folder:
            for by_layer in (False, True):
                makers = [Maker(seed, by_layer) for seed in range(96)]
                for maker in makers:
                    maker.make()
                for maker, layer, claim in claims_of(CTXC, folder, makers, by_layer):
                    if opposite := opposite_of(claim):
                        planted[claim["verdict"]] += 1
                        found[claim["verdict"]] += bool(judge(maker.block, opposite, layer, 1))
        for verdict, count in planted.items():
            self.assertGreater(count, 9, verdict)  # else it would say little
            self.assertGreaterEqual(found[verdict], 0.85 * count, verdict)

    def test_patches_that_are_far(self):
        """A length by an exponential, from where it underflows; the root of a number that is nearly zero; a cube, flat at zero; a cube root of what is large; a ninth power in a
        direction that another patch makes longer."""
        with tempfile.TemporaryDirectory() as folder:
            for seed, by_layer in ((6037923, True), (6052387, False), (7007082, False), (11741758, True), (12879035, False), (14569584, False)):
                maker = Maker(seed, by_layer)
                maker.make()
                for _, layer, claim in claims_of(CTXC, folder, [maker], by_layer):
                    self.assertEqual(judge(maker.block, claim, layer, seed), "")

    def test_verdicts(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numpy_verdicts.py")
        done = subprocess.run([sys.executable, script, CTXC, "0", "64"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("  64 cases\n", done.stdout)
        self.assertIn("  0 false verdicts\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
