#include "MarkCode.h"
#include "ctxc/Support/OwnFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace ctxc;
using llvm::StringRef;

/// A module of SPIR-V, with an OpSourceExtension in front of its other debug instructions.
static std::string markSpirv(StringRef code, StringRef mark) {
  constexpr uint16_t opSourceExtension = 4;
  // OpExtension, OpExtInstImport, OpMemoryModel, OpEntryPoint, OpExecutionMode, OpCapability and
  // OpExecutionModeId come before these.
  constexpr uint16_t before[] = {10, 11, 14, 15, 16, 17, 331};
  constexpr size_t headWords = 5;
  llvm::SmallVector<uint32_t, 0> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), words.size() * 4);
  size_t at = headWords;
  while (at < words.size() && words[at] >> 16 && llvm::is_contained(before, uint16_t(words[at])))
    at += words[at] >> 16;
  if (words.size() < headWords || at > words.size())
    return code.str();
  llvm::SmallVector<uint32_t> instruction(1 + mark.size() / 4 + 1, 0); // the text ends in a zero
  instruction[0] = instruction.size() << 16 | opSourceExtension;
  std::memcpy(&instruction[1], mark.data(), mark.size());
  words.insert(words.begin() + at, instruction.begin(), instruction.end());
  return std::string(reinterpret_cast<const char *>(words.data()), words.size() * 4);
}

std::string driver::markCode(StringRef stage, StringRef code) {
  std::string mark = (ownMark + " compile").str();
  if (stage == "spirv")
    return markSpirv(code, mark);
  StringRef comment =
      llvm::StringSwitch<StringRef>(stage).Case("llvm", ";").Case("asm", "#").Default("//");
  std::string line = (comment + " " + mark + ".\n").str();
  if (llvm::is_contained({"obj", "shared", "hsaco"}, stage))
    return (code + "\n" + line).str();
  return (line + code).str();
}
