// A small checkpoint, and a patch for it.
#ifndef CTXC_TEST_UNIT_EXPORT_FIXTURE_H
#define CTXC_TEST_UNIT_EXPORT_FIXTURE_H

#include "ctxc/Checkpoint/Checkpoint.h"
#include "ctxc/Checkpoint/SafetensorsWriter.h"
#include "ctxc/Export/PatchFile.h"
#include "test/unit/Checkpoint/Fixture.h"

namespace ctxc::test {

inline TensorSource tensorOf(std::string name, DType dtype, llvm::SmallVector<int64_t, 4> shape,
                             std::vector<double> values) {
  std::string bytes(values.size() * bitsOf(dtype) / 8, '\0');
  writeDoubles(dtype, values, reinterpret_cast<uint8_t *>(bytes.data()));
  return {std::move(name), dtype, std::move(shape), [bytes](llvm::raw_ostream &os) {
            os << bytes;
            return llvm::Error::success();
          }};
}

inline std::vector<double> doublesOf(const TensorView &view) {
  std::vector<double> values(view.elements());
  readDoubles(view.dtype, view.data, values);
  return values;
}

struct PatchDirectory : TempDirectory {
  void SetUp() override {
    TempDirectory::SetUp();
    write("m/config.json", "{\"dtype\":\"float32\",\"eps\":1e-06}\n");
    write("m/tokenizer.model", "pieces");
    // BF16 holds 1 + 2^-7 but not 1 + 2^-8.
    EXPECT_EQ(
        messageOf(writeSafetensors(path("m/model.safetensors"),
                                   {tensorOf("layers.0.w", DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                                    tensorOf("layers.0.norm", DType::BF16, {2}, {1, 1}),
                                    tensorOf("untouched", DType::F16, {2}, {0.5, 65504})},
                                   {{"format", "pt"}})),
        "");
  }

  std::unique_ptr<Checkpoint> checkpoint() {
    auto checkpoint = Checkpoint::open(path("m"));
    EXPECT_TRUE(bool(checkpoint));
    return std::move(*checkpoint);
  }

  static Patch patch() {
    ParameterPatch w, norm;
    w.parameter = "layers.0.w";
    w.shape = {2, 3};
    w.u = {1, -2};
    w.v = {0.5, 0.25, 4};
    norm.parameter = "layers.0.norm";
    norm.kind = ParameterPatch::Kind::Delta;
    norm.shape = {2};
    norm.delta = {0x1p-7, 0x1p-9};
    Patch patch;
    patch.parameters = {norm, w};
    return patch;
  }

  PatchMetadata metadata() {
    PatchMetadata metadata;
    metadata.modelHash = llvm::cantFail(checkpoint()->hash());
    metadata.tokens = {2, 17, 5};
    metadata.position = 2;
    metadata.kept = {0};
    metadata.update = "stable";
    metadata.dtype = "bf16";
    return metadata;
  }

  /// The names in the temporary directory, except the cache's.
  std::vector<std::string> names(llvm::StringRef below = "") {
    std::vector<std::string> names;
    std::error_code ec;
    for (llvm::sys::fs::directory_iterator it(path(below), ec), end; it != end && !ec;
         it.increment(ec))
      if (std::string name = llvm::sys::path::filename(it->path()).str(); name != "cache")
        names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }
};

} // namespace ctxc::test

#endif // CTXC_TEST_UNIT_EXPORT_FIXTURE_H
