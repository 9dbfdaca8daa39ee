#include "ctxc/Program/Input.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"
#include <cstring>

using namespace ctxc;

std::string ctxc::digestOfEmbeddings(llvm::ArrayRef<Input> inputs) {
  if (!hasEmbeddings(inputs))
    return "";
  llvm::SHA256 sum;
  for (const Input &input : inputs)
    for (double number : input.embedding()) {
      uint64_t bits;
      memcpy(&bits, &number, sizeof bits);
      uint8_t bytes[sizeof bits];
      llvm::support::endian::write64le(bytes, bits);
      sum.update(bytes);
    }
  return llvm::toHex(sum.final(), /*LowerCase=*/true);
}
