//===- Input.h - what stands at a position: a token, or an embedding ------===//
//
// A model reads tokens. In place of a token it can be given an embedding, such as an image's soft
// token. The embedding replaces the token's row of the embedding table, multiplied by the model's
// constant factor if it has one. Whatever the model computes after that (a learned position, a
// norm, a projection) it computes for a given embedding too. Hugging Face's `inputs_embeds` are
// these embeddings (except for Granite, which multiplies them by its factor).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_PROGRAM_INPUT_H
#define CTXC_PROGRAM_INPUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ctxc {

/// A token of the vocabulary, or an embedding in its place. Cheap to copy: copies share the
/// numbers.
class Input {
public:
  Input(int64_t token) : id(token) {}
  static Input ofEmbedding(std::vector<double> numbers) {
    Input input(-1);
    input.numbers = std::make_shared<const std::vector<double>>(std::move(numbers));
    return input;
  }

  bool isEmbedding() const { return numbers != nullptr; }
  /// The token's id; −1 for an embedding.
  int64_t token() const { return id; }
  /// The embedding's numbers; empty for a token.
  llvm::ArrayRef<double> embedding() const {
    return numbers ? llvm::ArrayRef<double>(*numbers) : llvm::ArrayRef<double>();
  }

  friend bool operator==(const Input &a, const Input &b) {
    return a.id == b.id && a.isEmbedding() == b.isEmbedding() && a.embedding() == b.embedding();
  }

private:
  int64_t id;
  std::shared_ptr<const std::vector<double>> numbers;
};

inline std::vector<Input> toInputs(llvm::ArrayRef<int64_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

/// The tokens' ids, −1 for embeddings.
inline std::vector<int64_t> tokensOf(llvm::ArrayRef<Input> inputs) {
  std::vector<int64_t> tokens;
  for (const Input &input : inputs)
    tokens.push_back(input.token());
  return tokens;
}

inline bool hasEmbeddings(llvm::ArrayRef<Input> inputs) {
  return llvm::any_of(inputs, [](const Input &input) { return input.isEmbedding(); });
}

/// SHA-256, in hexadecimal digits, of the embeddings among `inputs`, in order, as float64 in
/// little-endian bytes; "" if there is none. The digest does not depend on the float type in
/// which a file stores them.
std::string digestOfEmbeddings(llvm::ArrayRef<Input> inputs);

} // namespace ctxc

#endif // CTXC_PROGRAM_INPUT_H
