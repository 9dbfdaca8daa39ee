#include "tools/CommandLine/Flags.h"
#include "gtest/gtest.h"

using ctxc::driver::withFlags;

TEST(Flags, AreAppended) {
  EXPECT_EQ(withFlags("no kernel; the reference engine runs it"),
            "no kernel; the reference engine runs it (--backend reference)");
  EXPECT_EQ(withFlags("expected the reference engine, or weights of storage type f32"),
            "expected the reference engine, or weights of storage type f32 (--backend reference, "
            "--dtype)");
}

TEST(Flags, AreSaidOnce) {
  EXPECT_EQ(withFlags("leave out --dtype: the storage type is the file's"),
            "leave out --dtype: the storage type is the file's");
  EXPECT_EQ(withFlags("found 3, expected 4"), "found 3, expected 4");
}

TEST(Flags, AreAppendedToNotes) {
  ctxc::ModelDiagnostic diagnostic, note;
  diagnostic.message = "the patch is fragile";
  note.message = "way out: patch just 'up' instead";
  diagnostic.notes.push_back(note);
  diagnostic = withFlags(diagnostic);
  EXPECT_EQ(diagnostic.message, "the patch is fragile");
  EXPECT_EQ(diagnostic.notes[0].message, "way out: patch just 'up' instead (--plan)");
}
