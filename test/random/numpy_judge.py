"""Judges what ctxc says of random blocks by numpy alone: patches are formed as a success claims, and looked for where a
rejection says that there are none."""
import numpy as np

TOKENS = 5
HERE = np.array([TOKENS - 1])
EXACT = 1e-6
MOST = 200_000  # numbers that are looked for one by one, times those that they make
LARGEST = 1e6  # numbers beyond hide what is rounded
TRIES, STALLED = 12, 8  # sizes of a step, and steps without much gain that end a search
LARGE = 400  # numbers that are searched for only a while


class Draw:
    """Random weights and activations of a block, and both runs of its last token."""

    def __init__(self, block, layer, rng, depends, equal, sizes=(1.0, 1.0), constants="random"):
        self.block, self.layer = block, layer
        self.parameters = {}
        for name, op in block.parameters().items():
            drawn = rng.standard_normal(op.shape) / np.sqrt(op.shape[-1] if len(op.shape) > 1 else 1)
            if "constant" in op.flags and constants != "random":
                drawn = {"zeros": np.zeros, "ones": np.ones}[constants](op.shape)
            self.parameters[name] = (drawn * sizes[not name.startswith("conv")])[None]
        width = block.x.shape[0]
        self.x = rng.standard_normal((1, TOKENS, width))
        self.own = rng.standard_normal((1, 1, width)) if depends and 0 not in equal else self.x[:, -1:]
        with np.errstate(all="ignore"):
            values = block.evaluate(self.parameters, self.x, np.arange(TOKENS), layer)
        self.full = {name: value[:, -1:] for name, value in values.items()}
        self.wanted = self.joined(self.full)
        self.known = {}
        self.plain = self.joined(self.reduced(self.parameters))

    def reduced(self, parameters):
        with np.errstate(all="ignore"):
            return self.block.evaluate(parameters, self.own, HERE, self.layer)

    def outputs_for(self, values, changed):
        """The outputs where values of the reduced run change: what does not read these stays."""
        key = frozenset(changed)
        if key not in self.known:
            self.known[key] = self.block.behind(key)
        values = {**values, **changed}
        with np.errstate(all="ignore"):
            for op in self.known[key]:
                values[op.name] = self.block.run(op, values, HERE)
        return self.joined(values)

    def joined(self, values):
        """The outputs of each run side by side."""
        rows = [values[o.name].reshape(values[o.name].shape[0], -1) for o in self.block.outputs]
        runs = max(row.shape[0] for row in rows)
        return np.concatenate([np.broadcast_to(row, (runs, row.shape[1])) for row in rows], 1)

    def is_usable(self):
        numbers = np.concatenate([self.wanted.ravel(), self.plain.ravel()])
        return bool(np.isfinite(numbers).all() and np.abs(numbers).max() < LARGEST)

    def gap(self, parameters):
        outputs = self.joined(self.reduced(parameters))[0]
        error = np.abs(outputs - self.wanted[0]).max()
        return error / (1 + np.abs(self.wanted).max()) if np.isfinite(error) else np.inf

    def is_changed(self):
        return np.abs(self.plain - self.wanted).max() > 1e-6 * (1 + np.abs(self.wanted).max())


@np.errstate(all="ignore")
def minimized(residual, start, steps=60, attempts=1, rng=None):
    """Levenberg and Marquardt, with derivatives by differences: `residual` takes several points at once."""
    best, least = start, np.inf
    if start.size > LARGE:
        steps, attempts = 12, 1
    for attempt in range(attempts):
        x = start if attempt == 0 else start + rng.standard_normal(start.size) * 3.0 ** (attempt - 1)
        damping = 1e-3
        r = residual(x[None])[0]
        if not np.isfinite(r).all():
            continue
        history = []
        for _ in range(steps):
            history.append(r @ r)
            stalls = len(history) > STALLED and history[-1] > 0.9 * history[-1 - STALLED]
            if np.abs(r).max() < 1e-11 or stalls:
                break
            h = 1e-6 * (1 + np.abs(x))
            points = np.concatenate([x + np.diag(h), x - np.diag(h)])
            rows = residual(points)
            jacobian = ((rows[: x.size] - rows[x.size:]) / (2 * h[:, None])).T
            if not np.isfinite(jacobian).all():
                break
            # The usual size of a step, else the first of larger dampings that improves, all at once.
            gram, scale = jacobian @ jacobian.T, 1e-9 + np.abs(jacobian).max() ** 2
            for dampings in (damping * np.ones(1), damping * 6.0 ** np.arange(1, TRIES)):
                lhs = gram[None] + (dampings * scale)[:, None, None] * np.eye(r.size)
                moved = x + np.linalg.solve(lhs, np.broadcast_to(-r[:, None], (len(dampings), r.size, 1)))[..., 0] @ jacobian
                rests = residual(moved)
                better = np.flatnonzero(np.einsum("ij,ij->i", rests, rests) < r @ r)
                if better.size:
                    break
            if not better.size:
                break
            x, r, damping = moved[better[0]], rests[better[0]], max(dampings[better[0]] / 9, 1e-15)
        if np.abs(r).max() < least:
            best, least = x, np.abs(r).max()
        if least < 1e-10:
            break
    return best


def assigned(draw, op, target, parameters):
    """The parameters with that of `op` changed so that it gives `target`, as the paper's lemmas do."""
    values = draw.reduced(parameters)
    ops = {each.name: each for each in draw.block.ops}
    made = ops[op]
    data, parameter = (made.operands[1], made.operands[0]) if made.kind == "linear" else made.operands
    u, y, old = values[data.name][0, 0], values[op][0, 0], parameters[parameter.parameter][0]
    if made.kind == "linear":
        change = np.outer(target - y, u) / (u @ u or 1)
        new = old + (change.T if made.transposed else change)
    elif made.kind == "bias":
        new = old + target - y
    else:
        new = np.where(u == 0, old, target / np.where(u == 0, 1, u) - made.offset)
    return {**parameters, parameter.parameter: new[None]}


