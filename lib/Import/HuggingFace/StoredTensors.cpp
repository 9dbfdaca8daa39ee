#include "StoredTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/Weights.h"
#include <cstring>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

void StoredTensors::setWrapper(StringRef wrapper) {
  part = TextPart(wrapper, [&](StringRef begin) {
    return checkpoint && llvm::any_of(checkpoint->tensors(), [&](const TensorView &view) {
             return StringRef(view.name).starts_with(begin);
           });
  });
}

mlir::RankedTensorType StoredTensors::type(StringRef own, ArrayRef<int64_t> shape,
                                           mlir::MLIRContext *context) {
  const std::string name = part.stored(own);
  bool first = asked.insert(name).second;
  DType dtype = fallback;
  if (checkpoint) {
    const TensorView *view = checkpoint->find(name);
    if (first && !view)
      found.missing.push_back({name, SmallVector<int64_t>(shape)});
    else if (first && !isSameShape(view->shape, shape))
      found.misshapen.push_back({view, SmallVector<int64_t>(shape)});
    if (first && view && !isReadable(view->dtype))
      problems.add(view->file + ": tensor " + quoted(name) + " is stored as " +
                   nameOf(view->dtype) +
                   "; expected F32, BF16, F16 or one of GGUF's block formats" +
                   (view->dtype == DType::F8E4M3 ? ", or a quantization_config of quant_method fp8 "
                                                   "in config.json, with which it has scales"
                                                 : ""));
    else if (first && view && view->dtype == DType::F64 && !storage)
      problems.add(view->file + ": tensor " + quoted(name) +
                   " is stored as F64; ask for storage type f32 to round it");
    if (view)
      dtype = view->dtype;
  }
  return mlir::RankedTensorType::get(shape, elementOf(storage.value_or(dtype), context));
}

mlir::RankedTensorType StoredTensors::bankType(StringRef name, ArrayRef<int64_t> shape,
                                               mlir::MLIRContext *context) {
  ArrayRef<int64_t> each = shape.drop_front();
  mlir::RankedTensorType first = type(sliceName(name, 0), each, context);
  for (int64_t i = 1; i < shape.front() && checkpoint; ++i) {
    std::string slice = sliceName(name, i);
    mlir::RankedTensorType found = type(slice, each, context);
    if (found != first)
      problems.add(place + ": tensor " + quoted(slice) + " is not stored as the same type as " +
                   quoted(sliceName(name, 0)) + "; ask for one storage type");
  }
  return mlir::RankedTensorType::get(shape, first.getElementType());
}

bool StoredTensors::isQuantized(StringRef name) const {
  const TensorView *view = find(name);
  return view && ctxc::isQuantized(view->dtype);
}

StringRef StoredTensors::stemOf(ArrayRef<StringRef> stems, StringRef name) const {
  for (StringRef stem : stems)
    if (has((stem + name).str()))
      return stem;
  return stems.front();
}

std::string StoredTensors::onlyOne(ArrayRef<int64_t> shape,
                                   function_ref<bool(StringRef)> isCandidate) const {
  std::string one;
  for (const TensorView &view : checkpoint ? checkpoint->tensors() : ArrayRef<TensorView>()) {
    std::optional<std::string> own = part.own(view.name);
    if (!own || !isSameShape(view.shape, shape) || !isCandidate(*own))
      continue;
    if (!one.empty())
      return "";
    one = *own;
  }
  return one;
}

bool StoredTensors::equal(StringRef a, StringRef b) const {
  const TensorView *x = find(a), *y = find(b);
  return x && y && x->dtype == y->dtype && x->shape == y->shape && x->bytes == y->bytes &&
         std::memcmp(x->data, y->data, x->bytes) == 0;
}

void StoredTensors::finish(function_ref<bool(StringRef)> harmless) {
  if (!checkpoint)
    return;
  std::vector<const TensorView *> unread;
  for (const TensorView &view : checkpoint->tensors())
    if (std::optional<std::string> own = part.own(view.name);
        !asked.contains(view.name) && !part.isBeside(view.name) && !(own && harmless(*own)))
      unread.push_back(&view);
  found.hasAny = asked.size() > found.missing.size();
  found.report(*checkpoint, place, std::move(unread), problems);
}
