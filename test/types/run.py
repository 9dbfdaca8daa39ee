#!/usr/bin/env python3
"""Every causal model type of transformers: a small model is exported, checked, and its verdict compared with numbers.

  run.py CTXC PACKAGE FOLDER [--types TYPE…] [--page PAGE] [--against PAGE] [--fresh] [--no-numbers]

PACKAGE is the folder of the Python package. FOLDER keeps the exported programs and, for each type, what was found
(TYPE.json), and is gone on with; --fresh exports again. --page writes the table (docs/torch-types.md), and --against
compares with it. Fails where numbers contradict a verdict, where it depends on names, on the order of ops or on PyTorch's
own decompositions, or where a type has not the page's verdict."""
import argparse
import copy
import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from unittest import mock

os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch  # noqa: E402

import numbers_of  # noqa: E402
import page  # noqa: E402
import patches  # noqa: E402
import variant  # noqa: E402

LIMIT = 900  # seconds for a type


def short(error):
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:200]


def decomposed_of(path):
    return path.with_suffix(".decomposed.ctxc")


def export(config, path, with_decompositions):
    import ctxc.export as exporter
    # As a whole or not at all, so that a run that was stopped goes on.
    model = numbers_of.random_model(config).float()
    with mock.patch.object(exporter, "write_program", wraps=exporter.write_program) as writes:
        _, program = exporter.export_config(config, path.with_suffix(".part"), model)
    if with_decompositions:
        _, _, roles, shared, _, length, *_ = writes.call_args.args
        variant.write_decomposed(program, decomposed_of(path), roles, shared, length)
    os.replace(path.with_suffix(".part"), path)
    inputs = sum(spec.kind.name == "USER_INPUT" for spec in program.graph_signature.input_specs)
    return sum(node.op == "call_function" for node in program.graph.nodes), inputs > 1


def checked(binary, program, *options):
    """The layers, with verdicts and plans; what keeps a block from a verdict; ops that no pattern knew."""
    run = subprocess.run([binary, "check", str(program), "--format", "json", *options], capture_output=True, text=True)
    if run.returncode > 1:
        said = run.stderr.strip().splitlines() or ["crash"]
        return {"reason": said[0].replace(str(program), program.name)}
    report = json.loads(run.stdout)
    text = subprocess.run([binary, "import", str(program)], capture_output=True, text=True).stdout
    calls = []
    for line in text.splitlines():
        call = re.search(r'xf\.layer @(\S+?)\(.* at "([^"]*)"', line)
        if call:
            bound = re.search(r"bind \{(.*?)\}", line)
            bind = dict(re.findall(r'"?([\w.]+)"? = "([^"]*)"', bound.group(1))) if bound else {}
            calls.append((call.group(2), bind))
    layers = [None] * len(calls)
    reasons = []
    for group in report["groups"]:
        plan = {side: [site["parameter"] for site in group[side]] for side in ("input", "output")}
        for index in group.get("layers", []):
            prefix, bind = calls[index]
            named = {side: [bind.get(name, prefix + name) for name in plan[side]] for side in plan}
            layers[index] = {"path": prefix.rstrip("."), "verdict": group["verdict"], "block": group["block"], **named}
        reasons += [cause["message"] for cause in group["causes"]]
    opaque = sorted(set(re.findall(r'graph\.opaque "([^"]*)" why "no pattern', text)))
    unshown = sorted(set(re.findall(r'graph\.opaque "([^"]*)" why "it is not shown', text)))
    return {"runs": how_it_runs(text), "layers": layers, "plans": sorted({" + ".join(plan_of(group)) for group in report["groups"]}),
            "sites": "all" if options else "mlp", "reasons": reasons, "opaque": opaque, "unshown": unshown,
            "blocks": len(report["groups"])}


def how_it_runs(text):
    """What keeps the imported model `text` from the kernels: ops that join tokens, and others, that only the exported
    program has; nothing where ctxc's own kernels run all of it."""
    kept = {"mixing": set(), "op": set()}
    for line in text.splitlines():
        part = re.search(r'(xf\.contextual|graph\.opaque) "([^"]*)"', line)
        if not part or 'why "it is not shown' in line:
            continue
        why = re.search(r'graph\.why = "([^"]*)"', line)
        is_mixing = part.group(1) == "xf.contextual"
        kept["mixing" if is_mixing else "op"].add((why.group(1) if why else "") if is_mixing else part.group(2))
    return {kind: sorted(ops) for kind, ops in kept.items()}


def plan_of(group):
    return [re.sub(r"\.weight$", "", site["parameter"]) for side in ("input", "output") for site in group[side]]


def parts_of(result):
    """The verdict and the plan of each layer, or why there are none."""
    return result.get("reason") or [
        layer and (layer["path"], layer["verdict"], sorted(layer["input"]), sorted(layer["output"]))
        for layer in result["layers"]]


