#include "lib/Runtime/GPU/Devices.h"
#include "ctxc/Support/Devices.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using llvm::StringRef;

namespace {
struct Entry {
  StringRef name;
  llvm::Expected<std::unique_ptr<Device>> (*open)(StringRef rest, int number);
};
} // namespace

static constexpr Entry entries[] = {
#define CTXC_DEVICE(NAME, TEXT, EXAMPLES) {#TEXT, open##NAME##Device},
#include "ctxc/Support/Devices.def"
};

llvm::Expected<std::unique_ptr<Device>> Device::open(StringRef target, int number) {
  for (const Entry &entry : entries)
    if (target.split(':').first == entry.name)
      return entry.open(target.split(':').second, number);
  return makeError("found '" + target + "', expected " + anyOf(deviceNames) +
                   ": there is no other device to run on");
}
