//===- Reader.h - what reads untrusted bytes, as functions of bytes ---------===//
//
// One function for each format. It gives the bytes to the library as a user's file, and uses what
// comes out, so that a size that was believed is found out. A function returns for whatever input:
// an error of the library is a good result. libFuzzer calls these functions (LibFuzzer.cpp), and so
// does the replay of the corpus (Replay.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_TEST_FUZZ_READER_H
#define CTXC_TEST_FUZZ_READER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir {
class MLIRContext;
}

namespace ctxc::fuzz {

struct Reader {
  llvm::StringRef name; ///< of its corpus and its dictionary
  void (*read)(llvm::StringRef bytes);
};

/// In the order in which tools/fuzz.sh runs them.
llvm::ArrayRef<Reader> readers();
/// Null where there is none.
const Reader *readerNamed(llvm::StringRef name);

void readSafetensors(llvm::StringRef bytes);
void readIndex(llvm::StringRef bytes);
void readGguf(llvm::StringRef bytes);
void readNpy(llvm::StringRef bytes);
void readConfig(llvm::StringRef bytes);
void readTokenizerJson(llvm::StringRef bytes);
void readSentencePiece(llvm::StringRef bytes);
/// A chat template, or the tokenizer_config.json that has one.
void readTemplate(llvm::StringRef bytes);
void readPatch(llvm::StringRef bytes);
/// A file of several patches, or of one.
void readPatchSet(llvm::StringRef bytes);
/// adapter_config.json, then a zero byte, then adapter_model.safetensors.
void readAdapter(llvm::StringRef bytes);
void readProof(llvm::StringRef bytes);
/// The JSON, then a zero byte, then the safetensors file beside it.
void readWitness(llvm::StringRef bytes);
void readRecords(llvm::StringRef bytes);
/// A .pt2 file.
void readArchive(llvm::StringRef bytes);
/// The program of a .pt2 file, in JSON.
void readTorchProgram(llvm::StringRef bytes);
/// The program of one of ctxc's own files, in JSON.
void readProgram(llvm::StringRef bytes);
/// A model as text: parsed, verified, checked, printed and parsed again.
void readModelText(llvm::StringRef bytes);

/// Writes `bytes` as the file `name` (which may be in a folder) in a folder of this process that is
/// in memory where the system offers that; returns its path.
std::string scratch(llvm::StringRef name, llvm::StringRef bytes);
/// The path of `name` there.
std::string scratchPath(llvm::StringRef name);

/// A context with all dialects, whose diagnostics are heard. To make one takes longer than most
/// inputs, and it keeps every attribute that it has seen: now and then it is a new one. What a
/// reader holds of it must be gone before its next call.
mlir::MLIRContext &context();

/// Every error says something.
void hear(llvm::Error error);

/// Whether `value` is one; hears its error.
template <typename T> bool heard(llvm::Expected<T> &value) {
  if (value)
    return true;
  hear(value.takeError());
  return false;
}

/// Ends the process, as a finding, unless `holds`.
void require(bool holds, const char *what);

} // namespace ctxc::fuzz

#endif // CTXC_TEST_FUZZ_READER_H