def differences(binary, program, found, with_decompositions):
    """What else than the program changes a verdict or a plan: other names, another order of the same ops, and no
    weights; or PyTorch's own decompositions, in their order and in another."""
    options = ["--sites", "all"] if found["sites"] == "all" else []
    other, decomposed = program.with_suffix(".variant.ctxc"), decomposed_of(program)
    variants = {"names or order": (program, 1)}
    if with_decompositions:
        variants.update({"decompositions": (decomposed, None), "names or order of decomposed ops": (decomposed, 2)})
    differing = []
    for name, (source, seed) in variants.items():
        if seed:
            variant.write_variant(source, other, seed)
        again = checked(binary, other if seed else source, *options)
        if parts_of(again) != parts_of(found):
            differing.append(f"{name} ({page.verdict_of(again)})")
    other.unlink()
    return differing


def load_exporter():
    """What torch and transformers load when they are first used, so that children have it."""
    import ctxc.export as exporter
    from ctxc import small_configs
    small_configs.causal_types()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tempfile.TemporaryDirectory() as folder:
            exporter.export(torch.nn.Embedding(5, 3), [torch.zeros(1, 7, dtype=torch.long)], f"{folder}/first.ctxc")


def study(model_type, given):
    binary, folder, fresh = given.binary, given.folder, given.fresh
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    file, program = folder / f"{model_type}.json", folder / f"{model_type}.ctxc"
    row = json.loads(file.read_text()) if file.exists() and not fresh else {}
    row["type"] = model_type
    stage = "config"
    from ctxc import small_configs
    try:
        config = small_configs.small_config(model_type)
        stage = "export"
        if fresh or not program.exists():
            start = time.time()
            row["ops"], row["positions"] = export(copy.deepcopy(config), program, not given.no_decompositions)
            row["seconds"] = round(time.time() - start, 1)
        stage = "check"
        for key in ("reason", "stage"):
            row.pop(key, None)
        found = checked(binary, program)
        if not page.has_verdict(found) or page.verdict_of(found).startswith("rejected"):
            # What is no more than a mixer has nothing behind it that may be patched but for that itself.
            by_all = checked(binary, program, "--sites", "all")
            if page.has_verdict(by_all):
                found = by_all
        row.update(found)
        key = hashlib.sha256(json.dumps(found.get("layers")).encode()).hexdigest()
        if row.get("numbers_of") != key:
            for name in ("numbers", "numbers_of", "patch"):
                row.pop(name, None)
        if "reason" in found:
            row["stage"] = stage
        else:
            stage = "variants"
            row["differences"] = differences(binary, program, found, not given.no_decompositions)
        if "reason" not in found and not given.no_numbers:
            has_plans = found["layers"] and all(layer and layer["output"] for layer in found["layers"])
            if has_plans and not page.is_good(row):
                stage = "numbers"
                model = numbers_of.random_model(config)
                row["numbers"] = numbers_of.judge(model, row["positions"], found["layers"])
                row["numbers_of"] = key
            if has_plans and not page.is_good_patch(row):
                stage = "patch"
                sites = ["--sites", "all"] if found["sites"] == "all" else []
                row["patch"] = patches.judge(binary, program, numbers_of.random_model(config), row["positions"], sites)
    except BaseException as error:
        row["stage"], row["reason"] = stage, short(error)
        if os.environ.get("CTXC_TYPES_TRACE"):
            traceback.print_exc(file=sys.__stderr__)
    file.write_text(json.dumps(row, indent=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("package")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--types", nargs="*", default=[])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--no-numbers", action="store_true", help="compare verdicts alone")
    parser.add_argument("--no-decompositions", action="store_true", help="not those of PyTorch's own, which take longest")
    given = parser.parse_args()
    sys.path.insert(0, given.package)
    given.folder.mkdir(parents=True, exist_ok=True)
    import transformers
    from ctxc import small_configs
    load_exporter()
    types = given.types or small_configs.causal_types()
    failed = 0
    for model_type in types:
        start = time.time()
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT)
            study(model_type, given)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        file = given.folder / f"{model_type}.json"
        if status:
            file.write_text(json.dumps({"type": model_type, "stage": "ended", "reason": f"ended with status {status}"}))
        row = json.loads(file.read_text())
        good, patched = page.is_good(row), page.is_good_patch(row)
        differing = ", ".join(row.get("differences", []))
        failed += good is False or patched is False or bool(differing) or row.get("stage") == "variants"
        said = "" if good is None else "agrees" if good else f"IS NOT SO: {row['numbers']}"
        said += "" if patched is None else ", patched" if patched else f", NOT PATCHED: {row['patch']}"
        print(model_type, page.verdict_of(row), said,
              f"DEPENDS ON {differing}" if differing else "",
              "" if page.has_verdict(row) else page.obstacle(row), *row.get("opaque", []),
              f"{time.time() - start:.0f} s", flush=True)
    rows = [json.loads((given.folder / f"{t}.json").read_text()) for t in types]
    if given.against:
        expected = page.verdicts_in(given.against.read_text())
        for row in rows:
            found, known = page.verdict_of(row), expected.get(row["type"])
            if known and found != known:
                print(f"{row['type']}: found {found}; expected {known}")
                failed += 1
            elif not known and page.has_verdict(row):
                print(f"{row['type']}: found {found}, which the page has not yet: --page writes it")
    if given.page:
        given.page.write_text(page.page_of(rows, transformers.__version__, numbers_of.TOKENS))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