def patched(draw, claim):
    """The parameters with the patch of a success: first its cut, then its outputs."""
    order = {op.name: i for i, op in enumerate(draw.block.ops)}
    parameters = dict(draw.parameters)
    for cut in sorted(claim["cut"], key=lambda c: order[c["op"]]):
        parameters = assigned(draw, cut["op"], draw.full[cut["op"]][0, 0], parameters)
    groups = [sites["patches"][0]["op"] for sites in claim["outputs"]]
    if not groups:
        return parameters
    values = draw.reduced(parameters)
    shapes = [values[op].shape[2:] for op in groups]
    sizes = [int(np.prod(shape)) for shape in shapes]

    def residual(points):
        given, at = {}, 0
        for op, shape, size in zip(groups, shapes, sizes):
            given[op] = points[:, at:at + size].reshape(len(points), 1, *shape)
            at += size
        return draw.outputs_for(values, given) - draw.wanted

    start = np.concatenate([values[op].ravel() for op in groups])
    target, at = minimized(residual, start, attempts=3, rng=np.random.default_rng(1)), 0
    for op, shape, size in sorted(zip(groups, shapes, sizes), key=lambda g: order[g[0]]):
        at = sum(s for g, s in zip(groups, sizes) if groups.index(g) < groups.index(op))
        parameters = assigned(draw, op, target[at:at + size].reshape(shape), parameters)
    return parameters


def fitted(draw, names, rng):
    """The least gap that changes of the parameters `names` were found to leave; none where these are too many."""
    # What the context is read with stays as it is, also where it is read again.
    names = [name for name in names if name in draw.parameters and name not in draw.block.contextual()]
    if not names:
        return draw.gap(draw.parameters)
    shapes = [draw.parameters[name].shape[1:] for name in names]

    def given(points):
        changed, at = {}, 0
        for name, shape in zip(names, shapes):
            size = int(np.prod(shape))
            changed[name] = points[:, at:at + size].reshape(len(points), *shape)
            at += size
        return changed

    ops, values = draw.block.parameters(), draw.reduced(draw.parameters)

    def outputs(points):
        return draw.outputs_for(values, {ops[name].name: value[:, None] for name, value in given(points).items()})

    start = np.concatenate([draw.parameters[name].ravel() for name in names])
    if start.size * draw.wanted.size > MOST:
        return None
    best = minimized(lambda points: outputs(points) - draw.wanted, start, attempts=4, rng=rng)
    return draw.gap({**draw.parameters, **given(best[None])})


def draws_of(block, claim, layer, seed, count, sizes=((1.0, 1.0),)):
    """With weights of what reads the context, and others, of these sizes in turn."""
    unknown = any("constant" in op.flags for op in block.parameters().values())
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        constants = ("random", "zeros", "ones")[i % 3] if unknown else "random"
        draw = Draw(block, layer, rng, claim["inputsDepend"], claim.get("equalInputs", []), sizes[i % len(sizes)], constants)
        if draw.is_usable():
            yield draw


def is_false_success(block, claim, layer, seed):
    """Whether a patch that should be exact is not, and no other change of the same parameters is."""
    fails = [each.get("fails") for each in claim["cut"]]
    fails += [each.get("fails") for group in claim["outputs"] for each in group["patches"] + group["divisors"]]
    wrong = count = 0
    conditional = "open-set" in fails
    most = 24 if conditional else 6  # of which one need hold, where that is a condition
    for draw in draws_of(block, claim, layer, seed, most):
        # One that holds decides where it need not hold for all, and else half of them.
        if count - wrong > (0 if conditional else most // 2 - 1):
            return False
        count += 1
        # Where ctxc writes a form of several ops as one, the claim has names of its own.
        known = {each["op"] for each in claim["cut"]} | {each["op"] for group in claim["outputs"] for each in group["patches"]}
        is_same = known <= {op.name for op in block.ops}
        if not draw.is_changed() or (is_same and draw.gap(patched(draw, claim)) < EXACT):
            continue
        gap = fitted(draw, claim["parameters"], np.random.default_rng(seed))
        wrong += gap is not None and gap > EXACT
    return wrong == count > 0 if conditional else wrong > count // 2


def is_false_rejection(block, claim, layer, seed):
    """Whether some patch is exact for all weights that were drawn, with a small context and a large one."""
    count = 0
    # One number has the right side for half of all weights, and where others make it large, for nearly all.
    sizes = ((1.0, 1.0), (16.0, 1.0), (64.0, 1.0), (1.0, 1 / 16), (16.0, 1 / 16))
    for draw in draws_of(block, claim, layer, seed, 40, sizes):
        count += 1
        gap = fitted(draw, claim["patchable"], np.random.default_rng(seed)) if draw.is_changed() else 0
        if gap is None or gap > EXACT:
            return False
    return count > 0


def judge(block, claim, layer, seed):
    """What is false about a claim; empty where nothing is found to be."""
    verdict = claim["verdict"]
    if verdict in ("controllable", "output-only") and "parameters" in claim and is_false_success(block, claim, layer, seed):
        return "a patch that should be exact is not"
    if verdict == "rejected" and is_false_rejection(block, claim, layer, seed):
        return "patches are exact for all weights that were drawn"
    return ""
