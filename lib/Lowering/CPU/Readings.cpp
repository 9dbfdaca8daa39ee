#include "ctxc/Lowering/Readings.h"
#include "ctxc/Support/Error.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using llvm::StringRef;

static constexpr Readings::Kind kindsOfMatrices[] = {
    {"f32", &Readings::f32},          {"half", &Readings::half},
    {"blocks", &Readings::blocks},    {"k-blocks", &Readings::kBlocks},
    {"long-f32", &Readings::longF32}, {"long-half", &Readings::longHalf}};

static constexpr llvm::StringLiteral longFromName = "long-from";

llvm::ArrayRef<Readings::Kind> Readings::kinds() { return kindsOfMatrices; }

std::string Reading::text() const { return std::to_string(streams) + (asksAhead ? "+" : ""); }

Readings Readings::ahead() {
  Readings readings;
  readings.half = {1, true};
  readings.kBlocks = {2, true};
  readings.blocks = readings.longF32 = {4, true};
  readings.longHalf = {8, true};
  return readings;
}

Readings Readings::ofSixteenLanes() {
  Readings readings;
  readings.f32 = readings.half = readings.blocks = readings.kBlocks = {4, false};
  readings.longHalf = {4, true};
  readings.longFrom = 16 << 10;
  return readings;
}

Readings Readings::ofEightLanes() {
  Readings readings;
  readings.f32 = readings.half = readings.blocks = readings.kBlocks = {4, false};
  readings.longF32 = readings.longHalf = {8, false};
  return readings;
}

bool Readings::operator==(const Readings &other) const {
  return longFrom == other.longFrom && llvm::all_of(kinds(), [&](const Kind &kind) {
           return this->*kind.member == other.*kind.member;
         });
}

std::string Readings::text() const {
  std::string text;
  for (const Kind &kind : kinds())
    text += kind.name.str() + ":" + (this->*kind.member).text() + ",";
  return text + longFromName.str() + ":" + std::to_string(longFrom);
}

llvm::Expected<Readings> Readings::parse(StringRef text) {
  Readings readings;
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    auto [name, number] = part.split(':');
    if (name == longFromName) {
      if (number.getAsInteger(10, readings.longFrom) || readings.longFrom <= 0)
        return makeError(name + ": found '" + number + "', expected a positive number of bytes");
      continue;
    }
    const Kind *kind =
        llvm::find_if(kinds(), [name = name](const Kind &each) { return each.name == name; });
    if (kind == kinds().end())
      return makeError(
          "found '" + name + "', expected " +
          llvm::join(llvm::map_range(kinds(), [](auto &each) { return each.name; }), ", ") + ", " +
          longFromName);
    Reading &reading = readings.*kind->member;
    reading.asksAhead = number.consume_back("+");
    if (number.getAsInteger(10, reading.streams) ||
        !llvm::is_contained({1, 2, 4, 8}, reading.streams))
      return makeError(name + ": found '" + number +
                       "', expected 1, 2, 4 or 8 streams, and a + "
                       "behind it where lines are asked for ahead");
  }
  return readings;
}
