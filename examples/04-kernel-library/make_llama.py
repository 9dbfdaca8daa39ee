"""Makes a small Llama with random weights, as a Hugging Face directory: make_llama.py DIRECTORY"""
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=256, intermediate_size=704, num_hidden_layers=4,
                     num_attention_heads=8, num_key_value_heads=4, vocab_size=1000,
                     initializer_range=0.08)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
