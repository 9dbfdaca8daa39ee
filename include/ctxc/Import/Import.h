//===- Import.h - a model as a module of the xf dialect -------------------===//
//
// Turns what a user names as MODEL, a Hugging Face directory, an exported PyTorch program or an
// .mlir file, into the IR that analysis, planning and the executors take.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_IMPORT_IMPORT_H
#define CTXC_IMPORT_IMPORT_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/KeyRules.h"
#include "ctxc/Import/SourceNumbers.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <optional>

namespace ctxc {

/// The keys of config.json that no family reads.
extern const KeyTable configKeys;

struct ImportOptions {
  /// The storage type of every weight in the IR: F32, BF16 or F16. By default
  /// each has the type that the checkpoint stores. It has no effect on .mlir files.
  std::optional<DType> storage;
  /// True: a directory without weight files is an error. False: config.json alone
  /// suffices; types then come from its `dtype`, and are f32 if it has none.
  bool needWeights = true;
};

/// A parameter of a program's file that is a part of a tensor of the author's: its entries are
/// those at offset + Σ index · stride, row-major, of the row-major entries of `of`.
struct StoredPart {
  std::string name, of;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t offset = 0;
  llvm::SmallVector<int64_t, 4> dims, strides;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Checkpoint> checkpoint; ///< null without weight files
  /// For a program's file: untrained tensors that are a part of the program, such as tables of
  /// positions, and that other weights need not have. Null if there are none.
  std::unique_ptr<Checkpoint> constants;
  std::vector<std::string> inProgram; ///< those whose numbers the module has, and no weights change
  std::vector<StoredPart> parts;      ///< what the parameters are of tensors in other weights
  std::shared_ptr<const void> memory; ///< holds the tensors of a program's file
  /// For a program's file: its source's numbers for it, and with the weights what identifies these.
  std::optional<SourceNumbers> source;
  std::string weightsDigest;
  /// Messages that the user should see and that are not errors.
  std::vector<std::string> warnings;
  /// The source lines, by file and number, that the model itself quotes.
  std::map<std::pair<std::string, unsigned>, std::string> sourceLines;
};

/// Imports `path`:
/// - a directory: a Hugging Face checkpoint of a family in docs/families.md. The
///   module holds one xf.model and an xf.block for each structure of layer. All
///   problems of the config are reported together, and so are all of the tensors.
/// - a file *.ctxc, as ctxc's exporters write it (docs/program-file.md), or *.pt2, as torch.export
///   writes it: an xf.block for each structure of layer, and an
///   xf.model if it reads tokens. Locations are lines of its Python files. Its weights are read if
///   it has them and needWeights is set.
/// - a file *.mlir, which is parsed and verified; problems go to the context's diagnostic handler.
///   It holds at most one xf.model, and at least one xf.model or xf.block.
llvm::Expected<ImportedModel> importModel(llvm::StringRef path, mlir::MLIRContext &context,
                                          const ImportOptions &options = {});

/// Imports an open checkpoint, as importModel does for its directory or file.
llvm::Expected<ImportedModel> importCheckpoint(std::unique_ptr<Checkpoint> checkpoint,
                                               mlir::MLIRContext &context,
                                               const ImportOptions &options = {});

/// The values of config.json's model_type that importModel reads by an importer, sorted.
std::vector<llvm::StringRef> supportedModelTypes();

/// Those that it reads by a description of the type's program, sorted.
std::vector<llvm::StringRef> describedModelTypes();

/// Those of text and of images or sounds, whose text model is read.
std::vector<llvm::StringRef> wrapperModelTypes();

/// Whether a path is named as the file of a program.
bool isProgramFile(llvm::StringRef path);

/// Prints with value names that read like the equations (`%z`, `%gate_proj`).
/// The text parses back to the same module.
void printModel(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace ctxc

#endif // CTXC_IMPORT_IMPORT_H
