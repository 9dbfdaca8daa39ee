"""Many prompts: what `ctxc batch` does, and what its directories hold.

    counts = ctxc.batch.run(model, [{"prompt": "And David said"}, {"tokens": [2, 5, 7]}], "patches")
    for record in ctxc.batch.records("patches"): ...
    python -m ctxc.batch patches -o records.parquet     # needs pyarrow
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from ctxc import _core
from ctxc._context import Progress, _told
from ctxc._errors import BadInput, Error
from ctxc._model import Model
from ctxc._patch import Patch

if TYPE_CHECKING:
    import pyarrow

PathLike = Union[str, os.PathLike[str]]
Lines = Iterable[Mapping[str, Any]]

INTEGERS = ("line", "position", "token", "tokens", "kept", "harmless", "harmful", "next", "patchedNext",
            "unpatchedNext")
TEXTS = ("id", "error", "shard")
NUMBERS = ("matrixNorm", "matrixRelative", "vectorNorm", "vectorRelative", "replayError", "linf", "allowedLinf",
           "totalVariation", "hellinger", "rankCorrelation", "top1Difference", "unpatchedLinf",
           "unpatchedTotalVariation")
LISTS = ("layerMatrixNorm", "layerMatrixRelative", "layerVectorNorm", "layerVectorRelative", "layerReplayError")
COUNTS = ("layerHarmless", "layerHarmful")


def run(model: Model, prompts: Union[PathLike, Lines], directory: PathLike, *, make: Sequence[str] = ("patch",),
        positions: str = "last", part: tuple[int, int] = (1, 1), window: int = 64,
        shard_bytes: int = 64 << 20, progress: Progress = False) -> dict[str, int]:
    """Does what `ctxc batch` does: adds to `directory` those results for `prompts`, a file or objects, that it lacks.
    progress: True shows a bar if tqdm is installed; a function is called with the number of lines done.

    Returns the numbers of records, patches, errors, compared and unequal ones in the part's files; the number of added
    records; and the numbers of tokens in the prompts and of tokens that were read. Raises BadInput if the directory
    belongs to another batch.

    >>> counts = ctxc.batch.run(model, [{"prompt": "And David said"}, {"prompt": ""}], folder + "/run")
    >>> counts["patches"], counts["errors"]
    (1, 1)
    """
    if positions not in ("last", "all"):
        raise BadInput(f"positions: found {positions!r}, expected 'last' or 'all'")
    if isinstance(prompts, (str, os.PathLike)):
        with _told(progress, None, "line") as tell:
            counts = model._core.batch(os.fspath(prompts), os.fspath(directory), list(make), positions == "all", part,
                                       window, shard_bytes, tell)
        model._tell()
        return counts
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        for line in prompts:
            file.write(json.dumps(line) + "\n")
        file.flush()
        return run(model, file.name, directory, make=make, positions=positions, part=part, window=window,
                   shard_bytes=shard_bytes, progress=progress)


def records(directory: PathLike) -> Iterator[dict[str, Any]]:
    """Yields the records of a batch, merged or not.

    >>> counts = ctxc.batch.run(model, [{"tokens": [2, 5, 7], "positions": "all"}, {}], folder + "/records")
    >>> [(record["line"], record["position"]) for record in ctxc.batch.records(folder + "/records")]
    [(1, 1), (1, 2), (2, None)]
    """
    path = Path(directory)
    if not (path / "batch.json").exists():
        raise BadInput(f"{path}: has no batch.json, and is no directory of a batch")
    merged = path / "records.jsonl"
    for file in [merged] if merged.exists() else sorted(path.glob("records-*.jsonl")):
        with open(file, encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def patch(directory: PathLike, line: int, position: Optional[int] = None) -> Patch:
    """The patch of a line, or of one position of a line with several patches. Raises BadInput if there is none.

    >>> counts = ctxc.batch.run(model, [{"tokens": [2, 5, 7]}], folder + "/patch")
    >>> ctxc.batch.patch(folder + "/patch", 1).origin.position
    2
    """
    found = [record for record in records(directory)
             if record["line"] == line and record["shard"] and position in (None, record["position"])]
    if len(found) != 1:
        raise BadInput(f"{os.fspath(directory)}: has {len(found)} patches of line {line}"
                       + ("; expected a position" if found else ""))
    return of_record(directory, found[0])


def of_record(directory: PathLike, record: Mapping[str, Any]) -> Patch:
    """The patch that a record names.

    >>> counts = ctxc.batch.run(model, [{"tokens": [2, 5, 7]}], folder + "/of")
    >>> [ctxc.batch.of_record(folder + "/of", record).origin.position for record in ctxc.batch.records(folder + "/of")]
    [2]
    """
    shard = os.path.join(directory, record["shard"])
    return Patch._of_core(_core.patch_from_shard(shard, record["line"], record["position"]))


def schema() -> pyarrow.Schema:
    """The Arrow schema of the records. It needs pyarrow.

    >>> ctxc.batch.schema().field("position").type  # doctest: +SKIP
    DataType(int64)
    """
    import pyarrow as pa

    of = ([(name, pa.int64()) for name in INTEGERS] + [(name, pa.string()) for name in TEXTS]
          + [("verified", pa.bool_())] + [(name, pa.float64()) for name in NUMBERS]
          + [(name, pa.list_(pa.float64())) for name in LISTS] + [(name, pa.list_(pa.int64())) for name in COUNTS])
    return pa.schema(of)


def to_parquet(directory: PathLike, path: PathLike, rows: int = 10000) -> int:
    """Writes the records as a Parquet file by pyarrow, with at most `rows` of them in memory; if it fails, no file is
    left. Returns the number of records. Raises BadInput if the directory has no batch.

    >>> ctxc.batch.to_parquet(folder + "/run", folder + "/records.parquet")  # doctest: +SKIP
    2
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    count = 0
    unfinished = f"{os.fspath(path)}.tmp-{os.getpid()}"
    try:
        with parquet.ParquetWriter(unfinished, schema()) as writer:
            group: list[dict[str, Any]] = []
            for record in records(directory):
                group.append(record)
                if len(group) == rows:
                    writer.write_table(pa.Table.from_pylist(group, schema()))
                    count += len(group)
                    group = []
            writer.write_table(pa.Table.from_pylist(group, schema()))
            count += len(group)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ctxc.batch", description="A batch's records as Parquet.")
    parser.add_argument("directory")
    parser.add_argument("-o", dest="output", required=True, metavar="FILE.parquet")
    options = parser.parse_args()
    try:
        count = to_parquet(options.directory, options.output)
    except Error as error:
        print(f"ctxc: error: {error}", file=sys.stderr)
        return 2
    except ImportError:
        print("ctxc: error: Parquet needs pyarrow: pip install pyarrow", file=sys.stderr)
        return 2
    print(f"{options.output}: {count} records")
    return 0


if __name__ == "__main__":
    sys.exit(main())
