#include "Ptx.h"
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

using namespace ptx;

namespace {

const std::map<std::string, Type> types = {
    {"pred", Type::Pred},    {"b8", Type::B8},   {"b16", Type::B16}, {"b32", Type::B32},
    {"b64", Type::B64},      {"u8", Type::U8},   {"u16", Type::U16}, {"u32", Type::U32},
    {"u64", Type::U64},      {"s8", Type::S8},   {"s16", Type::S16}, {"s32", Type::S32},
    {"s64", Type::S64},      {"f16", Type::F16}, {"f32", Type::F32}, {"f64", Type::F64},
    {"bf16x2", Type::BF16x2}};

const std::map<std::string, Op> arithmetic = {
    {"add", Op::Add},        {"sub", Op::Sub},   {"mul", Op::MulLo}, {"mad", Op::Mad},
    {"fma", Op::Fma},        {"div", Op::Div},   {"rem", Op::Rem},   {"rcp", Op::Rcp},
    {"sqrt", Op::Sqrt},      {"neg", Op::Neg},   {"abs", Op::Abs},   {"min", Op::Min},
    {"max", Op::Max},        {"and", Op::And},   {"or", Op::Or},     {"xor", Op::Xor},
    {"not", Op::Not},        {"shl", Op::Shl},   {"shr", Op::Shr},   {"bfe", Op::Bfe},
    {"shf", Op::FunnelLeft}, {"prmt", Op::Bytes}};

/// The comparisons of setp. Unsigned numbers have other names.
const std::map<std::string, Relation> relations = {
    {"eq", Relation::Equal},        {"ne", Relation::NotEqual},  {"lt", Relation::Less},
    {"lo", Relation::Less},         {"le", Relation::LessEqual}, {"ls", Relation::LessEqual},
    {"gt", Relation::Greater},      {"hi", Relation::Greater},   {"ge", Relation::GreaterEqual},
    {"hs", Relation::GreaterEqual}, {"num", Relation::Number},   {"nan", Relation::NaN}};

const std::map<std::string, Kernel::Special> specials = {{"%tid.x", Kernel::Thread},
                                                         {"%ctaid.x", Kernel::Block},
                                                         {"%ntid.x", Kernel::Threads},
                                                         {"%nctaid.x", Kernel::Blocks}};

std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    parts.push_back(part);
  return parts;
}

