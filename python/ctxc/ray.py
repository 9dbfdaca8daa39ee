"""Many prompts on Ray Data: actors hold the model, Ray gives them rows, and starts another where one is lost.

    rows = ray.data.read_json("prompts.jsonl")
    ctxc.ray.patches(rows, "gemma-3-270m", make=["metrics"], concurrency=(1, 8)).write_parquet("records")
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Union

import pyarrow as pa
import ray.data

import ctxc.batch

# Columns of a row that say what is asked for (docs/batch.md); others are carried along.
ASKING = ("prompt", "tokens", "messages", "keep", "positions", "make")
# Columns of a batch's records that mean nothing outside of its directory, or are the row's own.
OWN = ("line", "id", "tokens", "kept", "shard")


class _Patches:
    """What an actor does: the model is loaded once."""

    def __init__(self, model: str, options: Mapping[str, Any], make: Sequence[str], positions: str):
        self.model = ctxc.load(model, **options)
        self.make, self.positions = list(make), positions

    def __call__(self, rows: pa.Table) -> pa.Table:
        asked = [{name: row[name] for name in ASKING if row.get(name) is not None} for row in rows.to_pylist()]
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "batch")
            ctxc.batch.run(self.model, asked, made, make=self.make, positions=self.positions,
                           window=max(1, len(asked)))
            records = list(ctxc.batch.records(made))
            patches = [self._bytes(made, record, folder) for record in records]
        table = rows.take([record["line"] - 1 for record in records])
        for field in ctxc.batch.schema():
            if field.name not in OWN:
                column = pa.array([record[field.name] for record in records], field.type)
                table = table.append_column(field.name, column)
        return table.append_column("patch", pa.array(patches, pa.binary()))

    @staticmethod
    def _bytes(made: str, record: Mapping[str, Any], folder: str) -> Union[bytes, None]:
        if record["shard"] is None:
            return None
        path = os.path.join(folder, "patch.safetensors")
        ctxc.batch.of_record(made, record).save(path)
        with open(path, "rb") as file:
            return file.read()


def patches(dataset: ray.data.Dataset, model: Union[str, os.PathLike[str]], *, make: Sequence[str] = ("patch",),
            positions: str = "last", options: Mapping[str, Any] | None = None, batch_size: int = 64,
            concurrency: Union[int, tuple[int, int]] = 1, **resources: Any) -> ray.data.Dataset:
    """A dataset with one row for each patched position of each row of `dataset`, and one for each row with an error.

    The columns `prompt`, `tokens` or `messages`, `keep`, `positions` and `make` of a row mean the same as in a line of
    `ctxc batch`; null means that the line lacks it. The result has the row's columns, the columns of a batch's records,
    and `patch`, the bytes of a patch file, or null if no patch was made. Rows of a batch with a common beginning are
    read together, so that a dataset that is sorted by its prompts is done faster.

    model: a path that exists on every node. options: for ctxc.load. concurrency: the number of actors, or their least
    and greatest number. resources: num_cpus, memory and other arguments of Dataset.map_batches, for each actor.
    """
    clash = {field.name for field in ctxc.batch.schema()} - set(OWN) | {"patch"}
    taken = sorted(clash & set(dataset.columns() or ()))
    if taken:
        raise ctxc.BadInput(f"dataset: has columns that the result has too: {', '.join(taken)}; rename them")
    return dataset.map_batches(_Patches, batch_format="pyarrow", batch_size=batch_size, concurrency=concurrency,
                               fn_constructor_args=(os.fspath(model), dict(options or {}), list(make), positions),
                               **resources)
