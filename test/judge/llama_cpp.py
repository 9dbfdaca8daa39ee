"""llama.cpp's tokenizers, logits and embeddings, from a library of llama.cpp that exports its C interface (tools/setup.sh --judges)."""
import ctypes
import json
import os
import struct

VOCAB_ONLY = 72  # the offset of llama_model_params.vocab_only


class Parameters(ctypes.Structure):
    """llama_model_params or llama_context_params, and room for what a later version adds: they are passed in memory."""
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


class Batch(ctypes.Structure):
    """llama_batch"""
    _fields_ = [("n_tokens", ctypes.c_int32), *((name, ctypes.c_void_p) for name in
                ("token", "embd", "pos", "n_seq_id", "seq_id", "logits"))]


class LlamaCpp:
    def __init__(self, path):
        library = ctypes.CDLL(str(path))
        pointer, count, flag = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
        library.llama_model_default_params.restype = Parameters
        library.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Parameters]
        library.llama_model_load_from_file.restype = pointer
        library.llama_model_free.argtypes = [pointer]
        library.llama_model_get_vocab.argtypes = [pointer]
        library.llama_model_get_vocab.restype = pointer
        library.llama_tokenize.argtypes = [pointer, ctypes.c_char_p, count, ctypes.POINTER(count), count, flag, flag]
        log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, pointer)
        self.quiet = log(lambda level, text, data: None)
        library.llama_log_set(self.quiet, None)
        library.llama_backend_init()
        library.llama_context_default_params.restype = Parameters
        library.llama_init_from_model.argtypes = [pointer, Parameters]
        library.llama_init_from_model.restype = pointer
        library.llama_batch_get_one.argtypes = [ctypes.POINTER(count), count]
        library.llama_batch_get_one.restype = Batch
        library.llama_decode.argtypes = [pointer, Batch]
        library.llama_get_logits_ith.argtypes = [pointer, count]
        library.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        library.llama_vocab_n_tokens.argtypes = [pointer]
        library.llama_vocab_is_eog.argtypes = [pointer, count]
        library.llama_vocab_is_eog.restype = flag
        self.library = library

    def apart(self, work):
        """What `work` gives, as bytes, in a process of its own, since llama.cpp may abort; empty where it does."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            with os.fdopen(writing, "wb") as file:
                file.write(work())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            data = file.read()
        _, status = os.waitpid(child, 0)
        return data if status == 0 else b""

    def logits(self, path, tokens):
        """The last token's, as a list; None where llama.cpp refuses the file."""
        data = self.apart(lambda: b"".join(struct.pack("f", x) for x in self._logits(path, tokens)))
        return list(struct.unpack(f"{len(data) // 4}f", data)) if data else None

    def each(self, path, tokens, adapter=None):
        """The bytes of every token's logits, in float32, with a LoRA beside the weights; None where llama.cpp refuses a file."""
        return self.apart(lambda: self._each(path, tokens, adapter)) or None

    def ids_apart(self, path, texts):
        """The ids of each text with and without the tokens around it, and the tokens that end a text; None where llama.cpp
        refuses the file."""
        def work():
            vocabulary = self.open(path)
            return json.dumps([[[vocabulary.ids(text, special) for special in (True, False)] for text in texts],
                               vocabulary.ends()]).encode() if vocabulary else b""

        data = self.apart(work)
        return json.loads(data) if data else None

    def _logits(self, path, tokens):
        library = self.library
        model = library.llama_model_load_from_file(str(path).encode(), library.llama_model_default_params())
        context = model and library.llama_init_from_model(model, library.llama_context_default_params())
        if not context:
            return []
        given = (ctypes.c_int32 * len(tokens))(*tokens)
        if library.llama_decode(context, library.llama_batch_get_one(given, len(tokens))):
            return []
        size = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        return library.llama_get_logits_ith(context, -1)[:size]

    def _each(self, path, tokens, adapter):
        library, pointer = self.library, ctypes.c_void_p
        library.llama_adapter_lora_init.argtypes = [pointer, ctypes.c_char_p]
        library.llama_adapter_lora_init.restype = pointer
        library.llama_set_adapters_lora.argtypes = [pointer, ctypes.POINTER(pointer), ctypes.c_size_t, ctypes.POINTER(ctypes.c_float)]
        model = library.llama_model_load_from_file(str(path).encode(), library.llama_model_default_params())
        context = model and library.llama_init_from_model(model, library.llama_context_default_params())
        if not context:
            return b""
        if adapter:
            lora = library.llama_adapter_lora_init(model, str(adapter).encode())
            if not lora or library.llama_set_adapters_lora(context, (pointer * 1)(lora), 1, (ctypes.c_float * 1)(1.0)):
                return b""
        size = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        rows = []
        for token in tokens:
            if library.llama_decode(context, library.llama_batch_get_one((ctypes.c_int32 * 1)(token), 1)):
                return b""
            rows.append(ctypes.string_at(library.llama_get_logits_ith(context, -1), 4 * size))
        return b"".join(rows)

    def open(self, path, whole=False):
        """The vocabulary of a file; with `whole` the model too, for embeddings."""
        parameters = self.library.llama_model_default_params()
        parameters.bytes[VOCAB_ONLY] = not whole
        model = self.library.llama_model_load_from_file(str(path).encode(), parameters)
        return Vocabulary(self, model) if model else None


class Vocabulary:
    def __init__(self, program, model):
        self.program = program  # which has what the library calls
        self.library, self.model = program.library, model
        self.vocabulary = self.library.llama_model_get_vocab(model)

    def close(self):
        self.library.llama_model_free(self.model)

    def ids(self, text, special):
        """As llama-tokenize has them: symbols that the text spells out are symbols."""
        size = len(text) + 16
        while True:
            out = (ctypes.c_int32 * size)()
            count = self.library.llama_tokenize(self.vocabulary, text, len(text), out, size, special, True)
            if count >= 0:
                return list(out[:count])
            size = -count

    def ends(self):
        """The tokens after which llama.cpp generates no other."""
        return [id for id in range(self.library.llama_vocab_n_tokens(self.vocabulary))
                if self.library.llama_vocab_is_eog(self.vocabulary, id)]

    def embedding(self, ids):
        """The vector of a text, pooled as the file says."""
        library, pointer = self.library, ctypes.c_void_p
        library.llama_set_embeddings.argtypes = [pointer, ctypes.c_bool]
        library.llama_encode.argtypes = [pointer, Batch]
        library.llama_get_embeddings_seq.argtypes = [pointer, ctypes.c_int32]
        library.llama_get_embeddings_seq.restype = ctypes.POINTER(ctypes.c_float)
        library.llama_model_n_embd.argtypes = library.llama_free.argtypes = [pointer]
        context = library.llama_init_from_model(self.model, library.llama_context_default_params())
        library.llama_set_embeddings(context, True)
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        if library.llama_encode(context, library.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError("llama.cpp cannot encode the tokens")
        numbers = library.llama_get_embeddings_seq(context, 0)[:library.llama_model_n_embd(self.model)]
        library.llama_free(context)
        return numbers
