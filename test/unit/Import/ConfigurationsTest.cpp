// Real configs of the supported families, from public repositories: each must import, or be refused
// for the reason that configurations.jsonl states.
#include "Fixture.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace ctxc;
using namespace ctxc::test;

namespace {

using Configurations = ImportTest;

TEST_F(Configurations, OfPublicRepositoriesAreImportedOrRefusedForTheRightReason) {
  auto table = MemoryBuffer::getFile(CTXC_SOURCE_DIR "/test/unit/Import/configurations.jsonl");
  ASSERT_TRUE(bool(table));
  SmallVector<StringRef> lines;
  (*table)->getBuffer().split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  ImportOptions check;
  check.needWeights = false;
  int64_t imports = 0;
  StringSet<> families;
  for (StringRef line : lines) {
    json::Object entry = std::move(*cantFail(json::parse(line)).getAsObject());
    StringRef from = *entry.getString("from");
    SCOPED_TRACE(from.str());
    families.insert(*entry.getObject("config")->getString("model_type"));
    writeConfig(*entry.getObject("config"));
    std::string message = imported(directory(), check);
    imports += StringRef(message).starts_with("module {");
    // A line of the message for each key that is to be refused, and no other.
    const json::Object &refused = *entry.getObject("refused");
    SmallVector<StringRef> reasons;
    StringRef(message).split(reasons, '\n');
    for (const auto &pair : refused) {
      std::string key = ("key '" + StringRef(pair.first) + "' = ").str();
      std::string reason = pair.second.getAsString()->str();
      EXPECT_TRUE(llvm::any_of(
          reasons, [&](StringRef line) { return line.contains(key) && line.contains(reason); }))
          << key << " " << reason << "\n"
          << message;
    }
    if (refused.empty())
      EXPECT_TRUE(StringRef(message).starts_with("module {")) << message;
    else
      EXPECT_EQ(reasons.size(), refused.size()) << message;
  }
  EXPECT_GE(lines.size(), 150u);
  EXPECT_GE(imports, 100);
  EXPECT_GE(families.size(), 25u);
}

} // namespace
