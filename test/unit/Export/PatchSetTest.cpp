#include "ctxc/Export/PatchSet.h"
#include "Fixture.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;
using namespace llvm;

namespace {

struct PatchSets : PatchDirectory {
  /// That of `position`, after tokens 2, 17, 5, 9; its numbers tell it from others.
  static Patch patchOf(int64_t position) {
    Patch patch = PatchDirectory::patch();
    for (ParameterPatch &p : patch.parameters)
      for (std::vector<double> *numbers : {&p.u, &p.delta})
        for (double &x : *numbers)
          x *= 1 + double(position) / 8;
    return patch;
  }
  PatchMetadata metadataOf(int64_t position) {
    PatchMetadata about = metadata();
    about.tokens = {2, 17, 5, 9};
    about.tokens.resize(position + 1);
    about.position = position;
    about.kept = {0, 2};
    erase_if(about.kept, [&](int64_t kept) { return kept >= position; });
    return about;
  }
  /// Writes the patches of `positions`, in the order of `given`.
  Expected<double> write(ArrayRef<int64_t> positions, ArrayRef<int64_t> given,
                         DType factors = DType::F32) {
    PatchMetadata last = metadataOf(3);
    last.factors = factors;
    return writePatchSet(path("p"), positions, last, [&](PatchWriter write) -> Error {
      for (int64_t position : given)
        if (Error e = write(patchOf(position), metadataOf(position)))
          return e;
      return Error::success();
    });
  }
};

TEST_F(PatchSets, RoundTrip) {
  ASSERT_EQ(messageOf(write({1, 2, 3}, {1, 2, 3})), "");
  auto set = PatchSet::open(path("p"));
  ASSERT_EQ(messageOf(set.takeError()), "");
  EXPECT_EQ(set->positions(), ArrayRef<int64_t>({1, 2, 3}));
  for (int64_t position : {3, 1, 2}) {
    auto read = set->read(position);
    ASSERT_TRUE(bool(read)) << messageOf(std::move(read));
    Patch wanted = patchOf(position);
    ASSERT_EQ(read->first.parameters.size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(read->first.parameters[i].parameter, wanted.parameters[i].parameter);
      EXPECT_EQ(read->first.parameters[i].shape, wanted.parameters[i].shape);
      EXPECT_EQ(read->first.parameters[i].u, wanted.parameters[i].u);
      EXPECT_EQ(read->first.parameters[i].v, wanted.parameters[i].v);
      EXPECT_EQ(read->first.parameters[i].delta, wanted.parameters[i].delta);
    }
    PatchMetadata about = metadataOf(position);
    EXPECT_EQ(read->second.position, position);
    EXPECT_EQ(read->second.tokens, about.tokens);
    EXPECT_EQ(read->second.kept, about.kept);
    EXPECT_EQ(read->second.modelHash, about.modelHash);
    EXPECT_EQ(read->second.update, about.update);
  }
  auto file = SafetensorsFile::open(path("p"));
  ASSERT_TRUE(bool(file));
  EXPECT_EQ((*file)->find("layers.0.w.u")->shape, (SmallVector<int64_t, 4>{3, 2, 1}));
  EXPECT_EQ((*file)->find("layers.0.w.v")->shape, (SmallVector<int64_t, 4>{3, 3, 1}));
  EXPECT_EQ((*file)->find("layers.0.norm.delta")->shape, (SmallVector<int64_t, 4>{3, 2}));
  EXPECT_EQ((*file)->metadata().at("positions"), "1,2,3");
  EXPECT_EQ((*file)->metadata().at("tokens"), "2,17,5,9");
}

TEST_F(PatchSets, AFileOfOnePatchIsOne) {
  ASSERT_EQ(messageOf(writePatchFile(path("p"), patch(), metadata())), "");
  auto set = PatchSet::open(path("p"));
  ASSERT_EQ(messageOf(set.takeError()), "");
  EXPECT_EQ(set->positions(), ArrayRef<int64_t>({2}));
  EXPECT_EQ(messageOf(set->read(2)), "");
  EXPECT_EQ(messageOf(set->read(1)), path("p") + ": has no patch of position 1; it has 1 patch, "
                                                 "from position 2 to 2");
}

TEST_F(PatchSets, OneOfSeveralIsNotReadAsOne) {
  ASSERT_EQ(messageOf(write({1, 3}, {1, 3})), "");
  EXPECT_EQ(messageOf(readPatchFile(path("p"))),
            path("p") + ": holds the patches of several positions, expected that of one; name the "
                        "position");
}

TEST_F(PatchSets, KnowTheRowsInPlaceOfTokens) {
  PatchMetadata last = metadataOf(3);
  last.tokens = {2, 17, -1, 9};
  last.embeddingsDigest = std::string(60, '0') + "cafe";
  auto written = writePatchSet(path("p"), {1, 3}, last, [&](PatchWriter write) -> Error {
    if (Error e = write(patchOf(1), metadataOf(1)))
      return e;
    return write(patchOf(3), last);
  });
  ASSERT_EQ(messageOf(std::move(written)), "");
  auto set = PatchSet::open(path("p"));
  ASSERT_EQ(messageOf(set.takeError()), "");
  EXPECT_EQ(set->read(1)->second.embeddingsDigest, "");
  EXPECT_EQ(set->read(3)->second.embeddingsDigest, last.embeddingsDigest);
  EXPECT_EQ(set->read(3)->second.tokens, last.tokens);
}

/// ‖rounded − exact‖ / ‖exact‖ of the changes, entry by entry.
double lostBy(const Patch &exact, const Patch &rounded) {
  double lost = 0, whole = 0;
  for (auto [a, b] : zip_equal(exact.parameters, rounded.parameters)) {
    for (auto [x, y] : zip_equal(a.delta, b.delta)) {
      lost += (x - y) * (x - y);
      whole += x * x;
    }
    for (size_t i = 0; i < a.u.size(); ++i)
      for (size_t j = 0; j < a.v.size(); ++j) {
        lost += std::pow(a.u[i] * a.v[j] - b.u[i] * b.v[j], 2);
        whole += std::pow(a.u[i] * a.v[j], 2);
      }
  }
  return std::sqrt(lost / whole);
}

Patch uneven() {
  Patch patch = PatchDirectory::patch();
  patch.parameters[1].u = {1.0 / 3, -2.0 / 7};
  patch.parameters[1].v = {0.1, 0.7, 3.3};
  return patch;
}

TEST_F(PatchSets, SayWhatRoundingTakes) {
  for (DType type : {DType::BF16, DType::F16}) {
    PatchMetadata about = metadata();
    about.factors = type;
    auto rounding = roundingOf(uneven(), type);
    ASSERT_TRUE(bool(rounding));
    about.rounding = *rounding;
    ASSERT_EQ(messageOf(writePatchFile(path("p"), uneven(), about)), "");
    auto read = readPatchFile(path("p"));
    ASSERT_TRUE(bool(read)) << messageOf(std::move(read));
    EXPECT_GT(*rounding, 0);
    EXPECT_NEAR(lostBy(uneven(), read->first), *rounding, 1e-9);
    EXPECT_NEAR(read->second.rounding, *rounding, 1e-3 * *rounding);
    EXPECT_EQ(read->second.factors, type);
    auto file = SafetensorsFile::open(path("p"));
    ASSERT_TRUE(bool(file));
    EXPECT_EQ((*file)->find("layers.0.w.u")->dtype, type);
  }
  auto largest = write({1, 3}, {1, 3}, DType::BF16);
  ASSERT_TRUE(bool(largest));
  auto set = PatchSet::open(path("p"));
  ASSERT_EQ(messageOf(set.takeError()), "");
  double worst = 0;
  for (int64_t position : {1, 3})
    worst = std::max(worst, lostBy(patchOf(position), set->read(position)->first));
  EXPECT_NEAR(*largest, worst, 1e-9);
  EXPECT_NEAR(set->last().rounding, worst, 1e-3 * worst);
}

TEST_F(PatchSets, NumbersBeyondTheTypeAreRefused) {
  Patch large = patch();
  large.parameters[1].v[0] = 1e6;
  EXPECT_EQ(
      messageOf(roundingOf(large, DType::F16)),
      "parameter 'layers.0.w': has a number that F16 does not hold; store the patch in F32 or "
      "BF16");
}

TEST_F(PatchSets, NothingIsHalfWritten) {
  EXPECT_EQ(messageOf(write({1, 2, 3}, {1, 2})), path("p") + ": got 2 patches, expected 3");
  EXPECT_EQ(messageOf(write({1, 2, 3}, {1, 3})),
            path("p") + ": got the patch of position 3 out of order");
  auto other = writePatchSet(path("p"), {1, 2}, metadataOf(2), [&](PatchWriter write) -> Error {
    if (Error e = write(patchOf(1), metadataOf(1)))
      return e;
    Patch less = patchOf(2);
    less.parameters.pop_back();
    return write(less, metadataOf(2));
  });
  EXPECT_EQ(messageOf(std::move(other)),
            path("p") + ": the patch of position 2 changes other parameters than that of position "
                        "1, as in a mixture of experts; write a directory, with a file for each");
  EXPECT_EQ(names(), std::vector<std::string>{"m"});
}

TEST_F(PatchSets, RefuseDamage) {
  auto strings = [] {
    return std::map<std::string, std::string>{{"format_version", "2"},
                                              {"model_hash", std::string(64, 'a')},
                                              {"tokens", "1,2,3"},
                                              {"positions", "1,2"},
                                              {"kept", ""},
                                              {"update", "least"},
                                              {"dtype", "f32"}};
  };
  auto expect = [&](std::map<std::string, std::string> with, SmallVector<int64_t, 4> shape,
                    StringRef part) {
    std::vector<double> numbers(shape.empty() ? 1 : shape[0] * (shape.size() > 1 ? shape[1] : 1));
    EXPECT_EQ(messageOf(writeSafetensors(path("p"),
                                         {tensorOf("a.delta", DType::F32, shape, numbers)}, with)),
              "");
    auto set = PatchSet::open(path("p"));
    std::string message = messageOf(set.takeError());
    EXPECT_NE(message.find(part.str()), std::string::npos) << part.str() << " in " << message;
  };
  expect(strings(), {3, 2}, "tensor 'a.delta': found shape [3, 2], expected 2 as its first size");
  expect(strings(), {}, "tensor 'a.delta': found shape [], expected 2 as its first size");
  for (const char *positions : {"", "2,1", "1,1", "x", "1,9"}) {
    auto bad = strings();
    bad["positions"] = positions;
    expect(bad, {2, 2}, "position");
  }
  auto rows = strings();
  rows["rows_digests"] = ",";
  expect(rows, {2, 2}, "rows_digest");
  auto type = strings();
  type["factors"] = "I8";
  expect(type, {2, 2}, "found factors 'I8', expected BF16 or F16");
}

} // namespace
