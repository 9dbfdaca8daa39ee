// The names, expressions and flags are facts about published tokenizers, as llama.cpp's table
// (llm_tokenizer_bpe and llama_vocab::impl::load in its src/llama-vocab.cpp) has them. Where
// llama.cpp runs something else than the expression that it names, this is what it runs.
#include "GgufSplits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace ctxc::text;

#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS(DIGITS)                                                                              \
  "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" DIGITS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
/// Words in which upper-case letters may come before lower-case ones, not behind. Only ASCII's are
/// told apart.
#define CASED_WORDS(LETTER, END, DIGITS)                                                           \
  "[^\\r\\n\\p{L}\\p{N}]?(?:(?=" LETTER ")[^a-z])*(?:(?=" LETTER ")[^A-Z])+" END                   \
  "|[^\\r\\n\\p{L}\\p{N}]?(?:(?=" LETTER ")[^a-z])+(?:(?=" LETTER ")[^A-Z])*" END "|" DIGITS       \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
/// Words of letters and marks.
#define MARKED_WORDS(DIGITS)                                                                       \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+" CONTRACTIONS "?|" DIGITS                                 \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
/// A word with an ASCII mark in front of it, which is behind the runs of CJK.
#define ASCII_MARKED                                                                               \
  "[!\"#$%&'()*+,\\-./"                                                                            \
  ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
#define HAN                                                                                        \
  "[\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}\\x{f900}-\\x{faff}\\x{20000}-\\x{2a6df}"                \
  "\\x{2a700}-\\x{2ebef}\\x{2f800}-\\x{2fa1f}]"
/// Digits in threes, counted from the last; the text in front of them stays with the first.
#define DIGITS_FROM_BEHIND "\\P{N}*\\p{N}{1,3}(?=(?:\\p{N}{3})*(?!\\p{N}))"

static constexpr StringLiteral
    gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)",
    kana = "[一-龥぀-ゟ゠-ヿ]+", cjk = "(?:(?!\\s)[一-龥ࠀ-一가-퟿])+",
    bloomWords = " ?[^(\\s|.,!?…。，、।۔،)]+", lines = "[^\\n]+|\\n+", threes = "\\p{N}{1,3}";

