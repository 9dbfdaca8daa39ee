"""Random blocks, as text for ctxc and as functions of numpy, which share no code.

A value has the shape (draws, points, tokens, …): what was drawn, and for each draw several points, are computed at once.
"""
import numpy as np
from scipy.special import erf


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * sigmoid(x),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "exp": np.exp,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "abs": np.abs,
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0)),
}


def quotient(a, b):
    return a / np.where(b == 0, 1, b)


def norm_of(kind, x, eps):
    if kind == "sum":
        return x / (x.sum(-1, keepdims=True) + eps)
    if kind == "layer":
        x = x - x.mean(-1, keepdims=True)
    squares = (x * x).sum(-1, keepdims=True)
    if kind != "l2":
        squares = squares / x.shape[-1]
    return x / np.sqrt(squares + eps)


def convolved(w, x):
    """Each token with those before it; in front of the first are zeros."""
    y = w[..., None, :, -1] * x
    for back in range(1, min(w.shape[-1], x.shape[-2])):
        y[..., back:, :] += w[..., None, :, -1 - back] * x[..., :-back, :]
    return y


def rotated(x, f, positions, pairs, amplitude):
    """Heads of (…, D), by angles of position times frequency."""
    n, y = f.shape[-1], x.copy()
    angles = positions[:, None, None] * f[..., None, :]
    i = np.arange(n)
    first, second = (i, i + n) if pairs == "half" else (2 * i, 2 * i + 1)
    a, b = x[..., first], x[..., second]
    y[..., first] = amplitude * (a * np.cos(angles) - b * np.sin(angles))
    y[..., second] = amplitude * (b * np.cos(angles) + a * np.sin(angles))
    return y


def type_of(shape):
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


def literal(x):
    text = repr(float(np.float32(x)))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def dense(values):
    def of(v):
        return "[" + ", ".join(of(e) for e in v) + "]" if np.ndim(v) else literal(v)

    return f"dense<{of(values)}> : {type_of(np.shape(values))}"


class Op:
    def __init__(self, kind, name, shape, operands=(), text="", function=None, **more):
        self.kind, self.name, self.shape, self.operands = kind, name, tuple(shape), list(operands)
        self.text, self.function = text, function
        self.__dict__.update(more)

    @property
    def type(self):
        return type_of(self.shape)


