// The main function of the unit tests, which start in the sources' root folder. It returns 77,
// which CTest counts as skipped, if every selected test skipped itself, and fails if no test was
// selected.
#include "gtest/gtest.h"
#include <cstdio>
#include <unistd.h>

int main(int argc, char **argv) {
  if (chdir(CTXC_SOURCE_ROOT) != 0) {
    perror(CTXC_SOURCE_ROOT);
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  int result = RUN_ALL_TESTS();
  if (result != 0 || GTEST_FLAG_GET(list_tests))
    return result;
  const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0) {
    fprintf(stderr, "no test has a name that --gtest_filter asks for\n");
    return 1;
  }
  return tests.skipped_test_count() == tests.test_to_run_count() ? 77 : 0;
}
