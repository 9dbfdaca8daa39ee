// Matrices from .npy files, and every way in which such a file can be bad.
#include "ctxc/Checkpoint/Npy.h"
#include "Fixture.h"
#include <cmath>

using namespace ctxc;
using namespace ctxc::test;

namespace {

class Npy : public TempDirectory {
protected:
  /// A file of `version` with this header, padded as NumPy pads it, and these bytes.
  std::string file(std::string header, llvm::StringRef data, int version = 1) {
    size_t start = version == 1 ? 10 : 12;
    while ((start + header.size() + 1) % 64 != 0)
      header += ' ';
    header += '\n';
    std::string text = "\x93NUMPY";
    text += char(version);
    text += '\0';
    for (size_t i = 0; i < start - 8; ++i)
      text += char(header.size() >> (8 * i));
    return write("m.npy", text + header + data.str());
  }
  std::string refusal(llvm::StringRef path) {
    std::string message = messageOf(readNpyMatrix(path));
    EXPECT_PRED_FORMAT2(containsPart, message, path.str() + ": ");
    return message;
  }

  const std::string floats = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string numbers = bytesOf({1, 2, 3, 4, 5, 6});
};

TEST_F(Npy, ReadsEveryVersionAndType) {
  std::vector<double> expected = {1, 2, 3, 4, 5, 6};
  for (int version : {1, 2, 3}) {
    auto matrix = readNpyMatrix(file(floats, numbers, version));
    ASSERT_TRUE(bool(matrix)) << llvm::toString(matrix.takeError());
    EXPECT_EQ(matrix->rows, 2);
    EXPECT_EQ(matrix->columns, 3);
    EXPECT_EQ(matrix->numbers, expected);
    EXPECT_EQ(matrix->row(1).vec(), (std::vector<double>{4, 5, 6}));
  }
  std::string swapped;
  for (size_t i = 0; i < numbers.size(); ++i)
    swapped += numbers[i / 4 * 4 + 3 - i % 4];
  auto big =
      readNpyMatrix(file("{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\">f4\"}", swapped));
  ASSERT_TRUE(bool(big)) << llvm::toString(big.takeError());
  EXPECT_EQ(big->numbers, expected);

  double tenth = 0.1;
  std::string wide(reinterpret_cast<const char *>(&tenth), 8);
  auto doubles =
      readNpyMatrix(file("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", wide));
  ASSERT_TRUE(bool(doubles)) << llvm::toString(doubles.takeError());
  EXPECT_EQ(doubles->numbers, std::vector<double>{0.1});

  auto halves = readNpyMatrix(file("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 1), }",
                                   llvm::StringRef("\x00\x3c\x00\xc1", 4)));
  ASSERT_TRUE(bool(halves)) << llvm::toString(halves.takeError());
  EXPECT_EQ(halves->numbers, (std::vector<double>{1, -2.5}));
}

TEST_F(Npy, RefusesWhatIsNoNpyFile) {
  EXPECT_PRED_FORMAT2(containsPart, refusal(write("t", "PK\x03\x04 something")), "is no .npy file");
  EXPECT_PRED_FORMAT2(containsPart, refusal(path("absent")), "absent");
  std::string whole = "\x93NUMPY";
  EXPECT_PRED_FORMAT2(containsPart, refusal(write("t", whole)), "ends inside its header");
  EXPECT_PRED_FORMAT2(containsPart, refusal(write("t", whole + std::string("\x01\x00\x76", 3))),
                      "ends inside its header");
  EXPECT_PRED_FORMAT2(containsPart,
                      refusal(write("t", whole + std::string("\x01\x00\x76\x00{'descr", 11))),
                      "ends inside its header");
  EXPECT_PRED_FORMAT2(containsPart, refusal(write("t", whole + std::string("\x04\x00\x76\x00", 4))),
                      "found .npy version 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_PRED_FORMAT2(containsPart,
                      refusal(write("t", whole + std::string("\x02\x00\xff\xff\xff\xff{", 7))),
                      "found a header of 4294967295 bytes, expected at most 10000");
}

TEST_F(Npy, RefusesHeadersThatNumPyDoesNotWrite) {
  for (const char *header :
       {"", "[]", "{", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} more"})
    EXPECT_PRED_FORMAT2(containsPart, refusal(file(header, numbers)),
                        "has a header that is not as NumPy writes it")
        << header;
}

TEST_F(Npy, RefusesOtherMatrices) {
  auto expect = [&](const char *descr, const char *order, const char *shape, const char *part) {
    std::string header = std::string("{'descr': ") + descr + ", 'fortran_order': " + order +
                         ", 'shape': " + shape + ", }";
    EXPECT_PRED_FORMAT2(containsPart, refusal(file(header, numbers)), part);
  };
  expect("'<i4'", "False", "(2, 3)", "found numbers of type '<i4', expected float16, float32");
  expect("'|O'", "False", "(2, 3)", "found numbers of type '|O'");
  expect("[('a', '<f4')]", "False", "(2, 3)", "found numbers of type '[('a', '<f4')]'");
  expect("'<f4'", "True", "(2, 3)", "is in Fortran order, expected C order");
  expect("'<f4'", "False", "(6,)", "found shape (6,), expected two dimensions");
  expect("'<f4'", "False", "()", "found shape (), expected two dimensions");
  expect("'<f4'", "False", "(1, 2, 3)", "found shape (1, 2, 3), expected two dimensions");
  expect("'<f4'", "False", "(0, 3)", "expected at least one row and one column");
  expect("'<f4'", "False", "(3, 3)", "holds 24 bytes of numbers, which is not what shape (3, 3)");
  expect("'<f4'", "False", "(1, 3)", "holds 24 bytes of numbers, which is not what shape (1, 3)");
  expect("'<f4'", "False", "(4611686018427387904, 4)", "holds 24 bytes of numbers");
}

TEST_F(Npy, RefusesNumbersThatAreNotFinite) {
  EXPECT_PRED_FORMAT2(containsPart, refusal(file(floats, bytesOf({1, 2, 3, 4, INFINITY, 6}))),
                      "row 1, column 1 is not a finite number");
}

} // namespace