std::string trim(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t;");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Parses the body of one kernel.
class Reader {
public:
  explicit Reader(Kernel &kernel) : kernel(kernel) {}
  std::string error;

  void declareShared(const std::string &line) {
    size_t open = line.find('['), name = line.rfind(' ', open);
    kernel.sharedBytes = (kernel.sharedBytes + 15) / 16 * 16;
    shared[line.substr(name + 1, open - name - 1)] = kernel.sharedBytes;
    kernel.sharedBytes += std::strtoull(line.c_str() + open + 1, nullptr, 10);
  }
  void label(const std::string &name) { labels[name] = kernel.body.size(); }

  void instruction(std::string line) {
    Instruction made;
    made.text = line;
    // { .reg .b32 tmp; mov.b64 {tmp, %r1}, %rd1; }: a scope of one instruction.
    if (line[0] == '{')
      line = trim(line.substr(line.find(';') + 1, line.rfind(';') - line.find(';') - 1));
    if (line[0] == '@') {
      made.isGuarded = true;
      made.isNegated = line[1] == '!';
      size_t space = line.find(' ');
      made.guard = registerOf(line.substr(1 + made.isNegated, space - 1 - made.isNegated));
      line = trim(line.substr(space));
    }
    size_t space = line.find_first_of(" \t");
    made.op = split(line.substr(0, space), '.');
    if (space != std::string::npos)
      line = trim(line.substr(space));
    else
      line.clear();
    std::vector<Type> found;
    for (const std::string &word : made.op)
      if (auto type = types.find(word); type != types.end())
        found.push_back(type->second);
    if (!found.empty())
      made.type = made.from = found.back();
    if (found.size() > 1)
      made.type = found[found.size() - 2];
    decode(made, line);
    kernel.body.push_back(std::move(made));
  }

  void finish() {
    for (auto [at, name] : branches)
      if (auto found = labels.find(name); found != labels.end())
        kernel.body[at].target = found->second;
      else
        error = "no label " + name;
  }

private:
  /// The register of a name, or of a constant, whose text is `name` and whose initial value is
  /// `value`.
  Operand registerOf(const std::string &name, uint64_t value = ~uint64_t(0)) {
    auto [found, isNew] = registers.emplace(name, kernel.registers.size());
    if (isNew)
      kernel.registers.push_back(value);
    return found->second;
  }

  Operand operand(const std::string &text) {
    if (auto special = specials.find(text); special != specials.end()) {
      Operand place = registerOf(text);
      kernel.specials[place] = special->second;
      return place;
    }
    if (text[0] == '%' || text == "tmp" || text == "_")
      return registerOf(text);
    if (text.compare(0, 2, "0f") == 0 || text.compare(0, 2, "0d") == 0)
      return registerOf(text, std::strtoull(text.c_str() + 2, nullptr, 16));
    if (auto found = shared.find(text); found != shared.end())
      return registerOf(text, found->second);
    if (!std::isdigit(text[0]) && text[0] != '-')
      error = "unknown operand " + text;
    return registerOf(text, text[0] == '-' ? uint64_t(std::strtoll(text.c_str(), nullptr, 0))
                                           : std::strtoull(text.c_str(), nullptr, 0));
  }

  /// Splits at commas that are not inside braces.
  static std::vector<std::string> listOf(const std::string &text) {
    std::vector<std::string> all;
    int depth = 0;
    std::string current;
    for (char c : text) {
      depth += (c == '{') - (c == '}');
      if (c == ',' && !depth) {
        all.push_back(trim(current));
        current.clear();
      } else {
        current += c;
      }
    }
    if (!trim(current).empty())
      all.push_back(trim(current));
    return all;
  }

  void add(Operands &all, const std::string &text) {
    for (const std::string &each : listOf(text[0] == '{' ? text.substr(1, text.size() - 2) : text))
      if (all.size() == Operands::most)
        error = "too many operands: " + text;
      else
        all.push_back(operand(each));
  }

  /// Returns the base of [register+offset]. For [parameter] the offset is the parameter's number.
  Operand address(Instruction &made, std::string text) {
    text = text.substr(1, text.size() - 2);
    size_t plus = text.find('+');
    if (plus != std::string::npos)
      made.offset = std::strtoll(text.c_str() + plus + 1, nullptr, 10);
    text = text.substr(0, plus);
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      if (kernel.parameters[i] == text) {
        made.offset = i;
        return 0;
      }
    return operand(text);
  }

  void decode(Instruction &made, const std::string &rest) {
    const std::string &name = made.op[0];
    std::vector<std::string> list = listOf(rest);
    auto has = [&](const char *word) {
      for (const std::string &each : made.op)
        if (each == word)
          return true;
      return false;
    };
    made.isShared = has("shared");
    made.keepsNaN = has("NaN");
    made.rounding = has("rmi")   ? Rounding::Down
                    : has("rpi") ? Rounding::Up
                    : has("rzi") ? Rounding::ToZero
                    : has("rni") ? Rounding::Nearest
                                 : Rounding::None;
    if (name == "ld" || name == "st") {
      bool loads = name == "ld";
      made.code = !loads         ? Instruction::Store
                  : has("param") ? Instruction::LoadParameter
                                 : Instruction::Load;
      if (made.code != Instruction::LoadParameter && !made.isShared && !has("global"))
        error = "unknown memory: " + made.text;
      add(made.results, list[loads ? 0 : 1]);
      made.operands.push_back(address(made, list[loads ? 1 : 0]));
      return;
    }
    if (name == "ldmatrix" || name == "mma" || name == "cp")
      return decodeMatrix(made, list);
    if (name == "bra") {
      made.code = Instruction::Branch;
      branches.push_back({kernel.body.size(), list[0]});
      return;
    }
    if (name == "ret" || name == "bar") {
      made.code = name == "ret" ? Instruction::Return : Instruction::Barrier;
      return;
    }
    static const std::map<std::string, Instruction::Code> others = {
        {"mov", Instruction::Move},     {"cvta", Instruction::Move},
        {"setp", Instruction::Compare}, {"selp", Instruction::Select},
        {"cvt", Instruction::Convert},  {"shfl", Instruction::Shuffle}};
    if (auto found = others.find(name); found != others.end())
      made.code = found->second;
    else if (auto found = arithmetic.find(name); found != arithmetic.end()) {
      made.code = has("wide") ? Instruction::MulWide : Instruction::Arithmetic;
      made.arithmetic = has("hi") ? Op::MulHi : found->second;
      if (name == "shf" && has("r"))
        made.arithmetic = Op::FunnelRight;
      if (name == "prmt" && has("f4e"))
        made.arithmetic = Op::BytesFrom;
      if ((has("hi") && (name != "mul" || sizeOf(made.type) == 8)) ||
          (name == "shf" && !has("wrap")) || (name == "prmt" && made.op.size() > 2 && !has("f4e")))
        error = "unknown instruction: " + made.text;
    } else
      error = "unknown instruction: " + made.text;
    if (name == "mov" && list.size() == 2 && (list[0][0] == '{') != (list[1][0] == '{')) {
      made.code = list[0][0] == '{' ? Instruction::Unpack : Instruction::Pack;
      add(made.results, list[0]);
      add(made.operands, list[1]);
      return;
    }
    if (list.empty() || list[0][0] == '{' || list[0].find('|') != std::string::npos) {
      error = "unknown form: " + made.text;
      return;
    }
    if (made.code == Instruction::Compare)
      decodeRelation(made);
    for (size_t i = 0; i < list.size(); ++i)
      add(i ? made.operands : made.results, list[i]);
  }

  /// setp.lt, setp.ltu, …: a final u means that the comparison also holds where an operand is NaN.
  void decodeRelation(Instruction &made) {
    std::string name = made.op[1];
    made.orUnordered = name.size() == 3 && name[2] == 'u';
    if (made.orUnordered)
      name.pop_back();
    if (auto found = relations.find(name); found != relations.end())
      made.relation = found->second;
    else
      error = "unknown instruction: " + made.text;
  }

  /// ldmatrix, mma and cp.async, in the forms that ctxc's kernels use.
  void decodeMatrix(Instruction &made, const std::vector<std::string> &list) {
    std::string form;
    for (const std::string &each : made.op)
      form += (form.empty() ? "" : ".") + each;
    auto take = [&](size_t from) {
      for (size_t i = from; i < list.size(); ++i)
        add(made.operands, list[i]);
    };
    if (form == "ldmatrix.sync.aligned.m8n8.x4.shared.b16" && list.size() == 2) {
      made.code = Instruction::LoadMatrices;
      add(made.results, list[0]);
      made.operands.push_back(address(made, list[1]));
    } else if (form == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" && list.size() == 4) {
      made.code = Instruction::MultiplyMatrices;
      add(made.results, list[0]);
      take(1);
    } else if (form == "cp.async.cg.shared.global" && list.size() >= 3) {
      made.code = Instruction::BeginCopy;
      Operand source = address(made, list[1]);
      made.sourceOffset = std::exchange(made.offset, 0);
      made.operands.push_back(address(made, list[0]));
      made.operands.push_back(source);
      take(2);
    } else if (form == "cp.async.commit_group") {
      made.code = Instruction::CommitCopies;
    } else if (form == "cp.async.wait_group" && list.size() == 1) {
      made.code = Instruction::WaitForCopies;
      take(0);
    } else {
      error = "unknown instruction: " + made.text;
    }
  }

  Kernel &kernel;
  std::map<std::string, uint64_t> registers, shared, labels;
  std::vector<std::pair<size_t, std::string>> branches;
};

} // namespace

