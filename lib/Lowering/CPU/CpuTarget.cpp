#include "ctxc/Lowering/CpuTarget.h"
#include "ctxc/Numerics/CpuFeatures.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include <cstdlib>

using namespace ctxc;
using llvm::StringRef;

static constexpr llvm::StringLiteral askable[] = {
#define CTXC_CPU_FEATURE(NAME, WORD, BIT, REGISTERS) NAME,
#include "ctxc/Numerics/CpuFeatures.def"
};

/// The features that every x86-64 processor has.
static constexpr llvm::StringLiteral baseline[] = {"64bit", "cmov", "cx8",  "fxsr", "mmx",
                                                   "nopl",  "sse",  "sse2", "x87"};

/// What kernels use of AArch64 beyond its baseline.
static constexpr llvm::StringLiteral ofArm[] = {"dotprod", "i8mm", "bf16"};

/// What products of tiles of bfloat16 need.
static constexpr llvm::StringLiteral tileFeatures[] = {"amx-tile", "amx-bf16"};

static llvm::Triple processTriple() { return llvm::Triple(llvm::sys::getProcessTriple()); }

/// Whether a matrix is read faster when its lines are asked for ahead. That was measured on a
/// Sapphire Rapids (bench/gemv.cpp); of all processors that LLVM knows, those with arithmetic in
/// float16 are that one and its successors. Others ask ahead by themselves, or were slower. The
/// processor's name does not tell: virtual machines often hide it.
static bool isFasterAhead(const llvm::StringSet<> &has) { return has.contains("avx512fp16"); }

/// How far ahead keys and values are asked for where matrices are not, as measured on a Zen 4.
/// Elsewhere it is CpuTarget's default, as measured on a Sapphire Rapids: requests farther ahead
/// interrupt the processor's own there, which go on within a page. Where memory is read from
/// end to end, a Zen 4 is faster when it asks by itself.
static constexpr int64_t farAhead = 8192;

/// Sets the vector registers that an x86-64 processor with these features has.
static void setVectors(CpuTarget &target, const llvm::StringSet<> &has) {
  target.lanes = has.contains("avx") ? 8 : 4;
  target.registers = 16;
  target.fma = has.contains("fma");
  target.halfPrecision = has.contains("f16c");
  if (has.contains("avx512f") && has.contains("avx512bw") && has.contains("avx512vl")) {
    target.lanes = 16;
    target.registers = 32;
    target.bfloatPairs = has.contains("avx512bf16");
    target.tiles = target.bfloatPairs && llvm::all_of(tileFeatures, [&](StringRef feature) {
                     return has.contains(feature);
                   });
    if (isFasterAhead(has)) {
      target.readings = Readings::ahead();
    } else {
      target.readings = Readings::ofSixteenLanes();
      target.bytesAhead = farAhead;
      target.asksInLine = false;
    }
  } else if (target.lanes == 8) {
    target.readings = Readings::ofEightLanes();
  }
}

static void setNeonVectors(CpuTarget &target, const llvm::StringSet<> &has) {
  target.lanes = 4;
  target.registers = 32;
  target.fma = target.halfPrecision = true;
  target.bfloatPairs = has.contains("bf16");
}

static void append(std::string &features, llvm::Twine feature) {
  features += ((features.empty() ? "" : ",") + feature).str();
}

CpuTarget CpuTarget::host() {
  CpuTarget target;
  // Only a single digit from 0 to 3 counts; any other value leaves the level as it is.
  if (const char *wish = std::getenv("CTXC_KERNEL_OPT"); wish && *wish >= '0' && *wish <= '3')
    target.optimisation = *wish - '0';
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringSet<> has;
  const char *bytes = std::getenv("CTXC_VNNI");
  bool multipliesBytes = !(bytes && StringRef(bytes) == "off");
  for (auto &feature : llvm::sys::getHostCPUFeatures()) {
    bool isThere = feature.second && (multipliesBytes || !feature.first().ends_with("vnni"));
    append(target.features, (isThere ? "+" : "-") + feature.first());
    if (isThere)
      has.insert(feature.first());
  }
  if (!processTriple().isX86()) {
    setNeonVectors(target, has);
    return target;
  }
  setVectors(target, has);
  const char *tiles = std::getenv("CTXC_AMX");
  target.tiles = target.tiles && !(tiles && StringRef(tiles) == "off") && requestTiles();
  if (target.lanes == 16)
    append(target.features, "-prefer-256-bit");
  return target;
}

