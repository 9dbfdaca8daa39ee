#include "Lexer.h"
#include "Text.h"
#include "ctxc/Support/Error.h"
#include "ctxc/Support/ForeignText.h"
#include "llvm/ADT/StringExtras.h"

using namespace ctxc;
using namespace ctxc::jinja;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

class Lexer {
public:
  Lexer(StringRef source, StringRef name) : name(name) {
    // Line ends become \n, and the last of them is no part of the template.
    source.consume_back("\n") ? (void)source.consume_back("\r") : (void)source.consume_back("\r");
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] != '\r')
        text += source[i];
      else if (i + 1 == source.size() || source[i + 1] != '\n')
        text += '\n';
    }
    rest = text;
  }

  Expected<std::vector<Token>> run() {
    while (message.empty() && !rest.empty())
      outside();
    if (!message.empty())
      return makeError(name + ": line " + Twine(line) + ": " + message);
    add(Token::End, "");
    return std::move(tokens);
  }

private:
  void outside();
  void comment();
  bool raw();
  void inside(Token::Kind ends);
  bool endTag(Token::Kind ends);
  void word();
  void number();
  void stringLiteral();
  void escape(StringRef &from, std::string &to);
  void operatorSign();
  void data(StringRef data, char sign, bool isVariable);

  void add(Token::Kind kind, StringRef spelled) {
    Token token;
    token.kind = kind;
    token.text = spelled.str();
    token.line = line;
    tokens.push_back(std::move(token));
  }
  void fail(const Twine &why) {
    if (message.empty())
      message = why.str();
  }
  /// Takes `size` bytes, and counts their lines.
  StringRef take(size_t size) {
    StringRef taken = rest.take_front(size);
    line += taken.count('\n');
    if (!taken.empty())
      lineStarts = taken.back() == '\n';
    rest = rest.drop_front(size);
    return taken;
  }
  size_t spaces(size_t from) const { // how many bytes of white space begin at `from`
    StringRef behind = rest.drop_front(from);
    return behind.size() - strip(behind, /*left=*/true, /*right=*/false).size();
  }
  /// The length of what ends a tag at `from`: its sign, `closing`, and the space that goes with it;
  /// 0 where it does not end there.
  size_t closingLength(size_t from, StringRef closing, bool isBlock) const;

  StringRef name;
  std::string text;
  StringRef rest;
  std::vector<Token> tokens;
  std::string message;
  std::string open; ///< the brackets that are open within a tag
  unsigned line = 1;
  bool lineStarts = true;
};

} // namespace

size_t Lexer::closingLength(size_t from, StringRef closing, bool isBlock) const {
  StringRef at = rest.drop_front(from);
  if (at.consume_front("-")) {
    if (at.starts_with(closing))
      return 1 + closing.size() + spaces(from + 1 + closing.size());
    return 0;
  }
  if (isBlock && at.starts_with("+"))
    return at.drop_front(1).starts_with(closing) ? 1 + closing.size() : 0;
  if (!at.starts_with(closing))
    return 0;
  return closing.size() + (isBlock && at.drop_front(closing.size()).starts_with("\n"));
}

/// Text before a tag with this sign behind its opening.
void Lexer::data(StringRef data, char sign, bool isVariable) {
  size_t begins = data.rfind('\n') == StringRef::npos ? 0 : data.rfind('\n') + 1;
  if (sign == '-')
    data = strip(data, /*left=*/false, /*right=*/true);
  else if (sign != '+' && !isVariable && (begins > 0 || lineStarts) &&
           strip(data.drop_front(begins), true, true).empty())
    data = data.take_front(begins);
  if (!data.empty())
    add(Token::Data, data);
}

