// libFuzzer's entry points: ctxc-fuzz --reader=NAME and libFuzzer's own arguments.
#include "Mutate.h"
#include "Reader.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <cstring>

using namespace ctxc::fuzz;
using llvm::StringRef;

static const Reader *reader;

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  for (int i = 1; i < *argc; ++i) {
    StringRef argument = (*argv)[i];
    if (argument.consume_front("--reader="))
      reader = readerNamed(argument);
  }
  if (reader)
    return 0;
  llvm::errs() << "expected --reader=NAME, of";
  for (const Reader &each : readers())
    llvm::errs() << " " << each.name;
  llvm::errs() << "\n";
  exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  reader->read(StringRef(reinterpret_cast<const char *>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  std::string bytes(reinterpret_cast<const char *>(data), size);
  Random random(seed);
  std::string changed = mutate(reader->name, bytes, most, random);
  if (changed.empty() || changed.size() > most)
    return LLVMFuzzerMutate(data, size, most);
  memcpy(data, changed.data(), changed.size());
  return changed.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize,
                                            const uint8_t *second, size_t secondSize, uint8_t *out,
                                            size_t most, unsigned seed) {
  Random random(seed);
  StringRef a(reinterpret_cast<const char *>(first), firstSize);
  StringRef b(reinterpret_cast<const char *>(second), secondSize);
  std::string mixed = cross(reader->name, a, b, random);
  if (mixed.size() > most)
    return 0;
  memcpy(out, mixed.data(), mixed.size());
  return mixed.size();
}
