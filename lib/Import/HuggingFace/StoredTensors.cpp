#include "StoredTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "ctxc/Program/Weights.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <map>

using namespace llvm;
using namespace ctxc;
using namespace ctxc::hf;

mlir::RankedTensorType StoredTensors::type(StringRef name, ArrayRef<int64_t> shape,
                                           mlir::MLIRContext *context) {
  bool first = asked.insert(name).second;
  DType dtype = fallback;
  if (checkpoint) {
    const TensorView *view = checkpoint->find(name);
    if (first && !view)
      problems.add(place + ": has no tensor " + quoted(name) + "; expected " + shapeText(shape));
    else if (first && !isSameShape(view->shape, shape))
      problems.add(view->file + ": tensor " + quoted(name) + " has shape " +
                   shapeText(view->shape) + "; expected " + shapeText(shape) + " from config.json");
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
  const TensorView *view = checkpoint ? checkpoint->find(name) : nullptr;
  return view && ctxc::isQuantized(view->dtype);
}

StringRef StoredTensors::stemOf(ArrayRef<StringRef> stems, StringRef name) const {
  for (StringRef stem : stems)
    if (has((stem + name).str()))
      return stem;
  return stems.front();
}

bool StoredTensors::equal(StringRef a, StringRef b) const {
  const TensorView *x = checkpoint ? checkpoint->find(a) : nullptr;
  const TensorView *y = checkpoint ? checkpoint->find(b) : nullptr;
  return x && y && x->dtype == y->dtype && x->shape == y->shape && x->bytes == y->bytes &&
         std::memcmp(x->data, y->data, x->bytes) == 0;
}

/// `name` with an N in the place of each number that is a part of it: one for all layers.
static std::string layerless(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (llvm::all_of(part, isDigit))
      part = "N";
  return join(parts, ".");
}

void StoredTensors::finish(function_ref<bool(StringRef)> harmless) {
  constexpr size_t shown = 5;
  std::map<std::string, std::vector<const TensorView *>> unread;
  size_t count = 0;
  for (const TensorView &view : checkpoint ? checkpoint->tensors() : ArrayRef<TensorView>())
    if (!asked.contains(view.name) && !harmless(view.name)) {
      unread[layerless(view.name)].push_back(&view);
      ++count;
    }
  if (count == 0)
    return;
  std::vector<std::string> names;
  for (const auto &[name, views] : unread) {
    if (names.size() == shown)
      break;
    std::string times = views.size() > 1 ? std::to_string(views.size()) + " of " : "";
    names.push_back(times + quoted(views.size() > 1 ? name : views.front()->name) + " " +
                    shapeText(views.front()->shape));
  }
  if (unread.size() > shown)
    names.push_back("others");
  problems.add(
      place + ": has " + Twine(count) +
      (count > 1 ? " tensors that this family does not read: "
                 : " tensor that this family does not read: ") +
      join(names, ", ") +
      "; expected none, since the model may be of another family. Correct 'model_type', or "
      "remove the tensors if they change no number");
}
