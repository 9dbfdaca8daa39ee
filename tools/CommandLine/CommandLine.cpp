#include "tools/CommandLine/CommandLine.h"
#include "ctxc/Checkpoint/HubCache.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/Suggestion.h"
#include "tools/CommandLine/Manual.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

static OptionSpec used(OptionSpec option, PathUse use) {
  option.path = use;
  return option;
}

OptionSpec driver::reads(OptionSpec option) { return used(std::move(option), PathUse::Input); }
OptionSpec driver::writes(OptionSpec option) { return used(std::move(option), PathUse::Output); }
OptionSpec driver::writesInto(OptionSpec option) {
  return used(std::move(option), PathUse::Folder);
}

bool driver::isPathWord(StringRef word) {
  return llvm::is_contained({"MODEL", "FILE", "FILE.npy", "DIR", "PATH", "WEIGHTS", "PYTHON"},
                            word);
}

/// The option that `word` names; a joined option is recognised by its first letters.
static const OptionSpec *findOption(llvm::ArrayRef<OptionSpec> options, StringRef word) {
  StringRef name = word.take_front(word.find('='));
  auto found = llvm::find_if(options, [&](const OptionSpec &option) {
    return option.joined ? word.starts_with(option.name) && !word.starts_with("--")
                         : option.name == name;
  });
  return found == options.end() ? nullptr : &*found;
}

static std::string unknownOption(const Command &command, StringRef name) {
  std::vector<StringRef> known;
  for (const OptionSpec &option : optionsOf(command))
    known.push_back(option.name);
  std::string hint = suggestion(name, known);
  if (hint.empty())
    hint = ("; 'ctxc " + command.name + " --help' lists the options").str();
  return ("unknown option '" + name + "'" + hint).str();
}

llvm::Expected<Arguments> Arguments::parse(const Command &command,
                                           llvm::ArrayRef<StringRef> words) {
  Arguments result;
  llvm::Error errors = llvm::Error::success();
  auto fail = [&](const llvm::Twine &message) {
    errors = llvm::joinErrors(std::move(errors), makeError(message));
  };

  const std::vector<OptionSpec> options = optionsOf(command);
  bool optionsEnded = false;
  for (size_t i = 0; i < words.size(); ++i) {
    StringRef word = words[i];
    if (!optionsEnded && word == "--") {
      optionsEnded = true;
      continue;
    }
    if (optionsEnded || !word.starts_with("-") || word == "-") {
      result.positionals.push_back(word);
      continue;
    }
    const OptionSpec *option = findOption(options, word);
    size_t equals = word.find('=');
    StringRef name = option && option->joined ? option->name : word.take_front(equals);
    if (!option) {
      fail(unknownOption(command, name));
      continue;
    }
    StringRef value;
    if (option->joined) {
      value = word.drop_front(name.size());
      if (value.empty())
        fail(name + ": expected " + option->value + " directly after it");
    } else if (option->value.empty()) {
      if (equals != StringRef::npos)
        fail(name + ": takes no value, found '" + word.drop_front(equals + 1) + "'");
    } else if (equals != StringRef::npos) {
      value = word.drop_front(equals + 1);
    } else if (option->valueOptional) {
      // an optional value that was left out
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      fail(name + ": expected " + option->value + " after it");
      continue;
    }
    if (!option->choices.empty() && !llvm::is_contained(option->choices, value))
      fail(name + ": found '" + value + "', expected " + llvm::join(option->choices, ", ") +
           suggestion(value, option->choices));
    std::vector<StringRef> &known = result.values[name];
    if (!known.empty() && !option->repeatable)
      fail(name + ": given twice");
    known.push_back(value);
  }

  auto instead = llvm::find_if(command.options, [&](const OptionSpec &option) {
    return option.insteadOfPositionals && result.has(option.name);
  });
  if (instead != command.options.end() && !result.positionals.empty())
    fail("unexpected argument '" + result.positionals[0] + "': " + instead->name +
         " stands in place of " + llvm::join(command.positionals, " "));
  for (size_t i = result.positionals.size();
       instead == command.options.end() && i < command.positionals.size(); ++i)
    if (!command.positionals[i].starts_with("["))
      fail("expected " + command.positionals[i] + "; 'ctxc " + command.name +
           " --help' shows how to call it");
  for (size_t i = command.positionals.size(); i < result.positionals.size(); ++i)
    fail("unexpected argument '" + result.positionals[i] + "'");
  for (const OptionSpec &option : command.options)
    if (option.required && instead == command.options.end() && !result.has(option.name))
      fail("expected " + option.name + " " + option.value);
  if (errors)
    return std::move(errors);
  for (size_t i = 0; i < std::min(result.positionals.size(), command.positionals.size()); ++i)
    if (command.positionals[i] == "MODEL") {
      result.models.push_back(
          std::make_shared<const std::string>(findModel(result.positionals[i])));
      result.positionals[i] = *result.models.back();
    }
  return result;
}

