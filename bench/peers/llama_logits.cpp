// llama.cpp's logits for token ids, with an adapter or without.
//
//   llama-logits MODEL.gguf [LORA.gguf] < lines > numbers
//
// A line is `COUNT; FRONT; DROPPED; REST`: token ids divided by spaces. The model reads FRONT
// without the adapter, forgets its tokens at the places DROPPED, and then reads REST with the
// adapter. The logits of the last COUNT tokens of REST come out, as float32. Keys and values are in
// float32.
#include "llama.h"
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string &message) {
  std::cerr << "llama-logits: error: " << message << "\n";
  exit(2);
}

std::vector<llama_token> numbersOf(std::istringstream &line) {
  std::string part;
  std::getline(line, part, ';');
  std::istringstream words(part);
  std::vector<llama_token> numbers;
  for (llama_token number; words >> number;)
    numbers.push_back(number);
  return numbers;
}

/// Reads tokens from position `from` on. The last `count` of them give logits, which are written.
void read(llama_context *context, const std::vector<llama_token> &tokens, int from, size_t count,
          int vocabulary) {
  if (tokens.empty())
    return;
  llama_batch batch = llama_batch_init(tokens.size(), 0, 1);
  batch.n_tokens = tokens.size();
  for (size_t i = 0; i < tokens.size(); ++i) {
    batch.token[i] = tokens[i];
    batch.pos[i] = from + i;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 0;
    batch.logits[i] = i + count >= tokens.size() || i + 1 == tokens.size();
  }
  if (llama_decode(context, batch) != 0)
    fail("the tokens cannot be read");
  for (size_t i = tokens.size() - count; i < tokens.size(); ++i)
    fwrite(llama_get_logits_ith(context, i), sizeof(float), vocabulary, stdout);
  llama_batch_free(batch);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3)
    fail("expected a model, and an adapter or none");
  llama_log_set(
      [](ggml_log_level level, const char *text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR)
          std::cerr << text;
      },
      nullptr);
  llama_backend_init();
  llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model)
    fail(std::string(argv[1]) + ": cannot be loaded");
  constexpr int most = 4096; // tokens of a line
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = most;
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.swa_full = true;
  llama_context *context = llama_init_from_model(model, params);
  if (!context)
    fail("there is no context");
  llama_adapter_lora *adapter = nullptr;
  if (argc == 3 && !(adapter = llama_adapter_lora_init(model, argv[2])))
    fail(std::string(argv[2]) + ": cannot be loaded");
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  float scale = 1;
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream line(text);
    auto count = numbersOf(line), front = numbersOf(line), dropped = numbersOf(line),
         rest = numbersOf(line);
    if (count.size() != 1 || rest.size() < size_t(count[0]) || front.size() + rest.size() > most)
      fail("found the line '" + text + "', expected COUNT; FRONT; DROPPED; REST");
    llama_memory_clear(llama_get_memory(context), true);
    llama_set_adapters_lora(context, nullptr, 0, nullptr);
    read(context, front, 0, 0, vocabulary);
    for (llama_token place : dropped)
      if (!llama_memory_seq_rm(llama_get_memory(context), 0, place, place + 1))
        fail("a token cannot be dropped");
    if (adapter)
      llama_set_adapters_lora(context, &adapter, 1, &scale);
    read(context, rest, front.size(), count[0], vocabulary);
  }
  return 0;
}
