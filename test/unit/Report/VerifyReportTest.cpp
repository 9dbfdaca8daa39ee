#include "ctxc/Report/VerifyReport.h"
#include "llvm/Support/Unicode.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

TEST(FitColumns, padsCutsAndEscapes) {
  EXPECT_EQ(fitColumns("ab", 4), "ab  ");
  EXPECT_EQ(fitColumns("ab", 4, false), "ab");
  EXPECT_EQ(fitColumns("abcd", 4), "abcd");
  EXPECT_EQ(fitColumns("abcde", 4), "abc…");
  EXPECT_EQ(fitColumns("▁the", 6), "▁the  ");
  EXPECT_EQ(fitColumns("a\nb\x1b", 12, false), "a\\x0ab\\x1b");
  EXPECT_EQ(fitColumns("\xff\xe2\x96", 12, false), "\\xff\\xe2\\x96");
}

TEST(FitColumns, countsWideCharactersAsTwo) {
  EXPECT_EQ(fitColumns("世界", 4), "世界");
  EXPECT_EQ(fitColumns("世界世", 4), "世… ");
}

VerifyResult sample() {
  VerifyStep step;
  step.token = 5;
  step.position = 2;
  step.next = 7;
  step.patched = {7, 7, true, 1e-6, 1e-7, 1e-7, 1, 0, true};
  step.control = {7, 9, false, 12.5, 0.9, 0.8, 0.1, 0.5, true};
  step.fusedLinf = 2e-7;
  step.layers = {{{3, 0.1, 4, 0.2}, {1, 0}, 1e-6}};
  step.norm = {3, 0.1, 4, 0.2};
  return {{step}, false, {0.1, 0.2, 0.3, 0.4, {20, 1, 0, 1}}, std::nullopt};
}

/// All tokens are the first byte of a character.
struct Names : Tokenizer {
  llvm::Expected<std::vector<int64_t>> encode(llvm::StringRef, bool) const override {
    return std::vector<int64_t>();
  }
  llvm::Expected<std::string> decode(llvm::ArrayRef<int64_t>) const override { return ""; }
  std::string piece(int64_t) const override { return "Ã"; }
  std::string bytes(int64_t) const override { return "\xc3"; }
  int64_t size() const override { return 10; }
  bool addsSpecial() const override { return false; }
};

struct VerifyReportTest : ::testing::Test {
  VerifySettings settings;
  VerifyResult result = sample();

  std::string text() {
    std::string out;
    llvm::raw_string_ostream os(out);
    VerifyText report(os, settings, TokenName());
    report.begin();
    for (const VerifyStep &step : result.steps)
      report.step(step);
    report.end(result, {}, "some text");
    return out;
  }
  VerifyReportTest() {
    settings.model = "m";
    settings.request.tokens = {1, 2, 5};
  }
};

TEST_F(VerifyReportTest, textShowsTheThreeRunsSideBySide) {
  std::string out = text();
  EXPECT_NE(
      out.find("\n   1 5                7                 = 7                 ≠ 9                  "
               "1e-06    1e-07\n"),
      std::string::npos)
      << out;
  EXPECT_NE(out.find("\nverified: "), std::string::npos) << out;
}

TEST_F(VerifyReportTest, noLineIsWiderThan100Columns) {
  settings.modelHash = std::string(64, 'f');
  settings.request.kept = {0, 1};
  result.steps[0].patched.linf = INFINITY;
  result.steps[0].layers[0].norm = {123456789, 1e-7, 1e-5, 4567};
  result.steps[0].norm = {123456789, 1e-7, 1e-5, 4567};
  std::string out = text();
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(out).split(lines, '\n');
  for (llvm::StringRef line : lines)
    EXPECT_LE(llvm::sys::unicode::columnWidthUTF8(line), 100) << line.str();
}

TEST_F(VerifyReportTest, theTextSaysWhereTheModelEndsIt) {
  EXPECT_EQ(text().find("\nend "), std::string::npos);
  result.ended = true;
  settings.generate = 20;
  EXPECT_NE(text().find("\nend        with 7, after 1 token of at most 20\n"), std::string::npos)
      << text();
}

TEST_F(VerifyReportTest, aToleranceIsPartOfTheVerdict) {
  settings.tolerance = 1e-9;
  EXPECT_FALSE(isVerified(summarize(result.steps), settings));
  EXPECT_NE(text().find("not verified: a logit differs by 1e-06, more than 1e-09"),
            std::string::npos);
}

TEST_F(VerifyReportTest, whatRoundingsAllowIsPartOfTheVerdict) {
  result.steps[0].allowedLinf = 2e-6;
  EXPECT_TRUE(isVerified(summarize(result.steps), settings));
  result.steps[0].allowedLinf = 3e-7;
  EXPECT_FALSE(isVerified(summarize(result.steps), settings));
  EXPECT_NE(
      text().find("not verified: in 1 of 1 step a logit differs by more than roundings allow: "
                  "found 1e-06, expected at most 3e-07"),
      std::string::npos);
  llvm::json::Value value = verifyJson(result, settings, {}, TokenName());
  const llvm::json::Object &summary = *value.getAsObject()->getObject("summary");
  EXPECT_EQ(summary.getBoolean("verified"), false);
  EXPECT_EQ(summary.getInteger("beyond"), 1);
  EXPECT_EQ(summary.getNumber("nearestAllowed"), 3e-7);
}

TEST_F(VerifyReportTest, jsonHoldsWhatWasMeasured) {
  result.steps[0].patched.linf = INFINITY;
  Names names;
  llvm::json::Value value = verifyJson(result, settings, {}, TokenName(names));
  const llvm::json::Object &root = *value.getAsObject();
  const llvm::json::Object &step = *(*root.getArray("steps"))[0].getAsObject();
  EXPECT_EQ(step.getString("text"), llvm::StringRef("\\xc3"));
  EXPECT_EQ(step.getString("piece"), llvm::StringRef("Ã"));
  EXPECT_EQ(step.getObject("patched")->getString("text"), llvm::StringRef("\\xc3"));
  EXPECT_EQ(step.getObject("patched")->get("linf")->getAsNull(), nullptr);
  EXPECT_EQ(step.getObject("control")->getNumber("linf"), 12.5);
  EXPECT_EQ(step.getNumber("fusedLinf"), 2e-7);
  const llvm::json::Object &layer = *(*root.getArray("layers"))[0].getAsObject();
  EXPECT_EQ(layer.getNumber("vectorNorm"), 4);
  EXPECT_EQ(layer.getInteger("harmless"), 1);
  EXPECT_EQ(root.getObject("summary")->getInteger("matches"), 1);
  EXPECT_EQ(root.getObject("seconds")->getNumber("control"), 0.4);
  EXPECT_EQ(root.getObject("tokens")->getInteger("prefill"), 20);
  EXPECT_EQ(root.getObject("tokensPerSecond")->getNumber("prefill"), 200);
  EXPECT_EQ(root.getObject("tokensPerSecond")->getNumber("control"), 2.5);
}

} // namespace
