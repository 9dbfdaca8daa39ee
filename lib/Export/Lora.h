//===- Lora.h - the factors of a LoRA, from a patch -----------------------===//
#ifndef CTXC_LIB_EXPORT_LORA_H
#define CTXC_LIB_EXPORT_LORA_H

#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Export/Adapter.h"
#include "ctxc/Program/Adapter.h"

namespace ctxc {

/// One matrix's change B A. The vectors are the patch's own.
struct LoraFactors {
  llvm::StringRef module;      ///< the parameter without ".weight"
  llvm::ArrayRef<double> a, b; ///< as many numbers as the matrix has inputs, and outputs
};

/// The patch's matrices, in its order. Fails where checkLora does.
llvm::Expected<std::vector<LoraFactors>> loraFactors(const Patch &patch, const AdapterModel &model);

/// The factors a (rank, in) and b (out, rank) of a change.
std::pair<std::vector<float>, std::vector<float>> loraFactors(const MatrixChange &change);

/// The adapter's prefix as a file's metadata has it: ids, divided by commas.
std::string prefixText(const ctxc::Adapter &adapter);

/// `prefix`, and `seen` where texts see only some of its tokens.
std::map<std::string, std::string> frontStrings(const ctxc::Adapter &adapter);

/// The rows of `matrix` as columns.
std::vector<float> transposed(llvm::ArrayRef<float> matrix, int64_t rows);

/// A tensor of float32, which is written with its own copy of `values`.
TensorSource floats(std::string name, llvm::SmallVector<int64_t, 4> shape,
                    std::vector<float> values);

/// `values` as float32, little endian.
llvm::Error writeFloat32(llvm::raw_ostream &os, llvm::ArrayRef<double> values);

} // namespace ctxc

#endif // CTXC_LIB_EXPORT_LORA_H
