#include "lib/Runtime/GPU/Wanted.h"
#include "ctxc/Lowering/GPU.h"

using namespace ctxc;
using llvm::Expected;
using llvm::StringRef;

Expected<Wanted> Wanted::parse(StringRef brand, StringRef rest) {
  Wanted wanted;
  llvm::SmallVector<StringRef, 2> words;
  rest.split(words, ':', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    if (word == "checked") {
      wanted.isChecked = true;
      continue;
    }
    auto target = GpuTarget::named((brand + ":" + word).str());
    if (!target)
      return target.takeError();
    wanted.architecture = word.str();
  }
  return wanted;
}
