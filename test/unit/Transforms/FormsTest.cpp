// Functions that are written out have the values of the form that takes their place.
#include "../Reference/Fixture.h"
#include "ctxc/Transforms/WrittenForms.h"

namespace ctxc::reference {
namespace {

class FormsTest : public ReferenceTest {
protected:
  /// Of a block of two vectors of six numbers, whose lines `body` makes %z.
  void expectSame(llvm::StringRef body, unsigned forms) {
    std::string text = ("xf.block @b(%x: tensor<6xf32>, %y: tensor<6xf32>) -> tensor<6xf32> {\n" +
                        body + "  xf.yield %z : tensor<6xf32>\n}\n")
                           .str();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(bool(module)) << text;
    EXPECT_EQ(recognizeForms(*module), forms) << text;
    std::string written;
    llvm::raw_string_ostream(written) << *module;
    EXPECT_EQ(forms > 0, !llvm::StringRef(written).contains("xf.mul")) << written;
    Matrix x = noise(3, 6), y = noise(3, 6);
    SCOPED_TRACE(written);
    expectNear(runOne(written, {x, y}), runOne(text, {x, y}), 1e-6);
  }
};

std::string mask(llvm::StringRef name, llvm::StringRef numbers) {
  return ("  %" + name + " = xf.setting \"" + name + "\" : tensor<6xf32> = dense<[" + numbers +
          "]> : tensor<6xf32>\n")
      .str();
}

/// The products of both inputs with masks, and `sum` of them.
std::string masked(llvm::StringRef m, llvm::StringRef n, llvm::StringRef sum) {
  return mask("m", m) + mask("n", n) +
         ("  %p = xf.mul %m, %x : tensor<6xf32>, tensor<6xf32>\n"
          "  %q = xf.mul %y, %n : tensor<6xf32>, tensor<6xf32>\n  %z = xf." +
          sum + " : tensor<6xf32>\n")
             .str();
}

} // namespace

TEST_F(FormsTest, MasksThatShareNoEntry) {
  expectSame(masked("1.0, 0.0, 0.0, 1.0, 1.0, 0.0", "0.0, 1.0, 1.0, 0.0, 0.0, 1.0", "add %p, %q"),
             1);
  expectSame(
      masked("0.0, 0.0, 0.0, 1.0, 1.0, 1.0", "-1.0, -1.0, -1.0, 0.0, 0.0, 0.0", "sub %p, %q"), 1);
}

TEST_F(FormsTest, MasksThatShareOne) {
  expectSame(masked("1.0, 1.0, 0.0, 1.0, 1.0, 0.0", "0.0, 1.0, 1.0, 0.0, 0.0, 1.0", "add %p, %q"),
             0);
}

} // namespace ctxc::reference
