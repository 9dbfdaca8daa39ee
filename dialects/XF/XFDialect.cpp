#include "dialects/XF/GatheredSite.h"
#include "dialects/XF/Rotation.h"
#include "dialects/XF/Sizes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

#include "dialects/XF/XFDialect.cpp.inc"
#include "dialects/XF/XFEnums.cpp.inc"
#include "dialects/XF/XFInterfaces.cpp.inc"
#include "dialects/XF/XFTypeEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/XF/XFAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/XF/XFTypes.cpp.inc"

void XFDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/XF/XFAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/XF/XFTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/XF/XFOps.cpp.inc"
      >();
  attachSizeModels(*getContext());
  attachContextualFacts(*getContext());
  attachRotationModels(*getContext());
  attachPartModels(*getContext());
  attachTapModels(*getContext());
  attachPermutationModels(*getContext());
  attachGatherModels(*getContext());
}

//===----------------------------------------------------------------------===//
// !xf.quantized
//===----------------------------------------------------------------------===//

namespace {
struct BlockShape {
  BlockFormat format;
  int64_t elements, bytes;
};
constexpr BlockShape blockShapes[] = {
#define CTXC_BLOCK_FORMAT(NAME, NAME_IN_TEXT, ELEMENTS, BYTES)                                     \
  {BlockFormat::NAME_IN_TEXT, ELEMENTS, BYTES},
#define CTXC_SCALED_FORMAT(NAME, NAME_IN_TEXT, TEXT, ELEMENTS, BYTES)                              \
  {BlockFormat::NAME_IN_TEXT, ELEMENTS, BYTES},
#include "ctxc/Support/BlockFormats.def"
};
// Some code finds a format by its place in BlockFormats.def.
constexpr bool areInOrder() {
  for (size_t i = 0; i < std::size(blockShapes); ++i)
    if (blockShapes[i].format != BlockFormat(i))
      return false;
  return std::size(blockShapes) == getMaxEnumValForBlockFormat() + 1;
}
static_assert(areInOrder(), "XFTypes.td lists the formats in the order of BlockFormats.def");
} // namespace

static const BlockShape &shapeOf(BlockFormat format) {
  return blockShapes[static_cast<size_t>(format)];
}

int64_t QuantizedType::getBlockElements() const { return shapeOf(getFormat()).elements; }
int64_t QuantizedType::getBlockBytes() const { return shapeOf(getFormat()).bytes; }
int64_t QuantizedType::bytesOf(RankedTensorType type) {
  auto element = cast<QuantizedType>(type.getElementType());
  return type.getNumElements() / element.getBlockElements() * element.getBlockBytes();
}

int64_t QuantizedType::getDeviceBlockElements() const {
  return getFormat() == BlockFormat::f8e4m3 ? 32 : getBlockElements();
}
int64_t QuantizedType::getDeviceBlockBytes() const {
  return getFormat() == BlockFormat::f8e4m3  ? 4 + 32
         : getFormat() == BlockFormat::mxfp4 ? 1 + 16
                                             : getBlockBytes();
}
int64_t QuantizedType::deviceBytesOf(RankedTensorType type) {
  auto element = cast<QuantizedType>(type.getElementType());
  return type.getNumElements() / element.getDeviceBlockElements() * element.getDeviceBlockBytes();
}

//===----------------------------------------------------------------------===//
// #xf.rope
//===----------------------------------------------------------------------===//

static FloatAttr f64(MLIRContext *context, double x) {
  return FloatAttr::get(Float64Type::get(context), x);
}

RopeAttr RopeAttr::get(MLIRContext *context, double base, int64_t dims, double linear,
                       ArrayRef<double> llama3, ArrayRef<double> yarn) {
  return Base::get(context, f64(context, base), dims, f64(context, linear),
                   DenseF64ArrayAttr::get(context, llama3), DenseF64ArrayAttr::get(context, yarn));
}

Attribute RopeAttr::parse(AsmParser &parser, Type) {
  double base = 0, linear = 1;
  int64_t dims = 0;
  SmallVector<double> llama3, yarn;
  auto numbers = [&](SmallVector<double> &list) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                          [&] { return parser.parseFloat(list.emplace_back()); });
  };
  auto field = [&]() -> ParseResult {
    StringRef key;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (key == "base")
      return parser.parseFloat(base);
    if (key == "dims")
      return parser.parseInteger(dims);
    if (key == "linear")
      return parser.parseFloat(linear);
    if (key == "llama3")
      return numbers(llama3);
    if (key == "yarn")
      return numbers(yarn);
    return parser.emitError(loc, "unknown key '")
           << key << "' in #xf.rope; it takes base, dims, linear, llama3 and yarn";
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, field))
    return {};
  MLIRContext *context = parser.getContext();
  return parser.getChecked<RopeAttr>(loc, context, f64(context, base), dims, f64(context, linear),
                                     DenseF64ArrayAttr::get(context, llama3),
                                     DenseF64ArrayAttr::get(context, yarn));
}