std::optional<StringRef> Arguments::get(StringRef option) const {
  auto found = values.find(option);
  if (found == values.end())
    return std::nullopt;
  return found->second.back();
}

llvm::ArrayRef<StringRef> Arguments::all(StringRef option) const {
  auto found = values.find(option);
  if (found == values.end())
    return {};
  return found->second;
}

Arguments Arguments::with(StringRef option, StringRef value) const {
  Arguments copy = *this;
  copy.values[option] = {value};
  return copy;
}

StringRef Arguments::get(StringRef option, StringRef otherwise) const {
  return get(option).value_or(otherwise);
}

llvm::Expected<int64_t> Arguments::integer(StringRef option, int64_t low, int64_t high,
                                           int64_t otherwise) const {
  std::optional<StringRef> text = get(option);
  if (!text)
    return otherwise;
  int64_t value;
  if (text->getAsInteger(10, value) || value < low || value > high)
    return makeError(option + ": found '" + *text + "', expected an integer from " +
                     llvm::Twine(low) + " to " + llvm::Twine(high));
  return value;
}

std::vector<OptionSpec> driver::optionsOf(const Command &command) {
  std::vector<OptionSpec> options = command.options;
  OptionSpec plugin{"--load-dialect-plugin", "FILE",
                    "a shared library with ops of another dialect; can be given several times"};
  plugin.repeatable = true;
  plugin.path = PathUse::Input;
  bool writes = llvm::any_of(options, [](const OptionSpec &option) {
    return option.path == PathUse::Output || option.path == PathUse::Folder;
  });
  if (writes)
    options.push_back({"--force", "", "also replace files that ctxc did not write"});
  options.push_back(plugin);
  options.push_back({"--help", "", "this text"});
  return options;
}

std::string driver::labelOf(const OptionSpec &option) {
  if (option.joined)
    return (option.name + option.value).str();
  if (option.valueOptional)
    return (option.name + "[=" + option.value + "]").str();
  return option.value.empty() ? option.name.str() : (option.name + " " + option.value).str();
}

/// A program of its own, such as ctxc-bench, is not a subcommand of ctxc.
static std::string nameOf(const Command &command) {
  return ((command.name.starts_with("ctxc-") ? "" : "ctxc ") + command.name).str();
}

std::string driver::synopsisOf(const Command &command) {
  std::string text = nameOf(command);
  for (StringRef positional : command.positionals)
    text += (" " + positional).str();
  for (const OptionSpec &option : command.options)
    if (option.required)
      text += (" " + option.name + " " + option.value).str();
  return text + " [options]";
}

void driver::printHelp(const Command &command, llvm::raw_ostream &os) {
  os << nameOf(command) << ": " << command.summary << "\n\nusage: " << synopsisOf(command) << "\n\n"
     << command.description << "\n\noptions:\n";
  constexpr size_t column = 24;
  for (const OptionSpec &option : optionsOf(command)) {
    std::string left = labelOf(option);
    os << "  " << left;
    size_t used = left.size() + 2;
    if (used + 2 > column) {
      os << "\n";
      used = 0;
    }
    for (StringRef rest = option.help; !rest.empty() || used; used = 0) {
      auto [first, others] = rest.split('\n');
      os.indent(column - used) << first << "\n";
      rest = others;
    }
  }
  os << "\nexamples:\n" << command.examples;
}
