#include "ctxc/Export/PatchDirectory.h"
#include "ctxc/Support/NewDirectory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ctxc;
using llvm::Error;

Error ctxc::writePatchDirectory(llvm::StringRef path, int64_t last,
                                llvm::function_ref<Error(PatchWriter)> make) {
  size_t digits = std::to_string(last).size();
  return writeNewDirectory(path, "a directory of patches", [&](llvm::StringRef directory) {
    return make([&](const Patch &patch, const PatchMetadata &metadata) -> Error {
      std::string number = std::to_string(metadata.position);
      number.insert(0, digits - std::min(digits, number.size()), '0');
      return writePatchFile(pathIn(directory, "position-" + number + ".safetensors"), patch,
                            metadata);
    });
  });
}
