// Adapters of exported programs: what is written is read, and what is refused.
#include "Fixture.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Export/LastingAdapter.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct NamedChanges : PatchDirectory {
  static Adapter adapter() {
    Adapter adapter;
    adapter.matrices = {{"layers.0.w", 2, 3, 2, {1, -2, 3, 4}, {0.5, 0.25, 4, 1, 2, 3}}};
    adapter.vectors = {{"layers.0.norm", {1, 2}}};
    adapter.prefix = {2, 17};
    return adapter;
  }
  std::string write(const Adapter &adapter) {
    return messageOf(
        writeLastingAdapter(path("a"), adapter, *checkpoint(), {{"card.txt", "good"}}));
  }
  std::string read() { return messageOf(readLastingAdapter(path("a"), *checkpoint(), {})); }
  /// What is said of a file with these tensors.
  void expectRefused(std::vector<TensorSource> tensors, const char *message,
                     const char *version = "1") {
    ASSERT_EQ(
        messageOf(writeSafetensors(path("a/adapter_model.safetensors"), std::move(tensors),
                                   {{"format", "ctxc-adapter"}, {"format_version", version}})),
        "");
    EXPECT_HAS(read(), message);
  }
  static TensorSource tensor(StringRef name, SmallVector<int64_t, 4> shape, double value = 1) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return tensorOf(name.str(), DType::F32, shape, std::vector<double>(count, value));
  }
};

TEST_F(NamedChanges, AreReadAsTheyWereWritten) {
  ASSERT_EQ(write(adapter()), "");
  EXPECT_EQ(contentOf("a/card.txt"), "good");
  EXPECT_EQ(names("a"), (std::vector<std::string>{"adapter_model.safetensors", "card.txt"}));
  auto file = cantFail(SafetensorsFile::open(path("a/adapter_model.safetensors")));
  EXPECT_EQ(doublesOf(*file->find("layers.0.w.u")), (std::vector<double>{1, -2, 3, 4}));
  EXPECT_EQ(doublesOf(*file->find("layers.0.w.v")), (std::vector<double>{0.5, 1, 0.25, 2, 4, 3}));
  Adapter again = cantFail(readLastingAdapter(path("a"), *checkpoint(), {9}));
  EXPECT_EQ(again.prefix, adapter().prefix);
  EXPECT_EQ(again.matrices.front().left, adapter().matrices.front().left);
  EXPECT_EQ(again.matrices.front().right, adapter().matrices.front().right);
  EXPECT_EQ(again.vectors.front().delta, adapter().vectors.front().delta);
}

TEST_F(NamedChanges, OthersAreRefused) {
  Adapter entries;
  entries.entries.attentions = {{1, 1, 1, 1, {0}, {0}}};
  EXPECT_HAS(write(entries), "has no cache");
  ASSERT_EQ(write(adapter()), "");
  expectRefused({tensor("layers.0.w.u", {2, 1})}, "expected a pair of factors");
  expectRefused({tensor("layers.0.w.v", {3, 1})}, "with .u and .v, or with .delta");
  expectRefused({tensor("layers.0.w.u", {2, 1}), tensor("layers.0.w.v", {3, 2})},
                "expected a pair of factors");
  expectRefused({tensor("layers.0.w.u", {3, 1}), tensor("layers.0.w.v", {2, 1})},
                "is of shape [3, 2], expected [2, 3]");
  expectRefused({tensor("layers.0.norm.delta", {3})}, "is of shape [3], expected [2]");
  expectRefused({tensor("layers.1.norm.delta", {2})}, "does not have");
  expectRefused({tensor("layers.0.w[7].u", {3, 1}), tensor("layers.0.w[7].v", {1, 1})},
                "does not have");
  expectRefused({tensor("layers.0.norm.delta", {2}, NAN)}, "layers.0.norm.delta");
  expectRefused({tensorOf("layers.0.norm.delta", DType::F16, {2}, {1, 1})}, "expected F32");
  expectRefused({tensor("layers.0.norm", {2})}, "with .u and .v, or with .delta");
  expectRefused({}, "of version '2', expected 'ctxc-adapter' of version 1", "2");
  PatchDirectory::write("a/adapter_config.json", "{}");
  EXPECT_HAS(read(), "names modules of a model of transformers");
}

} // namespace
