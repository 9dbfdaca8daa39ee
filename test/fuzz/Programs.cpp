// Exported programs, on the way of `ctxc check`: read, raised and judged.
#include "Reader.h"
#include "ctxc/Import/Import.h"
#include "ctxc/Planning/ModelVerdict.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::fuzz;
using llvm::StringRef;

static void check(const std::string &path) {
  auto imported = importModel(path, context());
  if (!heard(imported))
    return;
  std::string text;
  llvm::raw_string_ostream os(text);
  printModel(*imported->module, os);
  require(!groupVerdicts(checkModel(*imported->module)).empty(), "a program has a block");
}

void fuzz::readArchive(StringRef bytes) { check(scratch("model.pt2", bytes)); }

namespace {
/// A zip file whose entries are stored.
class Zip {
public:
  void add(StringRef name, StringRef content) {
    std::string fields;
    put<uint16_t>(fields, 20); // the version that reads it
    put<uint16_t>(fields, 0);
    put<uint16_t>(fields, 0); // stored
    put<uint32_t>(fields, 0x21 << 16);
    put<uint32_t>(fields, llvm::crc32(llvm::arrayRefFromStringRef(content)));
    put<uint32_t>(fields, content.size());
    put<uint32_t>(fields, content.size());
    put<uint16_t>(fields, name.size());
    put<uint16_t>(fields, 0);
    directory += "PK\1\2";
    put<uint16_t>(directory, 20);
    directory += fields;
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint32_t>(directory, 0);
    put<uint32_t>(directory, file.size());
    directory += name;
    file += "PK\3\4";
    file += fields;
    file += name;
    file += content;
    ++count;
  }
  std::string finish() const {
    std::string end = "PK\5\6";
    put<uint32_t>(end, 0);
    put<uint16_t>(end, count);
    put<uint16_t>(end, count);
    put<uint32_t>(end, directory.size());
    put<uint32_t>(end, file.size());
    put<uint16_t>(end, 0);
    return file + directory + end;
  }

private:
  template <typename T> static void put(std::string &to, T number) {
    char bytes[sizeof(T)];
    llvm::support::endian::write<T>(bytes, number, llvm::endianness::little);
    to.append(bytes, sizeof(T));
  }
  std::string file, directory;
  uint16_t count = 0;
};
} // namespace

void fuzz::readTorchProgram(StringRef bytes) {
  Zip zip;
  zip.add("model/models/model.json", bytes);
  readArchive(zip.finish());
}

void fuzz::readProgram(StringRef bytes) {
  std::string header;
  llvm::raw_string_ostream os(header);
  os << llvm::json::Value(llvm::json::Object{
      {"__metadata__", llvm::json::Object{{"format", "ctxc program"},
                                          {"version", "1"},
                                          {"program", llvm::json::fixUTF8(bytes)},
                                          {"numbers", R"({"why": "there are none"})"}}}});
  std::string length(8, '\0');
  llvm::support::endian::write64le(length.data(), header.size());
  check(scratch("model.ctxc", length + header));
}
