#include "JointRidge.h"
#include "ctxc/Report/JointReport.h"
#include "ctxc/Support/Error.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

std::vector<OptionSpec> driver::ridgeOptions() {
  return {
      {"--ridge", "X",
       "with --joint, a ridge penalty: 0 is exact on the text, which is the default; more serves\n"
       "other text better; `best` takes what serves --held-out best"},
      reads(
          {"--held-out", "FILE",
           "with --joint, other text, as for --text: the report says how well it is served by the\n"
           "exact change and by those with a ridge penalty"})};
}

Expected<Ridges> Ridges::parse(const Arguments &arguments) {
  Ridges ridges;
  const bool judges = arguments.has("--held-out");
  if (judges)
    ridges.all = {1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
  StringRef text = arguments.get("--ridge", "0");
  if (text == "best") {
    ridges.chosen = std::nullopt;
    if (!judges)
      return makeError("--ridge: found best, and no other text to choose by; expected --held-out "
                       "FILE, or a number");
    return ridges;
  }
  double strength = 0;
  if (text.getAsDouble(strength) || !(strength >= 0) || strength > 1e6)
    return makeError("--ridge: found '" + text + "', expected a number from 0 to 1e6, or best");
  ridges.chosen = strength;
  if (strength > 0 && !llvm::is_contained(ridges.all, strength)) {
    ridges.all.push_back(strength);
    llvm::sort(ridges.all);
  }
  return ridges;
}

Expected<std::vector<RidgeRow>> Ridges::judge(const Arguments &arguments, Opened &opened,
                                              const JointPatch &patch,
                                              const JointRequest &request) const {
  Model &model = *opened.model;
  std::optional<Judge> other;
  if (arguments.has("--held-out")) {
    EvaluateRequest about = aboutOf(opened);
    about.front = request.prefix;
    if (Error error =
            readTexts(arguments, "--held-out", model, opened.context).moveInto(about.texts))
      return std::move(error);
    other.emplace(std::move(about));
  }
  std::vector<RidgeRow> rows;
  for (size_t i = 0; i <= all.size(); ++i) {
    const Adapter &adapter = i == 0 ? patch.adapter : patch.ridged[i - 1];
    RidgeRow row;
    row.ridge = i == 0 ? 0 : all[i - 1];
    if (Error error = model.checkJointly(adapter, request).moveInto(row.own))
      return std::move(error);
    if (other) {
      auto card = model.evaluate(adapter, *other);
      if (!card)
        return card.takeError();
      row.other = card->all;
    }
    rows.push_back(std::move(row));
  }
  return std::move(rows);
}

size_t Ridges::choose(llvm::ArrayRef<RidgeRow> rows) const {
  if (!chosen)
    return llvm::max_element(rows,
                             [](const RidgeRow &a, const RidgeRow &b) {
                               return a.other->share() < b.other->share();
                             }) -
           rows.begin();
  return llvm::find_if(rows, [&](const RidgeRow &row) { return row.ridge == *chosen; }) -
         rows.begin();
}

static std::string shortest(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

std::string driver::ridgesText(llvm::ArrayRef<RidgeRow> rows, size_t chosen) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const bool judges = rows.front().other.has_value();
  os << "ridge   this text: likeliest token the same, L∞"
     << (judges ? "   other text: share of the context's effect, likeliest token the same\n"
                : "\n");
  for (auto [i, row] : llvm::enumerate(rows)) {
    os << (i == chosen ? "* " : "  ")
       << llvm::left_justify(row.ridge == 0 ? "exact" : shortest(row.ridge), 7)
       << llvm::format(" %6lld of %-5lld %18.2g", (long long)row.own.agree,
                       (long long)row.own.tokens, row.own.difference);
    if (judges)
      os << llvm::format(" %17.1f %% %21.1f %%", 100 * row.other->share(),
                         100 * row.other->agreementAdapted);
    os << "\n";
  }
  const RidgeRow &first = rows.front();
  os << llvm::format("  without %6lld of %-5lld %18.2g", (long long)first.own.agreeControl,
                     (long long)first.own.tokens, first.own.control);
  if (judges)
    os << llvm::format(" %17.1f %% %21.1f %%", 0.0, 100 * first.other->agreementPlain);
  os << "\n";
  return text;
}

llvm::json::Array driver::ridgesJson(llvm::ArrayRef<RidgeRow> rows) {
  llvm::json::Array all;
  for (const RidgeRow &row : rows) {
    llvm::json::Object object = jointCheckJson(row.own);
    object["ridge"] = row.ridge;
    if (row.other) {
      object["share"] = row.other->share();
      object["held_out_tokens"] = row.other->tokens;
    }
    all.push_back(std::move(object));
  }
  return all;
}
