#include "ctxc/Lowering/ReadingsCache.h"
#include "ctxc/Lowering/KernelCache.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace ctxc;

ReadingsCache ReadingsCache::ofUser() {
  return ReadingsCache(KernelCache::ofUser().isOn() ? userCacheDirectory() + "/readings" : "");
}

static std::string nameOf(const CpuTarget &target, int threads) {
  const std::string text = target.cpu + "\n" + target.features;
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(llvm::ArrayRef(digest).take_front(8), /*LowerCase=*/true) + "-" +
         std::to_string(threads) + (threads == 1 ? "-thread" : "-threads");
}

std::optional<Readings> ReadingsCache::find(const CpuTarget &target, int threads) const {
  std::optional<std::string> text = files.find(nameOf(target, threads));
  if (!text)
    return std::nullopt;
  llvm::Expected<Readings> readings = Readings::parse(*text);
  if (readings)
    return *readings;
  llvm::consumeError(readings.takeError()); // of another version
  return std::nullopt;
}

void ReadingsCache::insert(const CpuTarget &target, int threads, const Readings &readings) const {
  files.insert(nameOf(target, threads), readings.text());
}
