#include "dialects/XF/XF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace ctxc::xf;

#include "dialects/XF/XFDialect.cpp.inc"
#include "dialects/XF/XFEnums.cpp.inc"
#include "dialects/XF/XFTypeEnums.cpp.inc"
#include "dialects/XF/XFInterfaces.cpp.inc"
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
#include "ctxc/Support/BlockFormats.def"
};
} // namespace

static const BlockShape &shapeOf(BlockFormat format) {
  const BlockShape &shape = blockShapes[static_cast<size_t>(format)];
  assert(shape.format == format && "the two lists of formats have one order");
  return shape;
}

int64_t QuantizedType::getBlockElements() const { return shapeOf(getFormat()).elements; }
int64_t QuantizedType::getBlockBytes() const { return shapeOf(getFormat()).bytes; }
int64_t QuantizedType::bytesOf(RankedTensorType type) {
  auto element = cast<QuantizedType>(type.getElementType());
  return type.getNumElements() / element.getBlockElements() * element.getBlockBytes();
}

//===----------------------------------------------------------------------===//
// #xf.rope
//===----------------------------------------------------------------------===//

static FloatAttr f64(MLIRContext *context, double x) {
  return FloatAttr::get(Float64Type::get(context), x);
}

RopeAttr RopeAttr::get(MLIRContext *context, double base, int64_t dims, double linear,
                       ArrayRef<double> llama3) {
  return Base::get(context, f64(context, base), dims, f64(context, linear),
                   DenseF64ArrayAttr::get(context, llama3));
}

Attribute RopeAttr::parse(AsmParser &parser, Type) {
  double base = 0, linear = 1;
  int64_t dims = 0;
  SmallVector<double> llama3;
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
      return parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square, [&] { return parser.parseFloat(llama3.emplace_back()); });
    return parser.emitError(loc, "unknown key '")
           << key << "' in #xf.rope; it takes base, dims, linear and llama3";
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, field))
    return {};
  MLIRContext *context = parser.getContext();
  return parser.getChecked<RopeAttr>(loc, context, f64(context, base), dims, f64(context, linear),
                                     DenseF64ArrayAttr::get(context, llama3));
}

void RopeAttr::print(AsmPrinter &printer) const {
  printer << "<base = ";
  printer.printFloat(getBase().getValue());
  printer << ", dims = " << getDims();
  if (getLinear().getValueAsDouble() != 1) {
    printer << ", linear = ";
    printer.printFloat(getLinear().getValue());
  }
  if (!getLlama3().asArrayRef().empty()) {
    printer << ", llama3 = [";
    llvm::interleaveComma(getLlama3().asArrayRef(), printer.getStream(),
                          [&](double x) { printer.printFloat(APFloat(x)); });
    printer << "]";
  }
  printer << ">";
}

LogicalResult RopeAttr::verify(function_ref<InFlightDiagnostic()> emitError, FloatAttr baseAttr,
                               int64_t dims, FloatAttr linearAttr, DenseF64ArrayAttr llama3Attr) {
  double base = baseAttr.getValueAsDouble(), linear = linearAttr.getValueAsDouble();
  ArrayRef<double> llama3 = llama3Attr;
  if (!(std::isfinite(base) && base > 0))
    return emitError() << "#xf.rope needs a positive base, found " << base;
  if (dims <= 0 || dims % 2)
    return emitError() << "#xf.rope needs a positive even number of dims, found " << dims;
  if (!(std::isfinite(linear) && linear > 0))
    return emitError() << "#xf.rope needs a positive linear factor, found " << linear;
  if (!llama3.empty() && (llama3.size() != 4 || !llvm::all_of(llama3, [](double x) {
                            return std::isfinite(x) && x > 0;
                          })))
    return emitError() << "#xf.rope's llama3 needs four positive numbers: factor, "
                          "low_freq_factor, high_freq_factor, original_context";
  return success();
}

SmallVector<double> RopeAttr::getFrequencies() const {
  SmallVector<double> f(getDims() / 2);
  for (auto [i, x] : llvm::enumerate(f)) {
    x = std::pow(getBase().getValueAsDouble(), -2.0 * i / getDims()) /
        getLinear().getValueAsDouble();
    ArrayRef<double> llama3 = getLlama3();
    if (llama3.empty())
      continue;
    double factor = llama3[0], low = llama3[1], high = llama3[2], original = llama3[3];
    double wavelength = 2 * M_PI / x;
    if (wavelength > original / low)
      x /= factor;
    else if (wavelength >= original / high) {
      double smooth = (original / wavelength - low) / (high - low);
      x = (1 - smooth) * x / factor + smooth * x;
    }
  }
  return f;
}
