// Conversions between parts of a patch and stored entries: every form, transposed or not, and names
// of slices.
#include "ctxc/Program/PatchParts.h"
#include "ctxc/Program/MaterializedWeights.h"
#include "ctxc/Program/Weights.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace llvm;
using patch::PatchForm;

namespace {

PatchedParameter parameter(const char *name, ArrayRef<int64_t> shape, PatchForm form) {
  PatchedParameter p;
  p.stored = name;
  p.shape.assign(shape.begin(), shape.end());
  p.form = form;
  return p;
}

template <typename T> std::string messageOf(Expected<T> result) {
  return result ? "no error" : toString(result.takeError());
}

TEST(PatchParts, EveryFormGoesOutAndComesBack) {
  PatchParts vector = {{1, 2, 3}}, rank1 = {{1, 2}, {3, 4, 5}};
  PatchParts slices = {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10}, {0, 3}};
  struct Case {
    PatchedParameter parameter;
    PatchParts parts;
    std::vector<std::string> names;
  } cases[] = {
      {parameter("m", {3}, {}), vector, {"m"}},
      {parameter("w", {2, 3}, {PatchForm::Rank1, false}), rank1, {"w"}},
      {parameter("w", {3, 2}, {PatchForm::Rank1, true}), rank1, {"w"}},
      {parameter("e.*.w", {4, 2, 3}, {PatchForm::Rank1EachSlice, false}),
       slices,
       {"e.0.w", "e.3.w"}},
      {parameter("e", {4, 3, 2}, {PatchForm::Rank1EachSlice, true}), slices, {"e[0]", "e[3]"}},
  };
  for (const Case &c : cases) {
    auto entries = toStored(c.parameter, c.parts);
    ASSERT_TRUE(bool(entries)) << toString(entries.takeError());
    ASSERT_EQ(entries->size(), c.names.size());
    SmallVector<int64_t> sizes;
    for (const std::vector<double> &part : c.parts)
      sizes.push_back(part.size());
    for (auto [entry, name] : zip(*entries, c.names))
      EXPECT_EQ(entry.parameter, name);
    Patch patch;
    patch.parameters = *entries;
    ParameterPatch other;
    other.parameter = "another";
    patch.parameters.push_back(other);
    EXPECT_EQ(cantFail(fromStored(c.parameter, patch, sizes)), c.parts);
    patch.parameters.erase(patch.parameters.begin(), patch.parameters.end() - 1);
    EXPECT_TRUE(cantFail(fromStored(c.parameter, patch, sizes)).empty());
  }
}

TEST(PatchParts, TransposedFactorsChangePlacesInTheFile) {
  auto entries = cantFail(toStored(parameter("e.*", {4, 3, 2}, {PatchForm::Rank1EachSlice, true}),
                                   {{1, 2}, {3, 4, 5}, {2}}));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].u, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(entries[0].v, (std::vector<double>{1, 2}));
  EXPECT_EQ(entries[0].shape, (std::vector<int64_t>{3, 2}));
}

TEST(PatchParts, FewerSlicesThanSlotsLeaveTheRestAlone) {
  PatchedParameter p = parameter("e.*", {4, 2, 3}, {PatchForm::Rank1EachSlice, false});
  Patch patch;
  patch.parameters = cantFail(toStored(p, {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10}, {2, -1}}));
  ASSERT_EQ(patch.parameters.size(), 1u); // a negative index means that there is none
  PatchParts parts = cantFail(fromStored(p, patch, {4, 6, 2}));
  EXPECT_EQ(parts, (PatchParts{{1, 2, 0, 0}, {5, 6, 7, 0, 0, 0}, {2, -1}}));
}

/// The rows of a bank of biases change by vectors, each under its own name.
TEST(PatchParts, ChangesOfVectorsAreStoredAsSuch) {
  for (const char *name : {"e_bias", "e.*.bias"}) {
    PatchedParameter p = parameter(name, {4, 3}, {PatchForm::Rank1EachSlice, false});
    Patch patch;
    patch.parameters = cantFail(toStored(p, {{1, 2, 3, 4, 5, 6}, {1, 1}, {0, 3}}));
    ASSERT_EQ(patch.parameters.size(), 2u);
    const ParameterPatch &last = patch.parameters.back();
    EXPECT_EQ(last.parameter, sliceName(name, 3));
    EXPECT_EQ(last.kind, ParameterPatch::Kind::Delta);
    EXPECT_EQ(last.shape, (std::vector<int64_t>{3}));
    EXPECT_EQ(last.delta, (std::vector<double>{4, 5, 6}));
    PatchParts parts = cantFail(fromStored(p, patch, {9, 3, 3}));
    EXPECT_EQ(parts, (PatchParts{{1, 2, 3, 4, 5, 6, 0, 0, 0}, {1, 1, 0}, {0, 3, -1}}));
  }
  PatchedParameter p = parameter("e_bias", {4, 3}, {PatchForm::Rank1EachSlice, false});
  EXPECT_EQ(messageOf(toStored(p, {{1, 2}, {1}, {0}})),
            "e_bias: the patch has 2 numbers where the model's parameter needs 3");
}

