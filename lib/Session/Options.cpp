#include "ctxc/Session/Options.h"
#include "llvm/Support/raw_ostream.h"

using namespace ctxc;

char OptionError::ID = 0;
char VerdictAgainst::ID = 0;

llvm::StringRef ctxc::stringify(Option option) {
  switch (option) {
  case Option::Storage:
    return "storage type";
  case Option::Weights:
    return "weights";
  case Option::Parameters:
    return "parameters to patch";
  case Option::StartLayer:
    return "start layer";
  case Option::RoundedPrompts:
    return "rounded prompts";
  case Option::SplitPrompts:
    return "split prompts";
  case Option::IntegerProducts:
    return "integer products";
  case Option::RoundedCache:
    return "rounded cache";
  case Option::LargePages:
    return "large pages";
  case Option::Engine:
    return "engine";
  case Option::CompileTarget:
    return "target";
  case Option::Prefix:
    return "prefix";
  case Option::Rows:
    return "rows";
  }
  llvm_unreachable("an option of no known kind");
}

void OptionError::log(llvm::raw_ostream &os) const { os << stringify(option) << ": " << problem; }

void VerdictAgainst::log(llvm::raw_ostream &os) const {
  os << (reasons.empty() ? "a block has no plan" : llvm::StringRef(reasons).rtrim());
}
