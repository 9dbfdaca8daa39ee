// Text from a model is never interpreted as HTML.
#include "ctxc/Page/Html.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

TEST(PageHtml, MarkupIsText) {
  EXPECT_EQ(page::escaped("</script><b a=\"x\" c='y'>&amp;"),
            "&lt;/script&gt;&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;amp;");
}

TEST(PageHtml, WhatCannotBeSeenIsShown) {
  EXPECT_EQ(page::escaped("a\nb\x01"), "a\\x0ab\\x01");
  EXPECT_EQ(page::escaped("\xE2\x80\xAE"
                          "abc"),
            "\\xe2\\x80\\xaeabc");                               // U+202E reverses text
  EXPECT_EQ(page::escaped("\xE2\x81\xA6x"), "\\xe2\\x81\\xa6x"); // U+2066 isolates
  EXPECT_EQ(page::escaped("\xFF\xC3"), "\\xff\\xc3");            // not UTF-8
  EXPECT_EQ(page::escaped("\xD7\x90▁"), "\xD7\x90▁");
}

TEST(PageHtml, NumbersOfPicturesAreFinite) {
  EXPECT_EQ(page::coordinate(0.0 / 0.0), "0");
  EXPECT_EQ(page::coordinate(1e300 * 1e300), "0");
  EXPECT_EQ(page::coordinate(12.345678), "12.35");
}

} // namespace