class Block:
    """Ops in order; the first is the input."""

    def __init__(self, width, name="b"):
        self.name, self.ops, self.outputs = name, [Op("input", "%x", (width,))], []

    @property
    def x(self):
        return self.ops[0]

    def op(self, kind, text, shape, operands, function, types=None, **more):
        made = Op(kind, f"%v{len(self.ops)}", shape, operands, function=function, **more)
        made.text = f"  {made.name} = xf.{text} : {types or made.type}"
        self.ops.append(made)
        return made

    def param(self, name, *shape, flags=""):
        for op in self.ops:
            if op.kind == "param" and op.parameter == name:
                return op
        return self.op("param", f'param "{name}"{flags}', shape, [], None, parameter=name, flags=flags)

    def setting(self, name, values, by_layer=False):
        """`values` of the block itself, or of each layer."""
        first = np.asarray(values[0] if by_layer else values, float)
        given = "" if by_layer else f" = {dense(first)}"
        return self.op("setting", f'setting "{name}"', first.shape, [], None, types=type_of(first.shape) + given,
                       setting=name, values=[np.asarray(np.float32(v), float) for v in values] if by_layer else np.asarray(np.float32(first), float),
                       by_layer=by_layer)

    def unary(self, text, x, f, kind="function"):
        head, _, rest = text.partition("@")
        return self.op(kind, f"{head}{x.name}{rest}", x.shape, [x], f)

    def activation(self, kind, x):
        return self.unary(f"activation {kind} @", x, ACTIVATIONS[kind])

    def times(self, x, c):
        c = float(np.float32(c))
        return self.unary(f"times @ by {literal(c)}", x, lambda a: c * a)

    def binary(self, name, f, a, b):
        types = a.type if name in ("add", "sub") else f"{a.type}, {b.type}"
        return self.op(name, f"{name} {a.name}, {b.name}", a.shape, [a, b], f, types)

    def add(self, a, b):
        return self.binary("add", np.add, a, b)

    def sub(self, a, b):
        return self.binary("sub", np.subtract, a, b)

    def mul(self, a, b):
        return self.binary("mul", np.multiply, a, b)

    def div(self, a, b):
        return self.binary("div", quotient, a, b)

    def linear(self, w, x, transposed=False):
        out, how = (1, " transposed") if transposed else (0, "")
        return self.op("linear", f"linear {w.name} * {x.name}{how}", (w.shape[out],), [w, x], (lambda m, a: np.vecmat(a, m)) if transposed else np.matvec,
                       f"{w.type}, {x.type}", transposed=transposed)

    def bias(self, x, b):
        return self.op("bias", f"bias {x.name} + {b.name}", x.shape, [x, b], np.add, f"{x.type}, {b.type}")

    def scale(self, x, m, offset=0.0):
        how = f" offset {literal(offset)}" if offset else ""
        return self.op("scale", f"scale {x.name} by {m.name}{how}", x.shape, [x, m], lambda a, s: a * (offset + s), f"{x.type}, {m.type}",
                       offset=offset)

    def normalize(self, kind, x, eps):
        return self.unary(f"normalize {kind} @ eps {literal(eps)}", x, lambda a: norm_of(kind, a, float(np.float64(literal(eps)))))

    def reshape(self, x, *shape):
        return self.op("reshape", f"reshape {x.name}", shape, [x], lambda a: a.reshape(*a.shape[:3], *shape), f"{x.type} to {type_of(shape)}")

    def slice(self, x, start, size):
        shape = (size, *x.shape[1:])
        return self.op("slice", f"slice {x.name} from {start}", shape, [x], lambda a: a[:, :, :, start:start + size], f"{x.type} to {type_of(shape)}")

    def concat(self, *parts):
        names, types = ", ".join(p.name for p in parts), ", ".join(p.type for p in parts)
        return self.op("concat", f"concat {names}", (sum(p.shape[0] for p in parts), *parts[0].shape[1:]), parts,
                       lambda *a: np.concatenate(np.broadcast_arrays(*a), -1), types)

    def combine(self, w, rows):
        return self.op("combine", f"combine {w.name}, {rows.name}", rows.shape[1:], [w, rows],
                       np.vecmat, f"{w.type}, {rows.type}")

    def rotary(self, x, f, pairs="half", amplitude=1.0):
        """Of one head."""
        head = self.reshape(x, 1, x.shape[0])
        how = f" amplitude {literal(amplitude)}" if amplitude != 1 else ""
        turned = self.op("rotary", f"rotary {pairs} {head.name} by {f.name}{how}", head.shape, [head, f], None, f"{head.type}, {f.type}",
                         pairs=pairs, amplitude=amplitude)
        return self.reshape(turned, x.shape[0])

    def permute(self, x, order):
        ones = ", ".join("1" for _ in order)
        text = f"permute {x.name} parts [{ones}] by [{', '.join(map(str, order))}]"
        return self.op("permute", text, x.shape, [x], lambda a: a[..., order])

    def conv(self, x, name, behind=False):
        """With `behind` it follows the MLP, whose parameters are not those of what reads the context."""
        w = self.param(name, x.shape[0], 3)
        return self.op("conv", f"conv {w.name}, {x.name}", x.shape, [w, x], None, f"{w.type}, {x.type}", follows=behind)

    def text(self):
        results = ", ".join(o.type for o in self.outputs)
        arrow = results if len(self.outputs) == 1 else f"({results})"
        lines = [op.text for op in self.ops[1:]]
        names = ", ".join(o.name for o in self.outputs)
        return f"xf.block @{self.name}(%x: {self.x.type}) -> {arrow} {{\n" + "\n".join(lines) + f"\n  xf.yield {names} : {results}\n}}\n"

    def parameters(self):
        return {op.parameter: op for op in self.ops if op.kind == "param"}

    def contextual(self):
        """The parameters that lead to what reads the context."""
        leads = {op.name for op in self.ops if op.kind == "conv" and not op.follows}
        for op in reversed(self.ops):
            if op.name in leads:
                leads |= {operand.name for operand in op.operands}
        return {name for name, op in self.parameters().items() if op.name in leads}

    def behind(self, names):
        """The ops that read one of `names`, directly or not, without these."""
        reached, found = set(names), []
        for op in self.ops:
            if op.name not in reached and any(operand.name in reached for operand in op.operands):
                reached.add(op.name)
                found.append(op)
        return found

    def run(self, op, values, positions):
        given = [values[o.name] for o in op.operands]
        if op.kind == "conv":
            return convolved(given[0][:, :, 0], given[1])
        if op.kind == "rotary":
            return rotated(*given, positions, op.pairs, op.amplitude)
        return op.function(*given)

    def evaluate(self, parameters, x, positions, layer=0, dtype=float):
        """`x` and each of `parameters`, which has draws in front, to the values of all ops."""
        values = {"%x": x}
        for op in self.ops[1:]:
            if op.kind == "param":
                values[op.name] = parameters[op.parameter][:, None, None]
            elif op.kind == "setting":
                values[op.name] = (op.values[layer] if op.by_layer else op.values)[None, None, None]
            else:
                values[op.name] = self.run(op, values, positions).astype(dtype, copy=False)
        return values
