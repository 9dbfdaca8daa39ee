// Completion scripts for shells.
#include "tools/CommandLine/Manual.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::driver;
using llvm::StringRef;

/// What an option is for, in one line.
static StringRef briefOf(const OptionSpec &option) {
  return option.help.split('\n').first.rtrim(" ,;:");
}

/// Whether the word after the option is its value.
static bool takesWord(const OptionSpec &option) {
  return !option.value.empty() && !option.valueOptional && !option.joined;
}

/// In single quotes, for shells of sh's family.
static std::string quoted(StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

static std::string namesOf(llvm::ArrayRef<Command> commands) {
  return llvm::join(llvm::map_range(commands, [](const Command &c) { return c.name; }), " ");
}

static void printBash(llvm::ArrayRef<Command> commands, llvm::raw_ostream &os) {
  os << "_ctxc() {\n"
        "  local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "  local command=${COMP_WORDS[1]} words=\n"
        "  COMPREPLY=()\n"
        "  # bash takes --format=json for three words.\n"
        "  if [[ $current == = ]]; then\n"
        "    current=\n"
        "  elif [[ $option == = ]]; then\n"
        "    option=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "  fi\n"
        "  if ((COMP_CWORD == 1)); then\n"
        "    words='"
     << namesOf(commands)
     << " --help --version'\n"
        "  else\n"
        "    case \"$command $option\" in\n";
  for (const Command &command : commands)
    for (const OptionSpec &option : optionsOf(command)) {
      if (!takesWord(option))
        continue;
      os << "    " << quoted((command.name + " " + option.name).str()) << ") ";
      if (option.choices.empty())
        os << "return ;;\n";
      else
        os << "words='" << llvm::join(option.choices, " ") << "' ;;\n";
    }
  os << "    *)\n"
        "      [[ $current == -* ]] || return\n"
        "      case $command in\n";
  for (const Command &command : commands) {
    os << "      " << command.name << ") words='";
    llvm::interleave(
        optionsOf(command), os, [&](const OptionSpec &option) { os << option.name; }, " ");
    os << "' ;;\n";
  }
  os << "      esac\n"
        "      ;;\n"
        "    esac\n"
        "  fi\n"
        "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
        "}\n"
        "complete -o default -F _ctxc ctxc\n";
}

/// An option as zsh's _arguments takes it.
static std::string zshArgument(const OptionSpec &option) {
  std::string brief;
  for (char c : briefOf(option))
    brief += (c == '[' || c == ']' || c == '\\' ? std::string(1, '\\') : "") + c;
  std::string argument = (option.repeatable ? "*" : "") + option.name.str();
  if (option.joined || option.valueOptional)
    argument += option.joined ? "-" : "=-";
  else if (takesWord(option))
    argument += option.name.starts_with("--") ? "=" : "+";
  argument += "[" + brief + "]";
  if (option.value.empty())
    return argument;
  argument += (option.valueOptional ? "::" : ":") + option.value.str() + ":";
  if (!option.choices.empty())
    return argument + "(" + llvm::join(option.choices, " ") + ")";
  return option.path == PathUse::None ? argument : argument + "_files";
}

static void printZsh(llvm::ArrayRef<Command> commands, llvm::raw_ostream &os) {
  os << "_ctxc() {\n"
        "  local -a commands\n"
        "  commands=(\n";
  for (const Command &command : commands)
    os << "    " << quoted((command.name + ":" + command.summary).str()) << "\n";
  os << "  )\n"
        "  if ((CURRENT == 2)); then\n"
        "    if [[ $words[2] == -* ]]; then\n"
        "      _arguments '--help[this text]' '--version[the versions of ctxc and LLVM]'\n"
        "    else\n"
        "      _describe command commands\n"
        "    fi\n"
        "    return\n"
        "  fi\n"
        "  local command=$words[2]\n"
        "  shift words\n"
        "  ((CURRENT--))\n"
        "  case $command in\n";
  for (const Command &command : commands) {
    os << "  " << command.name << ")\n    _arguments";
    for (const OptionSpec &option : optionsOf(command))
      os << " \\\n      " << quoted(zshArgument(option));
    os << " \\\n      '*:file:_files'\n    ;;\n";
  }
  os << "  esac\n"
        "}\n"
        "if [[ $funcstack[1] == _ctxc ]]; then _ctxc \"$@\"; else compdef _ctxc ctxc; fi\n";
}

/// In single quotes, as fish escapes them.
static std::string fishQuoted(StringRef text) {
  std::string result = "'";
  for (char c : text)
    result += (c == '\'' || c == '\\' ? std::string(1, '\\') : "") + c;
  return result + "'";
}

static void printFish(llvm::ArrayRef<Command> commands, llvm::raw_ostream &os) {
  std::string first = "complete -c ctxc -n 'not __fish_seen_subcommand_from " + namesOf(commands);
  os << first << "' -f -l help -d 'this text'\n"
     << first << "' -f -l version -d 'the versions of ctxc and LLVM'\n";
  for (const Command &command : commands)
    os << first << "' -f -a " << command.name << " -d " << fishQuoted(command.summary) << "\n";
  for (const Command &command : commands)
    for (const OptionSpec &option : optionsOf(command)) {
      os << "complete -c ctxc -n '__fish_seen_subcommand_from " << command.name << "' ";
      if (option.name.starts_with("--"))
        os << "-l " << option.name.drop_front(2);
      else
        os << "-s " << option.name.drop_front(1);
      if (!option.choices.empty())
        os << " -x -a '" << llvm::join(option.choices, " ") << "'";
      else if (takesWord(option))
        os << " -r -F";
      os << " -d " << fishQuoted(briefOf(option)) << "\n";
    }
}

std::vector<StringRef> driver::completedShells() { return {"bash", "zsh", "fish"}; }

void driver::printCompletion(StringRef shell, llvm::ArrayRef<Command> commands,
                             llvm::raw_ostream &os) {
  if (shell == "zsh")
    os << "#compdef ctxc\n";
  os << "# Completion of ctxc for " << shell << ". Written by ctxc completion " << shell << ".\n";
  if (shell == "bash")
    printBash(commands, os);
  else if (shell == "zsh")
    printZsh(commands, os);
  else
    printFish(commands, os);
}
