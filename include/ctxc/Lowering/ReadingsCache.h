//===- ReadingsCache.h - the readings that `ctxc tune` chose ---------------===//
//
// Stores the readings that `ctxc tune` chose (ctxc/Runtime/Tune.h) for a processor and a number of
// threads, in readings/ below the user's cache directory. Kernels that are compiled for this
// machine use them.
//
//===----------------------------------------------------------------------===//
#ifndef CTXC_LOWERING_READINGSCACHE_H
#define CTXC_LOWERING_READINGSCACHE_H

#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Support/UserCache.h"
#include <optional>

namespace ctxc {

class ReadingsCache {
public:
  /// Uses `directory`, as UserCache does.
  explicit ReadingsCache(std::string directory) : files(std::move(directory)) {}
  /// The user's own cache; off if the kernels' cache is off.
  static ReadingsCache ofUser();

  bool isOn() const { return files.isOn(); }
  llvm::StringRef path() const { return files.path(); }

  /// None if nothing was measured for this processor and number of threads.
  std::optional<Readings> find(const CpuTarget &target, int threads) const;
  void insert(const CpuTarget &target, int threads, const Readings &readings) const;

private:
  UserCache files;
};

} // namespace ctxc

#endif // CTXC_LOWERING_READINGSCACHE_H
