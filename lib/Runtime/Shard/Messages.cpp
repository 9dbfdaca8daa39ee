#include "lib/Runtime/Shard/Messages.h"

using namespace ctxc;

void MessageWriter::doubles(llvm::ArrayRef<double> all) {
  // Compares bits, so that NaN and −0 come through.
  bool areFloats = llvm::all_of(all, [](double x) {
    double back = static_cast<float>(x);
    return std::memcmp(&back, &x, sizeof x) == 0;
  });
  number(areFloats);
  if (areFloats)
    floats(std::vector<float>(all.begin(), all.end()));
  else
    array(all);
}

std::vector<double> MessageReader::doubles() {
  if (number() == 0)
    return array<double>();
  std::vector<float> all = floats();
  return {all.begin(), all.end()};
}

void MessageWriter::inputs(llvm::ArrayRef<Input> inputs) {
  number(inputs.size());
  for (const Input &input : inputs) {
    number(input.token());
    number(input.isEmbedding());
    if (input.isEmbedding())
      doubles(input.embedding());
  }
}

std::vector<Input> MessageReader::inputs() {
  std::vector<Input> inputs;
  for (int64_t i = 0, count = number(); i < count; ++i) {
    Input token = number();
    inputs.push_back(number() ? Input::ofEmbedding(doubles()) : token);
  }
  return inputs;
}

void MessageWriter::logits(const Logits &logits) {
  number(logits.isFloat32());
  if (logits.isFloat32())
    floats(logits.floats());
  else
    array(logits.float64s());
}

Logits MessageReader::logits() { return number() ? Logits(floats()) : Logits(array<double>()); }

void MessageWriter::patch(const Patch &patch) {
  number(patch.parameters.size());
  for (const ParameterPatch &each : patch.parameters) {
    text(each.parameter);
    number(each.kind == ParameterPatch::Kind::Rank1);
    numbers(each.shape);
    for (const std::vector<double> *part : {&each.u, &each.v, &each.delta})
      doubles(*part);
  }
}

Patch MessageReader::patch() {
  Patch patch;
  for (int64_t i = 0, count = number(); i < count; ++i) {
    ParameterPatch &each = patch.parameters.emplace_back();
    each.parameter = text();
    each.kind = number() ? ParameterPatch::Kind::Rank1 : ParameterPatch::Kind::Delta;
    each.shape = numbers();
    for (std::vector<double> *part : {&each.u, &each.v, &each.delta})
      *part = doubles();
  }
  return patch;
}

void MessageWriter::obligations(llvm::ArrayRef<LayerObligations> layers) {
  for (const LayerObligations &layer : layers) {
    number(layer.harmless);
    number(layer.harmful);
  }
}

void MessageReader::obligations(llvm::MutableArrayRef<LayerObligations> layers) {
  for (LayerObligations &layer : layers) {
    layer.harmless += number();
    layer.harmful += number();
  }
}