void Lexer::outside() {
  size_t at = 0;
  while ((at = rest.find('{', at)) != StringRef::npos && at + 1 < rest.size() &&
         !StringRef("{%#").contains(rest[at + 1]))
    ++at;
  if (at == StringRef::npos || at + 1 >= rest.size()) {
    add(Token::Data, rest);
    take(rest.size());
    return;
  }
  char kind = rest[at + 1];
  char sign =
      at + 2 < rest.size() && (rest[at + 2] == '-' || rest[at + 2] == '+') ? rest[at + 2] : ' ';
  data(rest.take_front(at), sign, kind == '{');
  take(at);
  if (kind == '%' && raw())
    return;
  if (kind != '#')
    add(kind == '{' ? Token::VariableBegin : Token::BlockBegin, "");
  take(sign == ' ' ? 2 : 3);
  if (kind == '#')
    comment();
  else
    inside(kind == '{' ? Token::VariableEnd : Token::BlockEnd);
}

void Lexer::comment() {
  for (size_t at = 0; at < rest.size(); ++at)
    if (size_t length = closingLength(at, "#}", /*isBlock=*/true)) {
      take(at + length);
      return;
    }
  fail("a comment has no end; expected '#}'");
}

/// {% raw %} … {% endraw %}, whose content is text; false where this is another tag.
bool Lexer::raw() {
  size_t at = 2;
  if (at < rest.size() && (rest[at] == '-' || rest[at] == '+'))
    ++at;
  at += spaces(at);
  if (!rest.drop_front(at).starts_with("raw"))
    return false;
  at += 3;
  at += spaces(at);
  size_t length = closingLength(at, "%}", /*isBlock=*/false);
  if (!length)
    return false;
  take(at + length);
  for (size_t end = rest.find("{%"); end != StringRef::npos; end = rest.find("{%", end + 1)) {
    size_t word = end + 2;
    char sign = word < rest.size() && (rest[word] == '-' || rest[word] == '+') ? rest[word] : ' ';
    word += sign != ' ';
    word += spaces(word);
    if (!rest.drop_front(word).starts_with("endraw"))
      continue;
    word += 6;
    word += spaces(word);
    if (size_t closing = closingLength(word, "%}", /*isBlock=*/true)) {
      data(rest.take_front(end), sign, /*isVariable=*/false);
      take(word + closing);
      return true;
    }
  }
  fail("'raw' has no end; expected '{% endraw %}'");
  return true;
}

bool Lexer::endTag(Token::Kind ends) {
  bool isBlock = ends == Token::BlockEnd;
  size_t length = open.empty() ? closingLength(0, isBlock ? "%}" : "}}", isBlock) : 0;
  if (!length)
    return false;
  add(ends, "");
  take(length);
  return true;
}

void Lexer::inside(Token::Kind ends) {
  unsigned begins = line;
  while (message.empty()) {
    if (endTag(ends))
      return;
    take(spaces(0));
    if (rest.empty()) {
      line = begins;
      return fail(Twine("a tag has no end; expected '") +
                  (ends == Token::BlockEnd ? "%}'" : "}}'"));
    }
    if (endTag(ends))
      return;
    char c = rest.front();
    if (llvm::isDigit(c))
      number();
    else if (llvm::isAlpha(c) || c == '_' || (c & 0x80))
      word();
    else if (c == '\'' || c == '"')
      stringLiteral();
    else
      operatorSign();
  }
}

void Lexer::word() {
  size_t end = 0;
  while (end < rest.size() && (llvm::isAlnum(rest[end]) || rest[end] == '_' || (rest[end] & 0x80)))
    ++end;
  add(Token::Name, rest.take_front(end));
  take(end);
}

