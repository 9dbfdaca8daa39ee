"""What the package says: errors, warnings, docstrings, its page and its stubs."""
import pickle
from pathlib import Path

import ctxc
import ctxc.batch
import numpy as np
from core_case import MODEL, PROMPT, ROOT, Case


class Words(Case):
    def test_errors_say_what_to_do(self):
        for wrong, text in [
                (lambda: ctxc.load("/nowhere"), "/nowhere: no such file"),
                (lambda: ctxc.load(MODEL, update="fast"), "update: found 'fast', expected one of"),
                (lambda: ctxc.Context(self.model, [1]), "at least two"),
                (lambda: ctxc.Context(self.model, [1, 10 ** 9]), "token 1 is 1000000000"),
                (lambda: ctxc.Context(self.model, [1, 2, 3], keep=[2]), "kept|keep"),
                (lambda: ctxc.Patch.load(MODEL / "config.json"), "config.json"),
                (lambda: ctxc.inspect(self.model, PROMPT, by="word"), "expected 'token' or 'sentence'"),
        ]:
            with self.assertRaisesRegex(ctxc.BadInput, text):
                wrong()
        with self.assertRaisesRegex(TypeError, "unknown option 'treads'"):
            ctxc.load(MODEL, treads=2)
        other = ctxc.Context(self.model, PROMPT).patch()
        stranger = ctxc.Patch(dict(other), ctxc._patch.Origin("0" * 64, (1, 2), 1, ()))
        for use in (lambda: other + stranger, lambda: ctxc.verify(self.model, patch=stranger),
                    lambda: ctxc.Context(self.model, PROMPT).logits(stranger)):
            with self.assertRaisesRegex(ctxc.Mismatch, "two models|another model"):
                use()

    def test_a_refusal_has_its_diagnostics(self):
        source = self.file("refused.mlir")
        source.write_text((ROOT / "test/python/Inputs/refused.mlir").read_text())
        self.assertFalse(ctxc.check(source).patchable)
        with self.assertRaises(ctxc.Refused) as raised:
            ctxc.Context(ctxc.load(source, seed=1), [1, 2, 3])
        errors = [each for each in raised.exception.diagnostics if each["severity"] == "error"]
        self.assertTrue(errors)
        self.assertEqual(errors[0]["file"], str(source))
        self.assertGreater(errors[0]["line"], 0)
        self.assertIn(f"[{errors[0]['rule']}]", errors[0]["message"])
        self.assertNotIsInstance(raised.exception, ctxc.Undecided)
        self.assertEqual(pickle.loads(pickle.dumps(raised.exception)).diagnostics, raised.exception.diagnostics)

    def test_what_is_undecided_is_not_refused_for_good(self):
        with self.assertRaisesRegex(ctxc.Undecided, "undecided"):
            ctxc.Context(ctxc.load(ROOT / "test/python/Inputs/undecided.mlir", seed=1), [1, 2, 3])

    def test_what_the_library_says_beside_errors(self):
        tokens = [10 + at % 900 for at in range(600)]
        with self.assertWarnsRegex(UserWarning, "positions"):  # more than the model was made for
            ctxc.Context(ctxc.load(MODEL), tokens)
        context = ctxc.Context(ctxc.load(MODEL), tokens[:500])
        with self.assertWarnsRegex(UserWarning, "positions"):
            context.extend(tokens[500:])

    def test_pages_are_true(self):
        import doctest

        page = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False)
        self.assertEqual((page.failed, page.attempted > 10), (0, True))
        self.assertEqual(doctest.testmod(ctxc).failed, 0)

    def test_docstrings_are_true(self):
        import doctest

        model = ctxc.load("examples/models/gemma3-kjv-1m")
        context = ctxc.Context(model, PROMPT)
        names = {"ctxc": ctxc, "np": np, "model": model, "context": context, "patch": context.patch(),
                 "folder": self.folder.name,
                 "made": ctxc.distil(model, context="In the beginning God created the heaven.", tokens=120, length=12,
                                     rank=2, anyway=True),
                 "joint": ctxc.joint_patch(model, "In the beginning God created the heaven.", [[7, 8, 9, 10, 11]])}
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        for module in (ctxc._model, ctxc._context, ctxc._patch, ctxc._report, ctxc._errors, ctxc._distil, ctxc._joint,
                       ctxc.batch):
            with self.subTest(module.__name__):
                found = doctest.testmod(module, extraglobs=names, optionflags=flags)
                self.assertEqual((found.failed, found.attempted > 2), (0, True))

    def test_every_public_name_has_an_example(self):
        for name in ctxc.__all__:
            thing = getattr(ctxc, name)
            if name == "__version__":
                continue
            for place, each in [(name, thing)] + members(thing):
                self.assertIn(">>>", each.__doc__ or "", f"ctxc.{place} has no example")

    def test_stubs_name_what_the_extension_has(self):
        import ast

        source = (Path(ctxc.__file__).parent / "_core.pyi").read_text()
        stubs = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)]
        self.assertEqual({each.name for each in stubs},
                         {name for name in dir(ctxc._core) if isinstance(getattr(ctxc._core, name), type)})
        for stub in stubs:
            members = {each.name for each in stub.body if isinstance(each, ast.FunctionDef)}
            found = {name for name in dir(getattr(ctxc._core, stub.name)) if not name.startswith("__")}
            self.assertEqual(members, found, stub.name)


def members(thing):
    """The public methods and properties of a class."""
    if not isinstance(thing, type):
        return []
    return [(f"{thing.__name__}.{name}", each) for name, each in vars(thing).items()
            if not name.startswith("_") and (callable(each) or isinstance(each, (property, classmethod)))]