void RopeAttr::print(AsmPrinter &printer) const {
  printer << "<base = ";
  printer.printFloat(getBase().getValue());
  printer << ", dims = " << getDims();
  if (getLinear().getValueAsDouble() != 1) {
    printer << ", linear = ";
    printer.printFloat(getLinear().getValue());
  }
  auto numbers = [&](StringRef key, ArrayRef<double> list) {
    if (list.empty())
      return;
    printer << ", " << key << " = [";
    llvm::interleaveComma(list, printer.getStream(),
                          [&](double x) { printer.printFloat(APFloat(x)); });
    printer << "]";
  };
  numbers("llama3", getLlama3());
  numbers("yarn", getYarn());
  printer << ">";
}

LogicalResult RopeAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr baseAttr,
                               int64_t dims, FloatAttr linearAttr, DenseF64ArrayAttr llama3Attr,
                               DenseF64ArrayAttr yarnAttr) {
  double base = baseAttr.getValueAsDouble(), linear = linearAttr.getValueAsDouble();
  ArrayRef<double> llama3 = llama3Attr, yarn = yarnAttr;
  auto isPositive = [](double x) { return std::isfinite(x) && x > 0; };
  if (!(std::isfinite(base) && base > 0))
    return emitError() << "#xf.rope needs a positive base, found " << base;
  if (dims <= 0 || dims % 2)
    return emitError() << "#xf.rope needs a positive even number of dims, found " << dims;
  if (!(std::isfinite(linear) && linear > 0))
    return emitError() << "#xf.rope needs a positive linear factor, found " << linear;
  if (!llama3.empty() && (llama3.size() != 4 || !llvm::all_of(llama3, isPositive)))
    return emitError() << "#xf.rope's llama3 needs four positive numbers: factor, "
                          "low_freq_factor, high_freq_factor, original_context";
  if (!yarn.empty() && (yarn.size() != 5 || !llvm::all_of(yarn.drop_back(), isPositive) ||
                        (yarn.back() != 0 && yarn.back() != 1) || base == 1))
    return emitError()
           << "#xf.rope's yarn needs four positive numbers, factor, beta_fast, beta_slow "
              "and original_context, then truncate, 0 or 1, and a base other than 1";
  return success();
}

/// The frequency that Llama 3's rule gives for the frequency `x`.
static double llama3Frequency(double x, ArrayRef<double> rule) {
  double factor = rule[0], low = rule[1], high = rule[2], original = rule[3];
  double wavelength = 2 * M_PI / x;
  if (wavelength > original / low)
    return x / factor;
  if (wavelength < original / high)
    return x;
  double smooth = (original / wavelength - low) / (high - low);
  return (1 - smooth) * x / factor + smooth * x;
}

/// The share of frequency number `i` that YaRN divides by the factor, from 0 to 1.
static double yarnShare(int64_t i, RopeAttr rope) {
  ArrayRef<double> rule = rope.getYarn();
  double fast = rule[1], slow = rule[2], original = rule[3];
  auto indexOf = [&](double turns) {
    return rope.getDims() * std::log(original / (turns * 2 * M_PI)) /
           (2 * std::log(rope.getBase().getValueAsDouble()));
  };
  double from = indexOf(fast), to = indexOf(slow);
  if (rule[4]) {
    from = std::floor(from);
    to = std::ceil(to);
  }
  from = std::max(from, 0.0);
  to = std::min(to, double(rope.getDims() - 1));
  if (from == to)
    to += 0.001; // avoids a division by zero, as the rule's authors do
  return std::clamp((i - from) / (to - from), 0.0, 1.0);
}

SmallVector<double> RopeAttr::getFrequencies() const {
  SmallVector<double> f(getDims() / 2);
  for (auto [i, x] : llvm::enumerate(f)) {
    x = std::pow(getBase().getValueAsDouble(), -2.0 * i / getDims()) /
        getLinear().getValueAsDouble();
    if (!getLlama3().empty())
      x = llama3Frequency(x, getLlama3());
    if (!getYarn().empty()) {
      double share = yarnShare(i, *this);
      x = share * x / getYarn()[0] + (1 - share) * x;
    }
  }
  return f;
}
