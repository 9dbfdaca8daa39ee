// Which outputs are combinations of fewer vectors than there are outputs.
#include "ctxc/Analysis/OutputSpan.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace ctxc;
using namespace mlir;

namespace {

/// Two outputs of eight entries, each the product of one projection with gates of its own, of
/// `entries` entries.
class TwoStreams {
public:
  explicit TwoStreams(int64_t entries) {
    context.loadDialect<xf::XFDialect>();
    std::string gate = "tensor<" + std::to_string(entries) + "xf32>",
                matrix = "tensor<" + std::to_string(entries) + "x8xf32>";
    std::string text = R"(xf.block @b(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %c = xf.contextual "attention"(%x) : (tensor<8xf32>) -> tensor<8xf32>
      %D = xf.param "down" : tensor<8x8xf32>
      %d = xf.linear %D * %c : tensor<8x8xf32>, tensor<8xf32>
      %G = xf.param "g" : )" +
                       matrix + "\n%g = xf.linear %G * %c : " + matrix + R"(, tensor<8xf32>
      %H = xf.param "h" : )" +
                       matrix + "\n%h = xf.linear %H * %c : " + matrix + R"(, tensor<8xf32>
      %y = xf.mul %d, %g : tensor<8xf32>, )" +
                       gate + "\n%z = xf.mul %d, %h : tensor<8xf32>, " + gate + R"(
      xf.yield %y, %z : tensor<8xf32>, tensor<8xf32>
    })";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
  }

  std::vector<OutputSpan> spans() {
    xf::BlockOp block = *module->getOps<xf::BlockOp>().begin();
    BlockGraph graph(block);
    ZeroRange zeros(block);
    Bindings none;
    Sites sites(graph, zeros, none, SiteScope::MLP);
    return findOutputSpans(graph, Moved(graph, sites));
  }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST(OutputSpan, MultiplesOfOneVector) {
  std::vector<OutputSpan> spans = TwoStreams(1).spans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].outputs, SmallVector<unsigned>({0, 1}));
  EXPECT_EQ(spans[0].moving.size(), 1u);
  EXPECT_TRUE(spans[0].fixed.empty());
}

// A product with a vector may have any direction, so that each output moves by itself.
TEST(OutputSpan, ProductsWithVectorsAreNoMultiples) { EXPECT_TRUE(TwoStreams(8).spans().empty()); }

} // namespace
