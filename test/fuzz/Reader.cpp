#include "Reader.h"
#include "ctxc/Session/Diagnostic.h"
#include "ctxc/Session/Model.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

using namespace ctxc;
using llvm::StringRef;

llvm::ArrayRef<fuzz::Reader> fuzz::readers() {
  static constexpr Reader all[] = {
      {"safetensors", readSafetensors},
      {"index", readIndex},
      {"config", readConfig},
      {"gguf", readGguf},
      {"tokenizer-json", readTokenizerJson},
      {"sentencepiece", readSentencePiece},
      {"template", readTemplate},
      {"npy", readNpy},
      {"patch", readPatch},
      {"patches", readPatchSet},
      {"adapter", readAdapter},
      {"proof", readProof},
      {"witness", readWitness},
      {"records", readRecords},
      {"mlir", readModelText},
      {"pt2", readArchive},
      {"torch-program", readTorchProgram},
      {"program", readProgram},
  };
  return all;
}

const fuzz::Reader *fuzz::readerNamed(StringRef name) {
  for (const Reader &reader : readers())
    if (reader.name == name)
      return &reader;
  return nullptr;
}

namespace {
/// Made at the first use, removed when the process ends.
struct Folder {
  Folder() {
    StringRef memory = "/dev/shm";
    std::string base = llvm::sys::fs::is_directory(memory) ? memory.str() : "/tmp";
    path = base + "/ctxc-fuzz-XXXXXX";
    fuzz::require(mkdtemp(path.data()), "a folder for temporary files can be made");
  }
  ~Folder() { (void)llvm::sys::fs::remove_directories(path); }
  std::string path;
};
} // namespace

std::string fuzz::scratchPath(StringRef name) {
  static const Folder folder;
  return folder.path + "/" + name.str();
}

std::string fuzz::scratch(StringRef name, StringRef bytes) {
  std::string path = scratchPath(name);
  if (size_t slash = name.rfind('/'); slash != StringRef::npos)
    (void)llvm::sys::fs::create_directories(scratchPath(name.take_front(slash)));
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  require(!code, "a temporary file can be written");
  os << bytes;
  return path;
}

mlir::MLIRContext &fuzz::context() {
  constexpr int most = 1000;
  static std::unique_ptr<mlir::MLIRContext> made;
  static int uses = 0;
  if (made && ++uses % most)
    return *made;
  mlir::DialectRegistry dialects;
  registerModelDialects(dialects);
  made = std::make_unique<mlir::MLIRContext>(dialects, mlir::MLIRContext::Threading::DISABLED);
  made->loadAllAvailableDialects();
  made->getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) {
    ModelDiagnostic told = toModelDiagnostic(diagnostic, "model.mlir");
    require(!text(told).empty(), "a diagnostic has a text");
    return mlir::success();
  });
  return *made;
}

void fuzz::hear(llvm::Error error) {
  if (error)
    require(!llvm::toString(std::move(error)).empty(), "an error has a message");
}

void fuzz::require(bool holds, const char *what) {
  if (holds)
    return;
  llvm::errs() << "expected: " << what << "\n";
  abort();
}
