#include "PatchTensors.h"
#include "ctxc/Checkpoint/StrictJson.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;
using namespace ctxc;

std::vector<PatchTensor> ctxc::tensorsOf(const Patch &patch) {
  std::vector<PatchTensor> tensors;
  for (const ParameterPatch &p : patch.parameters) {
    if (p.kind == ParameterPatch::Kind::Delta) {
      tensors.push_back({p.parameter + ".delta", {p.shape.begin(), p.shape.end()}, &p.delta});
      continue;
    }
    tensors.push_back({p.parameter + ".u", {p.shape[0], 1}, &p.u});
    tensors.push_back({p.parameter + ".v", {p.shape[1], 1}, &p.v});
  }
  return tensors;
}

std::vector<char> ctxc::bytesAs(DType type, ArrayRef<double> values) {
  std::vector<char> bytes(bytesOf(type, values.size()));
  writeDoubles(type, values, reinterpret_cast<uint8_t *>(bytes.data()));
  return bytes;
}

void ctxc::addTensors(const Patch &patch, DType type, StringRef prefix,
                      std::vector<TensorSource> &tensors) {
  for (const PatchTensor &tensor : tensorsOf(patch))
    tensors.push_back({(prefix + tensor.name).str(), type, tensor.shape,
                       [type, values = tensor.values](raw_ostream &os) {
                         std::vector<char> bytes = bytesAs(type, *values);
                         os.write(bytes.data(), bytes.size());
                         return Error::success();
                       }});
}

namespace {

/// Compares runs of digits as numbers, everything else as bytes.
bool naturalLess(StringRef a, StringRef b) {
  StringRef wholeA = a, wholeB = b;
  while (!a.empty() && !b.empty()) {
    if (isDigit(a.front()) && isDigit(b.front())) {
      StringRef x = a.take_while(isDigit), y = b.take_while(isDigit);
      a = a.drop_front(x.size());
      b = b.drop_front(y.size());
      x = x.ltrim('0');
      y = y.ltrim('0');
      if (x.size() != y.size())
        return x.size() < y.size();
      if (x != y)
        return x < y;
      continue;
    }
    if (a.front() != b.front())
      return a.front() < b.front();
    a = a.drop_front();
    b = b.drop_front();
  }
  return a.empty() && b.empty() ? wholeA < wholeB : a.empty();
}

std::vector<double> valuesOf(const TensorView &view) {
  std::vector<double> values(view.elements());
  readDoubles(view.dtype, view.data, values);
  return values;
}

/// The tensors that a file holds for one parameter.
struct Parts {
  const TensorView *u = nullptr, *v = nullptr, *delta = nullptr;
};

/// Whether `factor` is a column (k, 1).
bool isColumn(const TensorView &factor, const char *suffix, StringRef name, Problems &problems) {
  if (factor.shape.size() == 2 && factor.shape[1] == 1)
    return true;
  problems.add("tensor " + quoted((name + suffix).str()) + ": found shape " +
               shapeText(factor.shape) + ", expected (k, 1): patches are of rank 1");
  return false;
}

std::optional<ParameterPatch> assemble(StringRef name, const Parts &parts, Problems &problems) {
  ParameterPatch patch;
  patch.parameter = name.str();
  if (parts.delta) {
    if (parts.u || parts.v) {
      problems.add("parameter " + quoted(name) + ": has both a delta and a rank1 patch");
      return std::nullopt;
    }
    patch.kind = ParameterPatch::Kind::Delta;
    patch.shape.assign(parts.delta->shape.begin(), parts.delta->shape.end());
    patch.delta = valuesOf(*parts.delta);
    return patch;
  }
  if (!parts.u || !parts.v) {
    const char *has = parts.u ? ".u" : ".v", *lacks = parts.u ? ".v" : ".u";
    problems.add("parameter " + quoted(name) + ": has " + quoted((name + has).str()) + " but not " +
                 quoted((name + lacks).str()));
    return std::nullopt;
  }
  bool uGood = isColumn(*parts.u, ".u", name, problems);
  if (!isColumn(*parts.v, ".v", name, problems) || !uGood)
    return std::nullopt;
  patch.kind = ParameterPatch::Kind::Rank1;
  patch.shape = {parts.u->shape[0], parts.v->shape[0]};
  patch.u = valuesOf(*parts.u);
  patch.v = valuesOf(*parts.v);
  return patch;
}

} // namespace

Error ctxc::patchOf(ArrayRef<TensorView> tensors, DType type, StringRef prefix, Problems &problems,
                    Patch &patch) {
  Error notFinite = Error::success();
  std::map<std::string, Parts> parameters;
  for (const TensorView &view : tensors) {
    StringRef own = view.name;
    if (!own.consume_front(prefix))
      continue;
    auto [name, suffix] = own.rsplit('.');
    const TensorView *Parts::*part = suffix == "u"       ? &Parts::u
                                     : suffix == "v"     ? &Parts::v
                                     : suffix == "delta" ? &Parts::delta
                                                         : nullptr;
    if (name.empty() || !part) {
      problems.add("tensor " + quoted(view.name) +
                   ": expected a parameter's name with .u, .v or .delta");
      continue;
    }
    if (view.dtype != type) {
      problems.add("tensor " + quoted(view.name) + ": found " + nameOf(view.dtype) + ", expected " +
                   nameOf(type));
      continue;
    }
    if (Error e = checkFinite(view))
      notFinite = joinErrors(std::move(notFinite), std::move(e));
    parameters[name.str()].*part = &view;
  }
  for (const auto &[name, parts] : parameters)
    if (std::optional<ParameterPatch> p = assemble(name, parts, problems))
      patch.parameters.push_back(std::move(*p));
  llvm::sort(patch.parameters, [](const ParameterPatch &a, const ParameterPatch &b) {
    return naturalLess(a.parameter, b.parameter);
  });
  return notFinite;
}

Expected<Patch> ctxc::readTensors(ArrayRef<TensorView> tensors, DType type, StringRef prefix,
                                  Problems &problems) {
  Patch patch;
  Error notFinite = patchOf(tensors, type, prefix, problems, patch);
  if (Error error = joinErrors(problems.take(), std::move(notFinite)))
    return std::move(error);
  return patch;
}
