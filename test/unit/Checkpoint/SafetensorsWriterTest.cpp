#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "Fixture.h"
#include "ctxc/Checkpoint/Safetensors.h"
#include "ctxc/Support/Error.h"

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct SafetensorsWriter : TempDirectory {
  TensorSource source(std::string name, DType dtype, SmallVector<int64_t, 4> shape,
                      std::string bytes) {
    return {name, dtype, shape, [bytes](raw_ostream &os) {
              os << bytes;
              return Error::success();
            }};
  }
  int entries() {
    std::error_code ec;
    int n = 0;
    for (sys::fs::directory_iterator it(dir, ec), end; it != end && !ec; it.increment(ec))
      ++n;
    return n;
  }
};

TEST_F(SafetensorsWriter, WritesWhatTheReaderReads) {
  std::string name = "quote\" and \u00e9";
  Error e = writeSafetensors(
      path("f"),
      {source("b", DType::BF16, {3}, "abcdef"), source("z", DType::F32, {}, "1234"),
       source(name, DType::F32, {2, 1}, "12345678"), source("empty", DType::F64, {0, 7}, "")},
      {{"key", "line\n\"two\""}});
  ASSERT_EQ(messageOf(std::move(e)), "");
  auto file = SafetensorsFile::open(path("f"));
  ASSERT_TRUE(bool(file)) << messageOf(std::move(file));
  EXPECT_EQ((*file)->dataStart() % 8, 0u);
  EXPECT_EQ((*file)->metadata().at("key"), "line\n\"two\"");
  std::vector<std::string> order;
  for (const TensorView &view : (*file)->tensors())
    order.push_back(view.name);
  EXPECT_EQ(order, (std::vector<std::string>{"empty", name, "z", "b"}));
  const TensorView *b = (*file)->find("b");
  EXPECT_EQ(b->dtype, DType::BF16);
  EXPECT_EQ(StringRef(reinterpret_cast<const char *>(b->data), b->bytes), "abcdef");
  EXPECT_EQ((*file)->find(name)->shape, (SmallVector<int64_t, 4>{2, 1}));
}

TEST_F(SafetensorsWriter, WritesNothingOnAnyFailure) {
  auto expect = [&](std::vector<TensorSource> tensors, StringRef part,
                    std::map<std::string, std::string> metadata = {}) {
    std::string message = messageOf(writeSafetensors(path("f"), std::move(tensors), metadata));
    EXPECT_NE(message.find(part.str()), std::string::npos) << message;
    EXPECT_EQ(entries(), 0);
  };
  expect({source("a", DType::F32, {2}, "123")}, "wrote 3 bytes, expected 8");
  expect({source("a", DType::F32, {}, "1234"), source("a", DType::U8, {}, "1")}, "given twice");
  expect({source("\xff", DType::F32, {}, "1234")}, "a name that no tensor can have");
  expect({source("a", DType::F32, {int64_t(1) << 60}, "")}, "overflows");
  expect({source("a", DType::F32, {-1}, "")}, "negative");
  expect({source("a", DType::F4, {3}, "")}, "does not end on a byte");
  expect({}, "not valid UTF-8", {{"a", "\xff"}});
  TensorSource failing = source("a", DType::F32, {}, "1234");
  failing.write = [](raw_ostream &) { return makeError("the source gave up"); };
  expect({failing}, "the source gave up");
}

} // namespace
