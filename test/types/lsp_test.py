"""`python -m ctxc.lsp` beside a person who saves her files: a session as an editor would have it.

  lsp_test.py CTXC"""
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/LanguageServer"), str(Path(__file__).parent)]

import watch_test  # noqa: E402
from speak import Server  # noqa: E402

CTXC, MINE, PARTS = watch_test.CTXC, watch_test.MINE, watch_test.PARTS
BARE, SCALED = "x + normed(mlp(x))", "normed(x + mlp(x))"


class Session(unittest.TestCase):
    save = watch_test.Watched.save

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.save("mine.py", 'print("as it is imported")\n' + MINE)
        self.save("parts.py", PARTS)
        os.environ["PYTHONPATH"] = str(ROOT / "python")
        self.server = Server([sys.executable, "-m", "ctxc.lsp", "--ctxc", CTXC], timeout=120)
        told = self.server.request("initialize", processId=None, rootUri=None, capabilities={})["capabilities"]
        self.assertTrue(told["hoverProvider"] and told["textDocumentSync"]["openClose"])
        self.server.notify("initialized")

    def tearDown(self):
        self.assertEqual(self.server.end(), 0)

    def uri(self, name):
        return (self.folder / name).as_uri()

    def open(self, name):
        self.server.notify("textDocument/didOpen", textDocument={
            "uri": self.uri(name), "languageId": "python", "version": 1, "text": (self.folder / name).read_text()})

    def told(self, name):
        return self.server.diagnostics(self.uri(name), None)

    def test_each_save(self):
        self.open("mine.py")
        found, = self.told("parts.py")
        self.assertEqual(self.told("mine.py"), [])
        self.assertEqual((found["severity"], found["code"]), (1, "bounded-output"))
        line = PARTS.splitlines()[4]
        self.assertEqual(found["range"], {"start": {"line": 4, "character": line.index("z *")}, "end": {"line": 4, "character": len(line)}})
        self.assertIn("way out: add a trainable scale after this", found["message"])
        self.assertIn(self.uri("parts.py"), [each["location"]["uri"] for each in found["relatedInformation"]])
        page = self.server.request("textDocument/hover", textDocument={"uri": self.uri("parts.py")}, position={"line": 4, "character": 12})
        self.assertIn("Theorem 4", page["contents"]["value"])
        # Mended, broken, and as it was, lower down.
        self.save("parts.py", PARTS.replace(BARE, SCALED))
        self.assertEqual(self.told("parts.py"), [])
        self.save("mine.py", MINE.replace("def forward(self, x):", "def forward(self, x:"))
        found = [each for _ in range(2) for each in self.told("mine.py")]
        self.assertEqual({each["code"] for each in found if each["severity"] == 2}, {"conditional-obligation"})  # of what was mended
        wrong, = [each for each in found if each["severity"] == 1]
        self.assertEqual(wrong["range"]["start"]["line"], 9)
        self.assertIn("SyntaxError", wrong["message"])
        self.save("mine.py", MINE)
        self.assertEqual({each["severity"] for each in self.told("mine.py")}, {2})
        self.save("parts.py", "# Zwei Zeilen für\n# mehr.\n" + PARTS)
        self.assertEqual(self.told("parts.py")[0]["range"]["start"]["line"], 6)
        self.server.notify("textDocument/didClose", textDocument={"uri": self.uri("mine.py")})
        self.assertEqual(self.told("parts.py"), [])

    def test_two_files_of_one_name(self):
        """Each is judged as its own, and a file without the function is not judged."""
        (self.folder / "other").mkdir()
        (self.folder / "other/mine.py").write_text(
            "import torch\n\n\ndef build():\n    return torch.nn.Linear(8, 8), torch.zeros(2, 13, 8)\n")
        self.open("parts.py")
        self.open("other/mine.py")
        found, = self.told("other/mine.py")
        self.assertEqual(found["range"]["start"]["line"], 3)
        self.assertIn("expected (1, tokens, …)", found["message"])
        self.open("mine.py")
        self.assertEqual(self.told("parts.py")[0]["code"], "bounded-output")


if __name__ == "__main__":
    unittest.main()
