//===- Logits.h - logits, in the type that they were computed in ----------===//
#ifndef CTXC_PROGRAM_LOGITS_H
#define CTXC_PROGRAM_LOGITS_H

#include "ctxc/Numerics/Metrics.h"
#include "llvm/ADT/ArrayRef.h"
#include <variant>
#include <vector>

namespace ctxc {

/// Logits of one token, or of several, one after the other: float32 from compiled kernels, float64
/// from the reference.
class Logits {
public:
  Logits() = default; ///< none
  Logits(std::vector<float> numbers) : numbers(std::move(numbers)) {}
  Logits(std::vector<double> numbers) : numbers(std::move(numbers)) {}

  size_t size() const {
    return std::visit([](const auto &all) { return all.size(); }, numbers);
  }
  bool empty() const { return size() == 0; }
  bool isFloat32() const { return std::holds_alternative<std::vector<float>>(numbers); }

  /// The numbers without a copy, in the type that they have: check isFloat32() first.
  llvm::ArrayRef<float> floats() const { return std::get<std::vector<float>>(numbers); }
  llvm::ArrayRef<double> float64s() const { return std::get<std::vector<double>>(numbers); }
  /// The numbers in float64, which holds both types exactly.
  std::vector<double> doubles() && {
    if (auto *exact = std::get_if<std::vector<double>>(&numbers))
      return std::move(*exact);
    return {floats().begin(), floats().end()};
  }
  std::vector<double> doubles() const & { return Logits(*this).doubles(); }

  /// The index of the largest, the lowest of equals.
  int64_t largest() const {
    return std::visit([](const auto &all) { return argmax(llvm::ArrayRef(all)); }, numbers);
  }

  bool operator==(const Logits &other) const { return numbers == other.numbers; }

private:
  std::variant<std::vector<float>, std::vector<double>> numbers;
};

} // namespace ctxc

#endif // CTXC_PROGRAM_LOGITS_H
