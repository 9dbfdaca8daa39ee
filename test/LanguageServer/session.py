#!/usr/bin/env python3
"""A session with ctxc-lsp-server, as an editor would have it.

  session.py SERVER [--plugin FILE.so]

With --plugin, the gates dialect of examples/03-an-op-of-your-own is used as well.
"""

import argparse
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from speak import Server

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
BLOCK = (EXAMPLES / "01-your-own-block/block.mlir").read_text()
LAYERS = (EXAMPLES / "01-your-own-block/two-layers.mlir").read_text()
GATES = (EXAMPLES / "03-an-op-of-your-own/highway.mlir").read_text()
ARGS = None


def place(text, needle, inside=0):
    """Line and character, from 0, of `needle` in `text`."""
    at = text.index(needle) + inside
    return {"line": text.count("\n", 0, at), "character": at - text.rfind("\n", 0, at) - 1}


class Session(unittest.TestCase):
    def setUp(self):
        self.server, self.version = Server(self.command()), 0
        self.told = self.server.request("initialize", processId=None, rootUri=None,
                                        capabilities={})["capabilities"]
        self.server.notify("initialized")

    def tearDown(self):
        self.assertEqual(self.server.end(), 0)

    @staticmethod
    def command():
        return [ARGS.server]

    def open(self, text, uri="file:///block.mlir"):
        self.uri, self.version = uri, 1
        document = {"uri": uri, "languageId": "mlir", "version": 1, "text": text}
        self.server.notify("textDocument/didOpen", textDocument=document)
        return self.server.diagnostics(uri, 1)

    def change(self, text):
        self.version += 1
        self.server.notify("textDocument/didChange",
                           textDocument={"uri": self.uri, "version": self.version},
                           contentChanges=[{"text": text}])
        return self.server.diagnostics(self.uri, self.version)

    def at(self, method, text, needle, inside=0):
        return self.server.request(f"textDocument/{method}", textDocument={"uri": self.uri},
                                   position=place(text, needle, inside))


class XF(Session):
    def test_what_the_server_can_do(self):
        self.assertTrue(self.told["hoverProvider"])
        self.assertTrue(self.told["definitionProvider"])

    def test_a_valid_block_has_no_diagnostics(self):
        self.assertEqual(self.open(BLOCK), [])

    def test_a_verifier_error_stands_at_its_op_and_goes_when_it_is_mended(self):
        wrong = BLOCK.replace("eps 1.0e-6", "eps -1.0", 1)
        found, = self.open(wrong)
        self.assertIn("eps", found["message"])
        self.assertEqual(found["severity"], 1)
        self.assertEqual(found["range"]["start"], place(wrong, "%z = xf.normalize", 5))
        self.assertEqual(self.change(BLOCK), [])

    def test_a_half_typed_op_is_an_error_at_its_place(self):
        typed = BLOCK.replace("xf.activation gelu_tanh", "xf.activation gelu_tan")
        found, = self.open(typed)
        self.assertIn("gelu_tanh", found["message"])
        self.assertEqual(found["range"]["start"]["line"], place(typed, "gelu_tan")["line"])

    def test_a_wrong_layer_names_its_block(self):
        text = (BLOCK + LAYERS).replace("@mine(%x1)", "@yours(%x1)")
        found, = self.open(text)
        self.assertIn("names 'yours', which is no xf.block of this module", found["message"])
        self.assertEqual(found["range"]["start"], place(text, "%x2 = xf.layer", 6))

    def test_hover_shows_the_op(self):
        self.open(BLOCK)
        shown = self.at("hover", BLOCK, "xf.normalize rms %d", 4)["contents"]["value"]
        self.assertIn("xf.normalize", shown)
        self.assertIn("tensor<48xf32>", shown)

    def test_definition_of_a_value_and_of_a_block(self):
        text = BLOCK + LAYERS
        self.open(text)
        found, = self.at("definition", text, "%u : tensor<96xf32>")
        self.assertEqual(found["range"]["start"], place(text, "%u = "))
        found, = self.at("definition", text, "@mine(%x1)", 2)
        self.assertEqual(found["uri"], self.uri)
        self.assertEqual(found["range"]["start"]["line"], place(text, "@mine(%x:")["line"])

    def test_completion_of_ops_of_kinds_and_of_values(self):
        for typed, needle, wanted in (("xf.", "xf.normalize rms %d", {"normalize", "scale", "attention"}),
                                      ("xf.normalize ", "xf.normalize rms %d", {"rms", "layer"}),
                                      ("xf.activation ", "xf.activation gelu_tanh", {"silu", "gelu_tanh"}),
                                      ("xf.linear %", "xf.linear %D", {"%D", "%U", "%h"})):
            at = place(BLOCK, needle, len(typed))
            self.open(BLOCK.replace(needle, typed, 1), f"file:///{at['line']}.{at['character']}.mlir")
            shown = self.server.request("textDocument/completion", textDocument={"uri": self.uri}, position=at,
                                        context={"triggerKind": 1})
            self.assertLessEqual(wanted, {each["label"] for each in shown["items"]}, typed)


