#include "lib/Lowering/Library/ArgumentLayout.h"
#include "lib/Lowering/StoredLayout.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ctxc;

namespace {
struct KindText {
  StringRef access, meaning;
};
} // namespace

static KindText textOf(KernelArgKind kind) {
  switch (kind) {
  case KernelArgKind::Positions:
    return {"read", "absolute positions of the rows"};
  case KernelArgKind::Tokens:
    return {"read", "token ids of the rows"};
  case KernelArgKind::Input:
    return {"read", "block input"};
  case KernelArgKind::Output:
    return {"write", "block output"};
  case KernelArgKind::Param:
    return {"read", "stored parameter"};
  case KernelArgKind::Bank:
    return {"read", "addresses of a stored parameter's slices"};
  case KernelArgKind::Setting:
    return {"read", "setting"};
  case KernelArgKind::State:
    return {"read-write",
            "state of a contextual op, the last rows are written (of a reduced run none)"};
  case KernelArgKind::Slots:
    return {"read", "absolute positions of the visible tokens"};
  case KernelArgKind::Room:
    return {"read", "for how many tokens each group of a state has memory"};
  case KernelArgKind::Store:
    return {"write", "patch part, written"};
  case KernelArgKind::Load:
    return {"read", "patch part, read"};
  case KernelArgKind::Counts:
    return {"add", "obligations: harmless and harmful counts, added to"};
  case KernelArgKind::Replay:
    return {"write", "predicted replay error of the output, written"};
  case KernelArgKind::Before:
    return {"read", "what a recurrence carries to the first row (of a reduced run to each row), 0 "
                    "before a run's first token"};
  case KernelArgKind::After:
    return {"write", "what the recurrence carries on from the last row; may be the memory of the "
                     "argument before"};
  }
  llvm_unreachable("all kinds are above");
}

static xf::QuantizedType quantizedElement(const KernelArg &arg) {
  return arg.stored ? dyn_cast<xf::QuantizedType>(arg.stored.getElementType())
                    : xf::QuantizedType();
}

bool ctxc::hasScalesApart(const KernelArg &arg) {
  xf::QuantizedType element = quantizedElement(arg);
  return element && layoutOf(element).scale == blocks::Apart;
}

std::string ArrayLayout::text() const {
  std::string text = type + " [" + llvm::join(shape, " x ") + "]";
  if (!strides.empty()) {
    text += " strides [";
    llvm::raw_string_ostream os(text);
    llvm::interleaveComma(strides, os);
    os << "]";
  }
  return text + " aligned to " + std::to_string(alignment);
}

/// Rows of elements without gaps between them.
static ArrayLayout dense(ArrayRef<int64_t> shape, Type element, StringRef leading) {
  ArrayLayout layout;
  llvm::raw_string_ostream(layout.type) << element;
  layout.alignment = (element.getIntOrFloatBitWidth() + 7) / 8;
  layout.strides.resize(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    layout.strides[i] = layout.strides[i + 1] * shape[i + 1];
  for (int64_t d : shape)
    layout.shape.push_back(ShapedType::isDynamic(d) ? leading.str() : std::to_string(d));
  return layout;
}

/// A quantised matrix: blocks row by row, or a description of where elements and scales are.
static ArrayLayout quantizedMatrix(ArrayRef<int64_t> shape, xf::QuantizedType element,
                                   bool scalesApart) {
  ArrayLayout layout;
  layout.type = xf::stringifyBlockFormat(element.getFormat()).str();
  if (scalesApart) {
    layout.type = "ctxc_scaled_matrix of " + layout.type;
    layout.alignment = 8;
  }
  for (int64_t d : shape)
    layout.shape.push_back(std::to_string(d));
  return layout;
}

static void layOut(ArgumentLayout &layout) {
  const KernelArg &arg = layout.arg;
  auto type = cast<MemRefType>(arg.type);
  bool state = arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Slots;
  std::string leading = state ? "visible[" + std::to_string(arg.run) + "]" : "S";
  xf::QuantizedType element = quantizedElement(arg);
  if (arg.kind == KernelArgKind::Bank) {
    layout.array = dense(type.getShape(), type.getElementType(), leading);
    layout.array.type = "address";
    ArrayRef<int64_t> slice = arg.stored.getShape().drop_front();
    layout.slice = element ? quantizedMatrix(slice, element, hasScalesApart(arg))
                           : dense(slice, arg.stored.getElementType(), "");
  } else if (element) {
    layout.array = quantizedMatrix(arg.stored.getShape(), element, hasScalesApart(arg));
  } else {
    layout.array = dense(type.getShape(), type.getElementType(), leading);
  }
}

static bool isPart(const KernelArg &arg) {
  return arg.kind == KernelArgKind::Store || arg.kind == KernelArgKind::Load;
}

std::vector<ArgumentLayout> ctxc::argumentLayouts(func::FuncOp kernel) {
  std::vector<ArgumentLayout> layouts;
  SmallVector<KernelArg> args = kernelArguments(kernel);
  for (const KernelArg &arg : args) {
    ArgumentLayout layout;
    layout.arg = arg;
    layout.meaning = textOf(arg.kind).meaning;
    layout.access = textOf(arg.kind).access;
    layout.identifier = arg.name.empty() ? kernel::stringifyArgKind(arg.kind).str() : arg.name;
    for (char &c : layout.identifier)
      if (!llvm::isAlnum(c))
        c = '_';
    if (isPart(arg)) {
      int64_t parts = llvm::count_if(
          args, [&](const KernelArg &other) { return isPart(other) && other.name == arg.name; });
      static constexpr StringRef factors[] = {"u", "v", "selected"};
      layout.part = parts == 1 ? "delta" : factors[arg.index].str();
      layout.identifier += "_" + layout.part;
    } else if (arg.name.empty() &&
               (arg.kind == KernelArgKind::Input || arg.kind == KernelArgKind::Output ||
                arg.kind == KernelArgKind::State || arg.kind == KernelArgKind::Before ||
                arg.kind == KernelArgKind::After)) {
      layout.identifier += "_" + std::to_string(arg.index);
    }
    if (arg.run)
      layout.identifier += "_reduced";
    layOut(layout);
    layouts.push_back(std::move(layout));
  }
  return layouts;
}
