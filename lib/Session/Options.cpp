#include "ctxc/Session/Options.h"
#include "ctxc/Support/Devices.h"
#include "llvm/Support/raw_ostream.h"

using namespace ctxc;

char OptionError::ID = 0;
char VerdictAgainst::ID = 0;

//===----------------------------------------------------------------------===//
// The names of values
//===----------------------------------------------------------------------===//

template <> std::vector<Named<patch::UpdateKind>> ctxc::namesOf() {
  std::vector<Named<patch::UpdateKind>> names;
  for (unsigned i = 0; i <= patch::getMaxEnumValForUpdateKind(); ++i)
    names.push_back({stringifyUpdateKind(patch::UpdateKind(i)), patch::UpdateKind(i)});
  names.front().note = "default";
  return names;
}

template <> std::vector<Named<std::optional<DType>>> ctxc::namesOf() {
  return {{"f32", DType::F32}, {"bf16", DType::BF16}, {"f16", DType::F16}};
}

template <> std::vector<Named<SiteScope>> ctxc::namesOf() {
  return {{"mlp", SiteScope::MLP, "default"}, {"all", SiteScope::All}};
}

template <> std::vector<Named<Objective>> ctxc::namesOf() {
  return {
#define CTXC_OBJECTIVE(NAME, TEXT, HELP) {TEXT, Objective::NAME, HELP},
#include "ctxc/Planning/Objectives.def"
  };
}

template <> std::vector<Named<xf::Split>> ctxc::namesOf() {
  return {{"even", xf::Split::Even, "default"}, {"least-norm", xf::Split::LeastNorm}};
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// The last line of `text`, broken into lines of at most 80 letters.
static std::string wrapped(std::string text) {
  for (size_t line = text.rfind('\n') + 1; text.size() - line > 80; ++line) {
    line = text.rfind(' ', line + 80);
    text[line] = '\n';
  }
  return text;
}

template <typename... Words> static std::vector<llvm::StringRef> wordsOf(Words... words) {
  return {words...};
}

/// The row of an option whose field has type T: a help that ends in a colon goes on with the names
/// of its values.
template <typename T> static OptionText completed(OptionText text) {
  auto complete = [&](std::string &help, llvm::StringRef quote) {
    if (!llvm::StringRef(help).ends_with(":"))
      return;
    if constexpr (hasNames<T>)
      help += " " + listOfNames<T>(quote);
    else
      help += " " + anyOf(deviceNames);
    if (quote.empty())
      help = wrapped(std::move(help));
  };
  complete(text.help, "");
  complete(text.pythonHelp, "\"");
  if constexpr (hasNames<T>)
    for (const Named<T> &each : namesOf<T>())
      text.choices.push_back(each.name);
  return text;
}

llvm::ArrayRef<OptionText> ctxc::optionTexts() {
  static const std::vector<OptionText> rows = {
#define CTXC_OPTION(NAME, WORDS, COMMANDS, FIELD, FLAG, VALUE, NAMES, HELP, PYTHON, PYTHON_HELP)   \
  completed<std::decay_t<decltype(std::declval<LoadOptions>().FIELD)>>(                            \
      {Option::NAME, WORDS, OptionText::COMMANDS, "--" FLAG, VALUE, wordsOf NAMES, HELP, PYTHON,   \
       PYTHON_HELP}),
#define CTXC_OTHER_OPTION(NAME, WORDS, COMMANDS, FLAG, VALUE, NAMES, HELP, PYTHON, PYTHON_HELP)    \
  {Option::NAME, WORDS,  OptionText::COMMANDS, "--" FLAG, VALUE, wordsOf NAMES,                    \
   HELP,         PYTHON, PYTHON_HELP},
#define CTXC_COMPILE_OPTION(NAME, WORDS, FLAG)                                                     \
  {Option::NAME, WORDS, OptionText::Compile, "--" FLAG},
#include "ctxc/Session/Options.def"
  };
  return rows;
}

const OptionText &ctxc::rowOf(Option option) { return optionTexts()[size_t(option)]; }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void OptionError::log(llvm::raw_ostream &os) const { os << rowOf(option).words << ": " << problem; }

void VerdictAgainst::log(llvm::raw_ostream &os) const {
  os << (reasons.empty() ? "a block has no plan" : llvm::StringRef(reasons).rtrim());
}