class Verdicts(Session):
    """What `ctxc check` says, while one types."""

    BARE = BLOCK.replace("""  %m = xf.param "scale.weight" : tensor<48xf32>
  %s = xf.scale %n by %m offset 1.0 : tensor<48xf32>, tensor<48xf32>
  %y = xf.add %v, %s : tensor<48xf32>
""", "  %y = xf.add %v, %n : tensor<48xf32>\n")

    def test_a_rejection_stands_at_its_op_and_goes_when_it_is_mended(self):
        found, = self.open(self.BARE)
        self.assertEqual((found["severity"], found["source"], found["code"]), (1, "ctxc", "bounded-output"))
        self.assertEqual(found["range"]["start"], place(self.BARE, "%n = xf.normalize", 5))
        self.assertEqual(found["range"]["end"], place(self.BARE, "%n = xf.normalize", 17))
        self.assertIn("no patch moves the output by more than", found["message"])
        self.assertIn("way out: add a trainable scale after this norm", found["message"])
        self.assertTrue(found["relatedInformation"])
        self.assertEqual(self.change(BLOCK), [])

    def test_an_error_comes_before_the_verdict(self):
        self.open(self.BARE)
        found, = self.change(self.BARE.replace("%n : tensor", "%nn : tensor"))
        self.assertIn("undeclared", found["message"])
        self.assertNotIn("code", found)

    def test_hover_shows_the_rules_page_and_the_blocks_report(self):
        self.open(self.BARE)
        shown = self.at("hover", self.BARE, "%n = xf.normalize", 6)["contents"]["value"]
        self.assertIn("tensor<48xf32>", shown)  # MLIR's own
        self.assertIn("bounded-output", shown)
        self.assertIn("Theorem 4", shown)
        shown = self.at("hover", self.BARE, "xf.block @mine", 3)["contents"]["value"]
        self.assertIn("block 'mine': rejected [bounded-output]", shown)

    def test_a_quick_fix_mends_the_block(self):
        found, = self.open(self.BARE)
        actions = self.server.request("textDocument/codeAction", textDocument={"uri": self.uri}, range=found["range"],
                                      context={"diagnostics": [found]})
        fixes = [each for each in actions if each["kind"] == "quickfix" and "trainable scale" in each["title"]]
        edit, = fixes[0]["edit"]["changes"][self.uri]
        lines = self.BARE.splitlines(keepends=True)
        start, end = edit["range"]["start"], edit["range"]["end"]
        self.assertEqual((start["character"], end["character"]), (0, 0))
        mended = "".join(lines[:start["line"]]) + edit["newText"] + "".join(lines[end["line"]:])
        self.assertIn('%n = xf.scale %n_bare by %n_scale', mended)
        self.assertEqual(self.change(mended), [])

    def test_many_changes_end_in_the_last_verdict(self):
        self.open(BLOCK)
        for _ in range(5):
            for text in (BLOCK, self.BARE):
                self.version += 1
                self.server.notify("textDocument/didChange", textDocument={"uri": self.uri, "version": self.version},
                                   contentChanges=[{"text": text}])
        found, = self.server.diagnostics(self.uri, self.version)
        self.assertEqual(found["code"], "bounded-output")


class Plugin(Session):
    @staticmethod
    def command():
        return [ARGS.server, f"--load-dialect-plugin={ARGS.plugin}"]

    def setUp(self):
        if not ARGS.plugin:
            self.skipTest("no plugin is given")
        super().setUp()

    def test_an_op_of_the_plugin(self):
        self.assertEqual(self.open(GATES), [])
        self.assertIn("gates.mix", self.at("hover", GATES, "gates.mix", 3)["contents"]["value"])

    def test_its_verifier(self):
        wrong = GATES.replace("gates.mix %d, %v by %s", "gates.mix %h, %v by %s")
        found, = self.open(wrong)
        self.assertEqual(found["range"]["start"]["line"], place(wrong, "gates.mix")["line"])


class CommandLine(unittest.TestCase):
    def test_a_plugin_that_is_not_there(self):
        server = Server([ARGS.server, "--load-dialect-plugin", "/nowhere.so"])
        with server.process:
            self.assertEqual(server.process.wait(timeout=60), 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("--plugin", help="the gates plugin")
    ARGS = parser.parse_args()
    unittest.main(argv=sys.argv[:1])