void Lexer::number() {
  auto digits = [&](size_t from) {
    while (from < rest.size() &&
           (llvm::isDigit(rest[from]) ||
            (rest[from] == '_' && from + 1 < rest.size() && llvm::isDigit(rest[from + 1]))))
      ++from;
    return from;
  };
  auto digitAt = [&](size_t at) { return at < rest.size() && llvm::isDigit(rest[at]); };
  size_t end = digits(0), whole = end;
  if (end < rest.size() && rest[end] == '.' && digitAt(end + 1))
    end = digits(end + 1);
  if (end < rest.size() && (rest[end] == 'e' || rest[end] == 'E')) {
    size_t power = end + 1;
    if (power < rest.size() && (rest[power] == '+' || rest[power] == '-'))
      ++power;
    if (digitAt(power))
      end = digits(power);
  }
  bool followsDot = !tokens.empty() && tokens.back().isOperator(".");
  if (followsDot)
    end = whole;
  std::string spelled = llvm::join(llvm::split(rest.take_front(end), '_'), "");
  add(end == whole ? Token::Integer : Token::Real, spelled);
  bool isBad = end == whole ? StringRef(spelled).getAsInteger(10, tokens.back().integer)
                            : StringRef(spelled).getAsDouble(tokens.back().real);
  bool isOctal = end == whole && spelled.size() > 1 && spelled[0] == '0';
  if (isBad || isOctal ||
      (end < rest.size() && llvm::isAlpha(rest[end]) && end == whole && spelled == "0"))
    return fail("the number '" + rest.take_front(end) + "' is not supported");
  take(end);
}

static unsigned hexValue(StringRef digits) {
  unsigned value = 0;
  return digits.getAsInteger(16, value) ? ~0u : value;
}

/// One escape of Python's strings; `from` begins behind the backslash.
void Lexer::escape(StringRef &from, std::string &to) {
  char c = from.empty() ? '\\' : from.front();
  static constexpr StringRef letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
  if (size_t at = letters.find(c); at != StringRef::npos) {
    to += meanings[at];
    from = from.drop_front(from.empty() ? 0 : 1);
    return;
  }
  size_t width = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (width) {
    unsigned value = from.size() > width ? hexValue(from.substr(1, width)) : ~0u;
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
      return fail("an escape of a string is no character");
    appendCharacter(to, value);
    from = from.drop_front(1 + width);
  } else if (c >= '0' && c <= '7') {
    StringRef octal = from.take_front(3).take_while([](char d) { return d >= '0' && d <= '7'; });
    unsigned value = 0;
    (void)octal.getAsInteger(8, value);
    appendCharacter(to, value);
    from = from.drop_front(octal.size());
  } else if (c == '\n') {
    from = from.drop_front(1);
  } else {
    to += '\\';
  }
}

void Lexer::stringLiteral() {
  char quote = rest.front();
  size_t end = 1;
  while (end < rest.size() && rest[end] != quote)
    end += rest[end] == '\\' ? 2 : 1;
  if (end >= rest.size())
    return fail("a string has no end");
  std::string value;
  for (StringRef from = rest.slice(1, end); !from.empty() && message.empty();) {
    size_t plain = std::min(from.find('\\'), from.size());
    value += from.take_front(plain);
    from = from.drop_front(plain);
    if (from.consume_front("\\"))
      escape(from, value);
  }
  add(Token::String, value);
  take(end + 1);
}

void Lexer::operatorSign() {
  static constexpr llvm::StringLiteral signs[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                  "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                  ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  const auto *sign =
      llvm::find_if(signs, [&](StringRef spelled) { return rest.starts_with(spelled); });
  if (sign == std::end(signs))
    return fail("unexpected character '" + printable(rest.take_front(1)) + "'");
  char c = sign->front();
  if (c == '(' || c == '[' || c == '{')
    open += c == '(' ? ')' : c == '[' ? ']' : '}';
  if (c == ')' || c == ']' || c == '}') {
    if (open.empty() || open.back() != c)
      return fail(Twine("unexpected '") + Twine(c) + "'" +
                  (open.empty() ? "" : std::string(", expected '") + open.back() + "'"));
    open.pop_back();
  }
  add(Token::Operator, *sign);
  take(sign->size());
}

Expected<std::vector<Token>> jinja::tokenize(StringRef source, StringRef name) {
  return Lexer(source, name).run();
}
