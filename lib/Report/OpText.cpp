#include "OpText.h"
#include "ctxc/Report/Place.h"
#include "ctxc/Support/InputFile.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace ctxc;

llvm::StringRef ValueNames::line(StringRef file, unsigned number) {
  auto [known, isNew] = files.try_emplace(file);
  if (isNew) {
    llvm::Expected<std::string> text = readSmallFile(file, 1 << 30);
    known->second = text ? std::move(*text) : "";
    llvm::consumeError(text.takeError()); // ops are then named otherwise
  }
  StringRef rest = known->second, found;
  for (unsigned i = 0; i < number; ++i)
    std::tie(found, rest) = rest.split('\n');
  return found;
}

std::string ValueNames::name(Operation *op) {
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    return name.getName().str();
  Place place = placeOf(op->getLoc());
  if (!place.line)
    return "";
  // "  %down = xf.linear": the op's place is where its name starts.
  StringRef before = line(place.file, place.line).take_front(place.column - 1).rtrim();
  if (!before.consume_back("="))
    return "";
  before = before.rtrim();
  StringRef name = before.substr(before.rfind('%') + 1);
  bool isName = !name.empty() && llvm::all_of(name, [](char c) {
    return llvm::isAlnum(c) || StringRef("_-.$").contains(c);
  });
  return isName ? name.str() : "";
}

std::string ctxc::opText(Operation *op) {
  std::string printed;
  llvm::raw_string_ostream(printed) << OpWithFlags(op, OpPrintingFlags().useLocalScope());
  StringRef text = printed;
  StringRef full = op->getName().getStringRef();
  text = text.substr(text.find(full) + full.size());
  text = text.take_front(text.find(" : ")); // without the types

  std::string shown = op->getName().stripDialect().str();
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words, " ,");
  bool leading = true;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    bool isWord = llvm::isAlpha(word[0]) || word[0] == '"';
    leading &= isWord;
    double number;
    bool followed = i + 1 < words.size() && !words[i + 1].getAsDouble(number);
    if (followed && isWord && word != "eps")
      llvm::raw_string_ostream(shown) << " " << word << llvm::format(" %g", number);
    else if (leading && !followed)
      shown += " " + word.take_front(word.find('(')).trim('"').str();
    if (followed)
      ++i;
  }
  return shown;
}

std::string ctxc::shapeText(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  std::string text;
  if (type)
    for (int64_t size : type.getShape())
      text += (text.empty() ? "" : "×") + std::to_string(size);
  return text;
}
