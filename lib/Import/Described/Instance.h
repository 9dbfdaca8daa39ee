//===- Instance.h - the program of a description for one config -----------===//
#ifndef CTXC_IMPORT_DESCRIBED_INSTANCE_H
#define CTXC_IMPORT_DESCRIBED_INSTANCE_H

#include "../HuggingFace/Rope.h"
#include "llvm/ADT/StringMap.h"

namespace ctxc::described {

/// Reads the keys that a description names, reports what it does not hold for, and writes its text
/// with their numbers.
class Instance {
public:
  Instance(const llvm::json::Object &description, ConfigReader &config, Problems &problems,
           mlir::MLIRContext &context)
      : description(description), config(config), problems(problems), context(context),
        type(description.getString("model_type").value_or("").str()) {}

  std::string program();
  void checkAround(ConfigReader &around);

private:
  const llvm::json::Object &object(const llvm::json::Object &in, llvm::StringRef key) const {
    static const llvm::json::Object empty;
    const llvm::json::Object *found = in.getObject(key);
    return found ? *found : empty;
  }
  const llvm::json::Array &array(const llvm::json::Object &in, llvm::StringRef key) const {
    static const llvm::json::Array empty;
    const llvm::json::Array *found = in.getArray(key);
    return found ? *found : empty;
  }

  void read();
  void readRope(llvm::StringRef path, const llvm::json::Object &rule);
  void readRopes();
  void checkEqual();
  double size(llvm::StringRef key);
  double derived(llvm::StringRef key, llvm::StringRef expression, const llvm::json::Object &rule);
  double readSize(llvm::StringRef key, const llvm::json::Object &rule);
  int64_t layerCount();
  void readLists();
  std::vector<std::string> entriesOf(llvm::StringRef key, const llvm::json::Object &rule);
  std::vector<std::string> readList(llvm::StringRef key, const llvm::json::Object &rule,
                                    int64_t layers);
  bool holds(llvm::StringRef condition, int64_t layer);
  void readIndices(const llvm::json::Array &rule);
  std::vector<std::string> listByRule(const llvm::json::Array &rule, int64_t layers);
  void checkUniform();
  void checkFixed(ConfigReader &reader, const llvm::json::Object &described);
  bool holds(const llvm::json::Object &when, std::optional<size_t> layer);
  const llvm::json::Object *choose(const llvm::json::Array &among, std::optional<size_t> layer,
                                   const llvm::Twine &what);
  llvm::json::Value choice(llvm::StringRef key);

  using Names = llvm::ArrayRef<std::pair<std::string, std::string>>;
  std::string writeLayers(std::string &last);
  void writeLines(const llvm::json::Array &lines, Names names, llvm::StringRef indent);
  void writeLine(llvm::StringRef line, Names names, std::optional<size_t> layer);
  void write(llvm::StringRef form, std::optional<size_t> layer = std::nullopt);
  void writeNumber(llvm::StringRef expression, bool isInteger);
  void writeRope(llvm::StringRef arguments);
  void writeRun(llvm::StringRef run, std::optional<size_t> layer);
  void writeSlopes(llvm::StringRef arguments);
  void writeAmplitude(llvm::StringRef path);
  double value(llvm::StringRef expression);
  void checkTensors(llvm::StringRef line);
  void fail(const llvm::Twine &message);
  void notWhole(llvm::StringRef expression, double value);

  const llvm::json::Object &description;
  ConfigReader &config;
  Problems &problems;
  mlir::MLIRContext &context;
  std::string type;
  llvm::StringMap<std::optional<double>> sizes; ///< without a value: being read
  llvm::StringMap<std::vector<std::string>> lists;
  llvm::StringMap<std::vector<int64_t>> indices; ///< of keys that name layers
  llvm::StringMap<hf::Rope> ropes;
  llvm::StringMap<std::string> ropeTexts; ///< by what is asked for
  llvm::StringMap<std::string> words;
  bool failed = false; ///< numbers from here on are those of a problem
  std::string out;
};

/// The program that `description` gives for `config`, all of whose keys are then looked at; empty
/// after problems.
std::string programOf(const llvm::json::Object &description, ConfigReader &config,
                      Problems &problems, mlir::MLIRContext &context);

/// The keys of `object`, sorted, so that messages come in the same order in every run.
std::vector<llvm::StringRef> keysOf(const llvm::json::Object &object);

/// What every refusal ends with: how the config can be read all the same.
constexpr llvm::StringLiteral wayOut =
    ", or a program by python -m ctxc.export (docs/check-your-architecture.md)";

} // namespace ctxc::described

#endif // CTXC_IMPORT_DESCRIBED_INSTANCE_H
