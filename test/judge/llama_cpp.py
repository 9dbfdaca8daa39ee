"""llama.cpp's tokenizers, from a library of llama.cpp that exports its C interface (tools/setup.sh --judges)."""
import ctypes

VOCAB_ONLY = 72  # the offset of llama_model_params.vocab_only


class Parameters(ctypes.Structure):
    """llama_model_params, and room for what a later version adds: it is passed in memory."""
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


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
        self.library = library

    def open(self, path):
        parameters = self.library.llama_model_default_params()
        parameters.bytes[VOCAB_ONLY] = 1
        model = self.library.llama_model_load_from_file(str(path).encode(), parameters)
        return Vocabulary(self.library, model) if model else None


class Vocabulary:
    def __init__(self, library, model):
        self.library, self.model = library, model
        self.vocabulary = library.llama_model_get_vocab(model)

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
