"""Code that torch.export does not follow, in the form that the exporter gives it.

  programs_test.py PACKAGE"""
import unittest

import torch
import package  # noqa: F401 — before ctxc, which it finds

from ctxc import _known, export


class Recent(torch.nn.Module):
    """Adds up the last tokens before each, which it looks for in a mask, as an indexer does."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.embed = torch.nn.Embedding(128, 4)

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        sees = position_ids[:, :, None] >= position_ids[:, None, :]
        rows = []
        for query in range(x.shape[1]):
            seen = torch.nonzero(sees[0, query]).flatten()
            if seen.shape[0] // 2 > 0:  # torch.export does not follow this
                rows.append(x[0].index_select(0, seen[-2:]).sum(0))
            else:
                rows.append(x[0, query])
        return self.linear(torch.stack(rows)[None])


class ByLanguage(torch.nn.Module):
    """An adapter for the sequences of one language, which is that of all or of none."""

    def __init__(self, language):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.embed = torch.nn.Embedding(128, 4)
        self.language = language
        self.is_random = False

    def forward(self, input_ids):
        x = self.embed(input_ids)
        numbers = torch.rand(x.shape[0]) if self.is_random else torch.ones(x.shape[0])
        is_it = self.language * numbers == 0
        y = torch.zeros_like(x)
        y[is_it] = self.linear(x[is_it])
        return x + y


class NormOfHeads(torch.nn.Module):
    """Divides each head by its root mean square, with heads and tokens in one axis, as a gated norm does."""

    def __init__(self, dim=1, adds_up=False):
        super().__init__()
        self.embed = torch.nn.Embedding(128, 12)
        self.scale = torch.nn.Parameter(torch.rand(4))
        self.dim, self.adds_up = dim, adds_up

    def forward(self, input_ids):
        x = self.embed(input_ids)
        rows = x.reshape(-1, 4)
        rows = self.scale * rows * torch.rsqrt((rows * rows).mean(self.dim, keepdim=True) + 1e-6)
        rows = rows * torch.nn.functional.silu(x.view(*x.shape[:2], 3, 4).reshape(-1, 4))
        return rows.sum(0) if self.adds_up else rows.reshape(x.shape)


class Programs(unittest.TestCase):
    def program_of(self, module, names):
        inputs = [torch.zeros(1, 13, dtype=torch.long) for _ in names]
        return export.exported(module.eval(), inputs, names)

    def test_known_masks(self):
        module = Recent()
        program = self.program_of(module, ["input_ids", "position_ids"])
        ids, positions = torch.randint(0, 128, (1, 13)), torch.arange(13)[None]
        found = program.module()(ids, positions)
        self.assertTrue(torch.equal(found, module(ids, positions)))
        self.assertNotIn("forward", vars(module))
        # The last row's indices are no stored numbers: 13 of them would be taken for tokens.
        self.assertNotIn(13, [size for value in program.constants.values() for size in value.shape])

    def test_unknown_masks(self):
        module = Recent()
        with self.assertRaises(Exception):
            self.program_of(module, ["input_ids", "other"])  # no positions, so that nothing is known of them

    def test_masks_of_data(self):
        positions, data = torch.arange(13)[None], torch.randn(1, 13)

        def is_known(change):
            with _known.KnownValues(positions) as values:
                mask = positions > 3
                part = mask[:, 2:]
                self.assertIn(id(part), values.known)
                changed = change(mask)
                del part  # a view of what was written
                return id(changed) in values.known

        def stored(mask):
            mask[0, 1:] = data[0, 1:] > 0
            return mask

        def written(mask):
            mask[:, 1:].copy_(data[:, 1:] > 0)
            return mask

        self.assertTrue(is_known(lambda mask: mask & (positions < 7)))
        for change in (stored, written, lambda mask: mask.__iand__(data > 0), lambda mask: mask.logical_and_(data > 0),
                       lambda mask: torch.rand_like(mask.float()) > 0.5,
                       lambda mask: torch.logical_and(data > 0, data < 1, out=mask)):
            self.assertFalse(is_known(change))

    def ranks_of_means(self, module):
        program = self.program_of(module, ["input_ids"])
        ids = torch.randint(0, 128, (1, 5))
        self.assertTrue(torch.equal(program.module()(ids), module(ids)))
        return [node.meta["val"].dim() for node in program.graph.nodes if str(node.target) == "aten.mean.dim"]

    def test_merged_axes(self):
        self.assertEqual(self.ranks_of_means(NormOfHeads()), [4])
        self.assertEqual(self.ranks_of_means(NormOfHeads(dim=-1)), [4])

    def test_joined_rows(self):
        self.assertEqual(self.ranks_of_means(NormOfHeads(dim=0)), [2])  # over all tokens
        self.assertEqual(self.ranks_of_means(NormOfHeads(adds_up=True)), [2])

    def test_full_masks(self):
        module = ByLanguage(0)
        program = self.program_of(module, ["input_ids"])
        names = [str(node.target) for node in program.graph.nodes]
        self.assertFalse([name for name in names if "index" in name or "assert_scalar" in name])
        ids = torch.randint(0, 128, (1, 5))
        self.assertTrue(torch.equal(program.module()(ids), module(ids)))

    def test_other_masks(self):
        for language, is_random in ((1, False), (0, True)):
            module = ByLanguage(language)
            module.is_random = is_random
            names = [str(node.target) for node in self.program_of(module, ["input_ids"]).graph.nodes]
            self.assertTrue([name for name in names if "index_put" in name])


if __name__ == "__main__":
    unittest.main()