/// An x86-64 processor with those of the features `has` that generated code can test for at run
/// time. The other features are not used.
static CpuTarget x86Target(StringRef cpu, const llvm::StringSet<> &has) {
  CpuTarget target;
  target.triple = processTriple().isX86() ? processTriple().str() : "x86_64-unknown-linux-gnu";
  target.cpu = cpu.str();
  llvm::SmallVector<StringRef> off;
  for (auto &feature : has)
    if (!llvm::is_contained(askable, feature.first()) &&
        !llvm::is_contained(baseline, feature.first()))
      off.push_back(feature.first());
  llvm::sort(off);
  for (StringRef feature : off)
    append(target.features, "-" + feature);
  for (StringRef feature : askable)
    if (has.contains(feature)) {
      append(target.features, "+" + feature);
      target.needed.push_back(feature);
    }
  setVectors(target, has);
  if (target.lanes == 16)
    append(target.features, "-prefer-256-bit");
  return target;
}

CpuTarget CpuTarget::x86(StringRef cpu, llvm::ArrayRef<StringRef> features) {
  llvm::StringSet<> has;
  has.insert(features.begin(), features.end());
  return x86Target(cpu, has);
}

CpuTarget CpuTarget::withoutTiles() const {
  CpuTarget target = *this;
  target.tiles = false;
  for (StringRef feature : tileFeatures) {
    llvm::erase(target.needed, feature);
    if (size_t at = target.features.find(("+" + feature).str()); at != std::string::npos)
      target.features[at] = '-';
  }
  return target;
}

/// An AArch64 processor with those of the features `has` that kernels use.
static CpuTarget aarch64Target(const llvm::StringSet<> &has) {
  CpuTarget target;
  target.triple = processTriple().isAArch64() ? processTriple().str() : "aarch64-unknown-linux-gnu";
  target.cpu = "generic";
  target.features = "+neon";
  for (StringRef feature : ofArm)
    if (has.contains(feature)) {
      append(target.features, "+" + feature);
      target.needed.push_back(feature);
    }
  setNeonVectors(target, has);
  return target;
}

/// The features that follow `aarch64` in a target's name, or none where one is not known.
static std::optional<llvm::StringSet<>> armFeaturesOf(StringRef rest) {
  llvm::StringSet<> has;
  while (rest.consume_front("+")) {
    StringRef feature = rest.take_until([](char c) { return c == '+'; });
    if (!llvm::is_contained(ofArm, feature))
      return std::nullopt;
    has.insert(feature);
    rest = rest.drop_front(feature.size());
  }
  if (!rest.empty())
    return std::nullopt;
  return has;
}

static std::vector<StringRef> x86Names() {
  llvm::SmallVector<StringRef> all;
  llvm::X86::fillValidCPUArchList(all, /*Only64Bit=*/true);
  std::vector<StringRef> names(all.begin(), all.end());
  llvm::sort(names);
  return names;
}

llvm::Expected<CpuTarget> CpuTarget::named(StringRef name) {
  bool native = name == "native";
  llvm::StringSet<> has;
  if (StringRef rest = name; rest.consume_front("aarch64"))
    if (auto features = armFeaturesOf(rest))
      return aarch64Target(*features);
  if (native) {
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      if (feature.second)
        has.insert(feature.first());
    if (!processTriple().isX86())
      return aarch64Target(has);
    return x86Target(llvm::sys::getHostCPUName(), has);
  }
  std::vector<StringRef> names = x86Names();
  if (!llvm::is_contained(names, name))
    return makeError("found '" + name + "', expected native, aarch64, aarch64+" +
                     llvm::join(std::begin(ofArm), std::end(ofArm), "+") + ", " +
                     llvm::join(names, ", "));
  llvm::SmallVector<StringRef> features;
  llvm::X86::getFeaturesForCPU(name, features);
  llvm::StringMap<bool> implied;
  for (StringRef feature : features) {
    implied[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, implied);
  }
  for (auto &feature : implied)
    if (feature.second)
      has.insert(feature.first());
  return x86Target(name, has);
}

bool CpuTarget::isAArch64() const { return llvm::Triple(triple).isAArch64(); }

bool CpuTarget::isOfThisArchitecture() const {
  return triple.empty() || llvm::Triple(triple).getArch() == processTriple().getArch();
}
