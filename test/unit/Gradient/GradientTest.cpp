// Gradients against differences of what the reference computes, in float64.
#include "ctxc/Gradient/Registration.h"
#include "ctxc/Gradient/Tape.h"
#include "test/unit/Reference/Fixture.h"

using namespace ctxc;
using namespace ctxc::reference;
using gradient::Rows;
using gradient::Tape;
using gradient::TapeTokens;

namespace {

class GradientTest : public ReferenceTest {
protected:
  GradientTest() {
    mlir::DialectRegistry registry;
    registerGradientModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  static constexpr int64_t count = 4;

  /// One sequence of tokens.
  static TapeTokens oneSequence() {
    TapeTokens tokens;
    for (int32_t i = 0; i < count; ++i) {
      tokens.ids.push_back(i);
      tokens.positions.push_back(i);
    }
    tokens.sequences.push_back({0, count, std::nullopt});
    return tokens;
  }

  static std::vector<float> single(const Matrix &rows) {
    return std::vector<float>(rows.data(), rows.data() + rows.size());
  }

  /// Compares values and gradients of block @b, of one output; those of `parameters` too. `x` is
  /// the only input.
  void expectGradients(llvm::StringRef text, const Matrix &given,
                       llvm::ArrayRef<llvm::StringRef> parameters = {},
                       TapeTokens tokens = oneSequence()) {
    SCOPED_TRACE(text.str());
    const Matrix x = given.cast<float>().cast<double>();
    const Matrix value = runOne(text, {x});
    const Matrix direction = noise(value.rows(), value.cols()).cast<float>().cast<double>();
    auto along = [&](const Matrix &input) {
      return runOne(text, {input}).cwiseProduct(direction).sum();
    };
    ParallelFor threads;
    Tape tape(weights, nullptr, tokens, threads);
    for (llvm::StringRef name : parameters)
      tape.requestGradient(name);
    llvm::StringMap<Rows> ofMatrices; // stored as (out, in)
    tape.tellProducts(
        [&](llvm::StringRef name, Eigen::Ref<const Rows> data, Eigen::Ref<const Rows> ofProduct) {
          ofMatrices[name] = ofProduct.transpose() * data;
        });
    std::vector<float> input = single(x);
    llvm::cantFail(tape.evaluate(block(parse(text)), {&input}));
    expectNear(tape.output(0).cast<double>(), value, 1e-5);
    const Rows seed = direction.cast<float>();
    llvm::cantFail(tape.pullBack({&seed}));
    ASSERT_NE(tape.ofInput(0), nullptr);
    constexpr double step = 1e-5;
    Matrix expected(x.rows(), x.cols());
    for (int64_t i = 0; i < x.size(); ++i) {
      Matrix more = x, less = x;
      more.data()[i] += step;
      less.data()[i] -= step;
      expected.data()[i] = (along(more) - along(less)) / (2 * step);
    }
    const double tolerance = 1e-4 * std::max(1.0, expected.cwiseAbs().maxCoeff());
    expectNear(tape.ofInput(0)->cast<double>(), expected, tolerance);
    for (llvm::StringRef name : parameters) {
      const std::vector<double> numbers = weights.numbers(name);
      Eigen::VectorXd found = tape.ofParameters().lookup(name);
      if (auto told = ofMatrices.find(name); told != ofMatrices.end()) {
        const bool isTransposed = text.contains("transposed");
        Rows matrix = isTransposed ? Rows(told->second.transpose()) : told->second;
        found = matrix.reshaped<Eigen::RowMajor>().cast<double>();
      }
      ASSERT_EQ(size_t(found.size()), numbers.size());
      for (size_t i = 0; i < numbers.size(); ++i) {
        // The weights are in float32, so that the difference has to be as coarse.
        double values[2];
        for (int side : {0, 1}) {
          std::vector<double> changed = numbers;
          changed[i] += side ? 1.0 / 64 : -1.0 / 64;
          weights.set(name, changed);
          values[side] = along(x);
        }
        weights.set(name, numbers);
        EXPECT_NEAR(found[i], (values[1] - values[0]) * 32, 1e-4) << name.str() << " " << i;
      }
    }
  }
};

std::string blockOf(const std::string &argument, const std::string &body,
                    const std::string &result) {
  return "xf.block @b(%x: tensor<" + argument + ">) -> tensor<" + result + "> {\n" + body +
         "  xf.yield %y : tensor<" + result + ">\n}\n";
}

} // namespace

TEST_F(GradientTest, OfFunctionsOfAToken) {
  const std::string t = " : tensor<6xf32>\n";
  for (const char *kind : {"gelu", "gelu_tanh", "quick_gelu", "silu", "relu", "relu2", "sigmoid",
                           "tanh", "exp", "softplus", "abs", "sqrt", "log"})
    expectGradients(
        blockOf("6xf32", "%y = xf.activation " + std::string(kind) + " %x" + t, "6xf32"),
        noise(count, 6));
  for (const char *kind : {"rms", "layer", "l2"})
    expectGradients(
        blockOf("6xf32", "%y = xf.normalize " + std::string(kind) + " %x eps 1.0e-3" + t, "6xf32"),
        noise(count, 6));
  expectGradients(blockOf("6xf32", "%y = xf.normalize sum %x eps 1.0e-3" + t, "6xf32"),
                  noise(count, 6).array().abs() + 1);
  for (const char *op : {"softmax %x", "softcap %x at 2.0", "clamp %x to 0.5",
                         "clamp %x to 0.5 above", "times %x by -1.5"})
    expectGradients(blockOf("6xf32", "%y = xf." + std::string(op) + t, "6xf32"), noise(count, 6));
}

TEST_F(GradientTest, OfTwoOperandsAndOfShapes) {
  const std::string parts = "%a = xf.slice %x from 0 : tensor<6xf32> to tensor<3xf32>\n"
                            "%b = xf.slice %x from 3 : tensor<6xf32> to tensor<3xf32>\n"
                            "%one = xf.slice %x from 2 : tensor<6xf32> to tensor<1xf32>\n";
  const std::string both = " : tensor<3xf32>, tensor<3xf32>\n";
  for (const std::string &op :
       {std::string("add %a, %b : tensor<3xf32>\n"), std::string("sub %a, %b : tensor<3xf32>\n"),
        "mul %a, %b" + both, std::string("mul %a, %one : tensor<3xf32>, tensor<1xf32>\n"),
        "div %a, %b" + both, std::string("div %b, %one : tensor<3xf32>, tensor<1xf32>\n")})
    expectGradients(blockOf("6xf32", parts + "%y = xf." + op, "3xf32"),
                    noise(count, 6).array().abs() + 0.5);
  expectGradients(blockOf("6xf32",
                          "%h = xf.reshape %x : tensor<6xf32> to tensor<1x6xf32>\n"
                          "%m = xf.broadcast %h : tensor<1x6xf32> to tensor<3x6xf32>\n"
                          "%s = xf.slice %m from 1 along 1 : tensor<3x6xf32> to tensor<3x2xf32>\n"
                          "%c = xf.concat %s, %m along 1 : tensor<3x2xf32>, tensor<3x6xf32>\n"
                          "%y = xf.normalize rms %c eps 1.0e-3 : tensor<3x8xf32>\n",
                          "3x8xf32"),
                  noise(count, 6));
  expectGradients(blockOf("12xf32",
                          "%c = xf.reshape %x : tensor<12xf32> to tensor<2x3x2xf32>\n"
                          "%t = xf.transpose %c by [2, 0, 1] : tensor<2x3x2xf32>\n"
                          "%p = xf.permute %t parts [1, 2] by [1, 0] along 2 : tensor<2x2x3xf32>\n"
                          "%q = xf.permute %p parts [1, 1] by [1, 0] : tensor<2x2x3xf32>\n"
                          "%y = xf.normalize rms %q eps 1.0e-3 : tensor<2x2x3xf32>\n",
                          "2x2x3xf32"),
                  noise(count, 12));
}

TEST_F(GradientTest, OfMatricesScalesAndBiases) {
  for (const std::string &product :
       {std::string("%W = xf.param \"W\" : tensor<5x6xf32>\n"
                    "%u = xf.linear %W * %x : tensor<5x6xf32>, tensor<6xf32>\n"),
        std::string("%W = xf.param \"V\" : tensor<6x5xf32>\n"
                    "%u = xf.linear %W * %x transposed : tensor<6x5xf32>, tensor<6xf32>\n")})
    expectGradients(
        blockOf("6xf32",
                product + "%m = xf.param \"m\" : tensor<5xf32>\n"
                          "%b = xf.param \"b\" : tensor<5xf32>\n"
                          "%s = xf.scale %u by %m offset 1.0 : tensor<5xf32>, tensor<5xf32>\n"
                          "%y = xf.bias %s + %b : tensor<5xf32>, tensor<5xf32>\n",
                "5xf32"),
        noise(count, 6), {"m", "b", llvm::StringRef(product).contains("\"W\"") ? "W" : "V"});
}

TEST_F(GradientTest, OfAttention) {
  const std::string heads = "%q0 = xf.slice %x from 0 : tensor<16xf32> to tensor<8xf32>\n"
                            "%k0 = xf.slice %x from 8 : tensor<16xf32> to tensor<4xf32>\n"
                            "%v0 = xf.slice %x from 12 : tensor<16xf32> to tensor<4xf32>\n"
                            "%q1 = xf.reshape %q0 : tensor<8xf32> to tensor<2x4xf32>\n"
                            "%k = xf.reshape %k0 : tensor<4xf32> to tensor<1x4xf32>\n"
                            "%v = xf.reshape %v0 : tensor<4xf32> to tensor<1x4xf32>\n"
                            "%f = xf.param \"f\" : tensor<2xf32>\n"
                            "%q = xf.rotary half %q1 by %f : tensor<2x4xf32>, tensor<2xf32>\n";
  const std::string types =
      " : tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>\n";
  for (const char *kind : {"scale 0.5", "scale 0.5 softcap 1.0", "scale 0.5 window %w"})
    expectGradients(blockOf("16xf32",
                            heads +
                                "%w = xf.setting \"w\" : index = 2\n%y = xf.attention %q, %k, %v " +
                                kind + types,
                            "2x4xf32"),
                    noise(count, 16));
}

/// Two sequences that continue a third are as two runs with its tokens in front.
TEST_F(GradientTest, OfSequencesThatShareTheirPast) {
  const std::string text = blockOf(
      "6xf32",
      "%q = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>\n"
      "%y = xf.attention %q, %q, %q scale 1.0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> "
      "-> tensor<2x3xf32>\n",
      "2x3xf32");
  const Rows past = noise(2, 6).cast<float>(),
             own[2] = {noise(2, 6).cast<float>(), noise(1, 6).cast<float>()};
  ParallelFor threads;
  auto gradientOf = [&](TapeTokens tokens, const Rows &x) {
    tokens.ids.assign(x.rows(), 0);
    Tape tape(weights, nullptr, tokens, threads);
    std::vector<float> input(x.data(), x.data() + x.size());
    llvm::cantFail(tape.evaluate(block(parse(text)), {&input}));
    const Rows seed = Rows::Ones(x.rows(), 6) + tape.output(0);
    llvm::cantFail(tape.pullBack({&seed}));
    return Rows(*tape.ofInput(0));
  };
  Rows all(5, 6);
  all << past, own[0], own[1];
  TapeTokens shared;
  shared.positions = {0, 1, 2, 3, 2};
  shared.sequences = {{0, 2, std::nullopt}, {2, 2, 0}, {4, 1, 0}};
  const Rows found = gradientOf(shared, all);
  for (int i : {0, 1}) {
    Rows one(2 + own[i].rows(), 6);
    one << past, own[i];
    TapeTokens tokens;
    for (int32_t at = 0; at < one.rows(); ++at)
      tokens.positions.push_back(at);
    tokens.sequences = {{0, one.rows(), std::nullopt}};
    const Rows expected = gradientOf(tokens, one);
    EXPECT_TRUE(found.middleRows(i ? 4 : 2, own[i].rows())
                    .isApprox(expected.bottomRows(own[i].rows()), 1e-5));
  }
}

/// Entries are as tokens of which only the keys and values are seen.
TEST_F(GradientTest, OfEntries) {
  const std::string text =
      blockOf("6xf32",
              "%q = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>\n"
              "%w = xf.setting \"w\" : index = 3\n"
              "%y = xf.attention %q, %q, %q scale 1.0 softcap 2.0 window %w : tensor<2x3xf32>, "
              "tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>\n",
              "2x3xf32");
  const Rows past = noise(2, 6).cast<float>(), own = noise(3, 6).cast<float>();
  KeysAndValues entries{2, 2, 3, 3, {}, {}};
  for (int head : {0, 1})
    for (int token : {0, 1})
      for (int i : {0, 1, 2})
        entries.keys.push_back(past(token, 3 * head + i));
  entries.values = entries.keys;
  ParallelFor threads;
  auto run = [&](Tape &tape, const Rows &x) {
    std::vector<float> input(x.data(), x.data() + x.size());
    llvm::cantFail(tape.evaluate(block(parse(text)), {&input}));
    Rows seed = tape.output(0);
    seed.topRows(x.rows() - 3).setZero();
    llvm::cantFail(tape.pullBack({&seed}));
    return Rows(*tape.ofInput(0));
  };
  Rows all(5, 6);
  all << past, own;
  TapeTokens written, seen;
  written.ids.assign(5, 0);
  written.positions = {0, 1, 2, 3, 2};
  written.sequences = {{0, 2, std::nullopt}, {2, 2, 0}, {4, 1, 0}};
  seen.ids.assign(3, 0);
  seen.positions = {2, 3, 2};
  seen.sequences = {{0, 0, std::nullopt}, {0, 2, 0}, {2, 1, 0}};
  Tape first(weights, nullptr, written, threads), second(weights, nullptr, seen, threads);
  second.setEntries(entries);
  const Rows expected = run(first, all), found = run(second, own);
  EXPECT_TRUE(found.isApprox(expected.bottomRows(3), 1e-5));
  const KeysAndValues &sums = second.ofEntries();
  for (int head : {0, 1})
    for (int token : {0, 1})
      for (int i : {0, 1, 2}) {
        const int at = (2 * head + token) * 3 + i;
        EXPECT_NEAR(sums.keys[at] + sums.values[at], expected(token, 3 * head + i), 1e-5) << at;
        EXPECT_NE(sums.keys[at], sums.values[at]) << at;
      }
}

TEST_F(GradientTest, RefusesWhatHasNone) {
  TapeTokens tokens = oneSequence();
  ParallelFor threads;
  Tape tape(weights, nullptr, tokens, threads);
  std::vector<float> input(count * 4);
  const std::string text = blockOf("4xf32",
                                   "%K = xf.param \"K\" : tensor<4x2xf32>\n"
                                   "%y = xf.conv %K, %x : tensor<4x2xf32>, tensor<4xf32>\n",
                                   "4xf32");
  llvm::Error error = tape.evaluate(block(parse(text)), {&input});
  EXPECT_EQ(llvm::toString(std::move(error)),
            "'xf.conv' has no gradient; this model cannot be refined");
}

/// Each query of a sequence that continues another one reads one in all of each head, by the
/// weights of the softmax times the values' lengths; those of the first sequence are not counted.
TEST_F(GradientTest, AttentionsReads) {
  const std::string text = blockOf(
      "6xf32",
      "%q = xf.reshape %x : tensor<6xf32> to tensor<2x3xf32>\n"
      "%y = xf.attention %q, %q, %q scale 1.0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32> "
      "-> tensor<2x3xf32>\n",
      "2x3xf32");
  const Rows x = noise(4, 6).cast<float>();
  TapeTokens tokens;
  tokens.ids.assign(4, 0);
  tokens.positions = {0, 1, 2, 3};
  tokens.sequences = {{0, 2, std::nullopt}, {2, 2, 0}};
  ParallelFor threads;
  Tape tape(weights, nullptr, tokens, threads);
  Eigen::VectorXd reads = Eigen::VectorXd::Zero(4), expected = reads;
  tape.countReads(reads);
  std::vector<float> input(x.data(), x.data() + x.size());
  llvm::cantFail(tape.evaluate(block(parse(text)), {&input}));
  for (int query : {2, 3})
    for (int head : {0, 1}) {
      auto part = [&](int row) { return x.row(row).segment(3 * head, 3).cast<double>(); };
      Eigen::VectorXd own = Eigen::VectorXd::Zero(4);
      for (int key = 0; key <= query; ++key)
        own[key] = std::exp(part(query).dot(part(key))) * part(key).norm();
      expected += own / own.sum();
    }
  for (int row = 0; row < 4; ++row)
    EXPECT_NEAR(reads[row], expected[row], 1e-5) << row;
}