TEST(PatchParts, WhatDoesNotFitIsAnError) {
  PatchedParameter p = parameter("e.*", {4, 2, 3}, {PatchForm::Rank1EachSlice, false});
  EXPECT_EQ(messageOf(toStored(p, {{1, 2}, {3, 4, 5}})), "e.*: a patch of 2 parts, expected 3");
  EXPECT_EQ(messageOf(toStored(p, {{1, 2}, {3, 4}, {0}})),
            "e.*: the patch has 2 numbers where the model's parameter needs 3");
  Patch patch;
  patch.parameters = cantFail(toStored(p, {{1, 2, 3, 4}, {5, 6, 7, 8, 9, 10}, {0, 3}}));
  EXPECT_EQ(messageOf(fromStored(p, patch, {2, 3, 1})),
            "e.*: the patch changes more of its slices than the 1 that a token selects; "
            "materialize the patch to run it");
  patch.parameters.front().kind = ParameterPatch::Kind::Delta;
  patch.parameters.front().delta.resize(6);
  EXPECT_NE(messageOf(fromStored(p, patch, {4, 6, 2})).find("is no pair of factors"),
            std::string::npos);
}

TEST(SliceName, IndicesAreReadAsTheyAreWritten) {
  EXPECT_EQ(sliceIndex("e.*.w", "e.12.w"), 12);
  EXPECT_EQ(sliceIndex("e.*.w", "e.012.w"), std::nullopt);
  EXPECT_EQ(sliceIndex("e.*.w", "e.-1.w"), std::nullopt);
  EXPECT_EQ(sliceIndex("e.*.w", "e..w"), std::nullopt);
  EXPECT_EQ(sliceIndex("e.*.w", "e.1.u"), std::nullopt);
  EXPECT_EQ(sliceIndex("e", "e[3]"), 3);
  EXPECT_EQ(sliceIndex("e", "f[3]"), std::nullopt);
  EXPECT_EQ(sliceIndex("e", "e"), std::nullopt);
  EXPECT_EQ(splitSliceName("a.b[0]")->first, "a.b");
  EXPECT_FALSE(splitSliceName("a.b[]"));
  EXPECT_FALSE(splitSliceName("a.b[x]"));
}

TEST(MaterializedWeights, AddsToSlicesOfOneTensorAndToTensorsOfABank) {
  mlir::MLIRContext context;
  auto type = mlir::RankedTensorType::get({3, 2, 2}, mlir::Float32Type::get(&context));
  std::unique_ptr<Weights> original = randomWeights(1);
  for (const char *name : {"bank", "bank.*"}) {
    Patch patch;
    for (int64_t slice : {0, 2}) {
      ParameterPatch entry;
      entry.parameter = sliceName(name, slice);
      entry.shape = {2, 2};
      entry.u = {1, 2};
      entry.v = {double(slice), 4};
      patch.parameters.push_back(entry);
    }
    MaterializedWeights weights(*original, patch);
    for (int64_t slice = 0; slice < 3; ++slice) {
      const auto *was =
          static_cast<const float *>(cantFail(getSlice(*original, name, type, slice)));
      const auto *is = static_cast<const float *>(cantFail(getSlices(weights, name, type))[slice]);
      for (int64_t i = 0; i < 4; ++i) {
        double change = slice == 1 ? 0 : (i < 2 ? 1 : 2) * (i % 2 ? 4.0 : double(slice));
        EXPECT_EQ(is[i], float(was[i] + change)) << name << slice << i;
      }
    }
    patch.parameters.front().parameter = sliceName(name, 0) + "[5]";
    patch.parameters.resize(1);
    MaterializedWeights wrong(*original, patch);
    auto whole = mlir::RankedTensorType::get({2, 2}, mlir::Float32Type::get(&context));
    EXPECT_NE(messageOf(wrong.get(sliceName(name, 0), whole)).find("does not have"),
              std::string::npos);
  }
}

} // namespace