static constexpr StringLiteral
    unnamed
        [] = {"[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2, "\\p{N}+", "[0-9][0-9][0-9]"},
 plain[] = {gpt2}, digitByDigit[] = {"\\p{N}", gpt2},
 llama3[] = {CONTRACTIONS "|" WORDS("\\p{N}{1,3}")}, qwen2[] = {CONTRACTIONS "|" WORDS("\\p{N}")},
 jais2[] =
     {CONTRACTIONS
      "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
      "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)"
      "|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"},
 deepseek[] = {"[\\r\\n]",
               "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-"
               "ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-"
               "ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
               "\\s?[!-/:-~！-／：-～‘-‟、。]+",
               "\\s+$",
               cjk,
               "\\p{N}+"},
 deepseekCoder[] = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", cjk, "\\p{N}"},
 deepseek3[] = {threes, kana, ASCII_MARKED " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES},
 spark[] = {threes, kana, ASCII_MARKED " ?[\\p{P}\\p{S}]+|[\\r\\n]|\\s+(?!\\S)|\\s+", "\\p{N}"},
 youtu[] =
     {"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-"
      "ゟ゠-"
      "ヿ]"
      "+",
      MARKED_WORDS("\\p{N}")},
 falcon[] = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2, "[0-9][0-9][0-9]"},
 qwen35[] =
     {CONTRACTIONS
      "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES},
 bloom[] = {bloomWords}, viking[] = {bloomWords, "\\p{N}"},
 tekken[] = {CASED_WORDS("\\p{L}", "", "\\p{N}")},
 chameleon[] = {"<sentinel:[0-9]+>",      "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                "([\\t\\n]|    |  )",     "\\p{N}",
                "[\\p{P}!-/:-@\\[-`{-~]", gpt2},
 gpt4o[] = {CASED_WORDS("\\p{L}", CONTRACTIONS "?", "\\p{N}{1,3}")},
 granite[] = {CASED_WORDS("[\\p{L}\\p{M}]", CONTRACTIONS "?", "\\p{N}{1,3}")},
 aya[] = {DIGITS_FROM_BEHIND, MARKED_WORDS("\\p{N}{1,3}")},
 kimi[] = {HAN "+|[^\\r\\n\\p{L}\\p{N}]?(?:(?!" HAN ")\\p{L})+"
               "(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?|\\p{N}{1,3}"
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES},
 superBpe[] = {"\\p{N}+", "(?=([0-9]{3})+(?![0-9]))"},
 bailing[] = {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
              "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
 seedCoder[] = {CONTRACTIONS
                "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES},
 ufakzeka[] = {WORDS("\\p{N}")},
 afmoe[] =
     {DIGITS_FROM_BEHIND,
      "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-"
      "꧿가-"
      "힯ᄀ-"
      "ᇿ]"
      "+",
      ASCII_MARKED " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES},
 laguna[] = {lines, CONTRACTIONS "|" WORDS("\\p{N}")},
 exaoneMoe[] = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}"
                             "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
 byLines[] = {lines}, miniCpm[] = {threes, CONTRACTIONS "|" WORDS("\\p{N}+")};

using Flag = GgufSplit::Flag;

static constexpr GgufSplit table[] = {
    {"default", unnamed, 0},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", llama3,
     Flag::IgnoreMerges | Flag::Bos},
    {"dbrx smaug-bpe", llama3, 0},
    {"chatglm-bpe", llama3, Flag::NoBos},
    {"glm4 glm5", llama3, Flag::NoBos | Flag::IgnoreMerges},
    {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert "
     "jina-v1-en "
     "jina-v2-code roberta-bpe mpt olmo jais exaone4 trillion granite-docling",
     plain, 0},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", digitByDigit, 0},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan grok-2 solar-open", qwen2, 0},
    {"qwen35", qwen35, 0},
    {"jais-2", jais2, 0},
    {"deepseek-llm", deepseek, 0},
    {"deepseek-coder", deepseekCoder, 0},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", deepseek3, 0},
    {"spark2_5", spark, 0},
    {"youtu", youtu, Flag::IgnoreMerges},
    {"falcon", falcon, 0},
    {"poro-chat bloom gpt3-finnish", bloom, 0},
    {"viking", viking, 0},
    {"tekken", tekken, Flag::IgnoreMerges | Flag::Bos},
    {"chameleon", chameleon, Flag::Bos},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", gpt4o, 0},
    {"granite-embed-multi-97m", granite, Flag::IgnoreMerges},
    {"tiny_aya cohere2moe", aya, 0},
    {"kimi-k2", kimi, 0},
    {"superbpe", superBpe, 0},
    {"bailingmoe bailingmoe2 llada-moe", bailing, 0},
    {"seed-coder", seedCoder, 0},
    {"ufakzeka", ufakzeka, 0},
    {"afmoe", afmoe, 0},
    {"laguna", laguna, 0},
    {"exaone-moe", exaoneMoe, 0},
    {"minicpm5", miniCpm, Flag::IgnoreMerges},
    {"gemma4 granite-embed-multi-311m", byLines, Flag::RawSpaces | Flag::AlwaysBos},
    {"sarvam-moe", byLines, Flag::RawSpaces},
};

ArrayRef<GgufSplit> ctxc::text::ggufSplits() { return table; }

bool GgufSplit::isNamed(StringRef name) const {
  return llvm::is_contained(llvm::split(names, ' '), name);
}

const GgufSplit *ctxc::text::findGgufSplit(StringRef name) {
  const GgufSplit *found =
      find_if(table, [&](const GgufSplit &each) { return each.isNamed(name); });
  return found == std::end(table) ? nullptr : found;
}
