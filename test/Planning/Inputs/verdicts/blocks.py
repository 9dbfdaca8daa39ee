"""Writes blocks and models as text, op by op, and derives the types."""
import math


def type_of(shape):
    return "tensor<" + "".join(f"{size}x" for size in shape) + "f32>"


def number(value):
    """With the point that MLIR wants in front of an exponent."""
    text = repr(float(value))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def numbers(values):
    if isinstance(values, (list, tuple)):
        return "[" + ", ".join(numbers(value) for value in values) + "]"
    return number(values)


def shape_of(values):
    return (len(values), *shape_of(values[0])) if isinstance(values, (list, tuple)) else ()


def dense(values):
    return f"dense<{numbers(values)}> : {type_of(shape_of(values))}"


class Value:
    def __init__(self, name, shape):
        self.name, self.shape, self.type = name, tuple(shape), type_of(shape)

    @property
    def size(self):
        return math.prod(self.shape)


class Block:
    """One block with the input x. Ops are methods; what is not here is written with `op`."""

    def __init__(self, *shape, name="b"):
        self.name, self.lines, self.count = name, [], 0
        self.x = Value("%x", shape)

    def op(self, text, shape, types=None):
        value = Value(f"%v{self.count}", shape)
        self.count += 1
        self.lines.append(f"  {value.name} = xf.{text} : {types or value.type}")
        return value

    def param(self, name, *shape, frozen=False):
        return self.op(f'param "{name}"' + (" frozen" if frozen else ""), shape)

    def setting(self, name, values=None, shape=None):
        """Of these values, or of what layers give."""
        given = "" if values is None else f" = {dense(values)}"
        shape = shape or shape_of(values)
        return self.op(f'setting "{name}"', shape, f"{type_of(shape)}{given}")

    def number(self, name, value):
        return self.setting(name, [value])

    def linear(self, weight, data):
        return self.op(
            f"linear {weight.name} * {data.name}", (*data.shape[:-1], weight.shape[0]), f"{weight.type}, {data.type}"
        )

    def matrix(self, name, out, data, **how):
        return self.linear(self.param(name, out, data.shape[-1], **how), data)

    def context(self, data=None, name="conv"):
        """What a convolution over the last three tokens makes of `data`."""
        data = data or self.x
        kernel = self.param(name, data.shape[0], 3)
        return self.op(f"conv {kernel.name}, {data.name}", data.shape, f"{kernel.type}, {data.type}")

    def add(self, a, b):
        return self.op(f"add {a.name}, {b.name}", a.shape)

    def sub(self, a, b):
        return self.op(f"sub {a.name}, {b.name}", a.shape)

    def mul(self, a, b):
        return self.op(f"mul {a.name}, {b.name}", a.shape, f"{a.type}, {b.type}")

    def div(self, a, b):
        return self.op(f"div {a.name}, {b.name}", a.shape, f"{a.type}, {b.type}")

    def times(self, a, factor):
        return self.op(f"times {a.name} by {number(factor)}", a.shape)

    def activation(self, kind, a):
        return self.op(f"activation {kind} {a.name}", a.shape)

    def softcap(self, a, cap):
        return self.op(f"softcap {a.name} at {number(cap)}", a.shape)

    def softmax(self, a):
        return self.op(f"softmax {a.name}", a.shape)

    def normalize(self, kind, a, eps):
        return self.op(f"normalize {kind} {a.name} eps {number(eps)}", a.shape)

    def reshape(self, a, *shape):
        if a.shape == shape:
            return a
        return self.op(f"reshape {a.name}", shape, f"{a.type} to {type_of(shape)}")

    def slice(self, a, start, size):
        shape = (size, *a.shape[1:])
        return self.op(f"slice {a.name} from {start}", shape, f"{a.type} to {type_of(shape)}")

    def concat(self, *parts):
        names, types = ", ".join(p.name for p in parts), ", ".join(p.type for p in parts)
        return self.op(f"concat {names}", (sum(p.shape[0] for p in parts), *parts[0].shape[1:]), types)

    def combine(self, weights, rows):
        """The sum of the rows, each times its weight."""
        return self.op(f"combine {weights.name}, {rows.name}", rows.shape[1:], f"{weights.type}, {rows.type}")

    def dot(self, a, b):
        return self.combine(a, self.reshape(b, b.size, 1))

    def rotary(self, a, frequencies, amplitude=None, pairs="half", heads=1):
        rows = self.reshape(a, heads, a.size // heads)
        scaled = "" if amplitude is None else f" amplitude {number(amplitude)}"
        turned = self.op(
            f"rotary {pairs} {rows.name} by {frequencies.name}{scaled}", rows.shape, f"{rows.type}, {frequencies.type}"
        )
        return self.reshape(turned, *a.shape)

    def text(self, *outputs):
        results = ", ".join(output.type for output in outputs)
        names = ", ".join(output.name for output in outputs)
        arrow = results if len(outputs) == 1 else f"({results})"
        head = f"xf.block @{self.name}(%x: {self.x.type}) -> {arrow} {{\n"
        return head + "\n".join(self.lines) + f"\n  xf.yield {names} : {results}\n}}\n"


def model(block, width, layers, reads=None, outputs=1):
    """`block`'s text with a model of a layer for each of `layers`: the settings of the layer, by name."""
    stream, lines = "%x", []
    table = type_of((31, width))
    result = type_of((width,))
    results = result if outputs == 1 else "(" + ", ".join([result] * outputs) + ")"
    for i, settings in enumerate(layers):
        given = ", ".join(f"{name} = {dense(value)}" for name, value in settings.items())
        given = f" settings {{{given}}}" if given else ""
        made = f"%l{i}" if outputs == 1 else f"%l{i}:{outputs}"
        lines.append(f'  {made} = xf.layer @b({stream}) at "l{i}."{given} : ({result}) -> {results}')
        stream = f"%l{i}" if outputs == 1 else f"%l{i}#0"
    lines += reads or []
    return (
        block
        + f'xf.model @m {{\n  %E = xf.param "embed" : {table}\n  %id = xf.token : tensor<i32>\n'
        + f"  %x = xf.embed %E[%id] : {table}, tensor<i32>\n"
        + "\n".join(lines)
        + f"\n  xf.yield {stream} : {result}\n}}\n"
    )