bool ptx::parse(const std::string &text, Module &module, std::string &error) {
  Kernel kernel;
  std::unique_ptr<Reader> reader;
  bool inBody = false;
  size_t at = 0;
  std::string begun; // of an instruction that spans lines
  for (std::string line : split(text, '\n')) {
    ++at;
    line = line.substr(0, line.find("//"));
    bool isOpen = line == "{";
    if (inBody && (!begun.empty() || line.find("mma.sync") != std::string::npos)) {
      begun += line;
      if (line.find(';') == std::string::npos)
        continue;
      line = std::exchange(begun, "");
    }
    line = trim(line);
    auto begins = [&](const char *with) { return line.compare(0, strlen(with), with) == 0; };
    if (line.empty() || line == ")" || begins(".version") || begins(".address_size") ||
        begins(".reg") || begins(".pragma") || begins(".minnctapersm"))
      continue;
    if (begins(".target")) {
      module.target = trim(line.substr(7));
    } else if (begins(".visible .entry ")) {
      kernel = Kernel();
      kernel.name = line.substr(16, line.find('(') - 16);
      inBody = false;
    } else if (!inBody && begins(".param")) {
      std::string name = line.substr(line.rfind(' ') + 1);
      kernel.parameters.push_back(name.substr(0, name.find(',')));
    } else if (begins(".maxntid")) {
      kernel.mostThreads = std::strtoul(line.c_str() + 9, nullptr, 10);
    } else if (isOpen) {
      inBody = true;
      reader = std::make_unique<Reader>(kernel);
    } else if (inBody && line == "}") {
      reader->finish();
      error = reader->error;
      module.kernels[kernel.name] = kernel;
      inBody = false;
    } else if (inBody && begins(".shared")) {
      reader->declareShared(line);
    } else if (inBody && line.back() == ':') {
      reader->label(line.substr(0, line.size() - 1));
    } else if (inBody && line[0] != '.') {
      reader->instruction(line);
      error = reader->error;
    } else {
      error = "unknown directive: " + line;
    }
    if (!error.empty()) {
      error = "line " + std::to_string(at) + ": " + error;
      return false;
    }
  }
  return !module.kernels.empty();
}
