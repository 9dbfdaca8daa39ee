#include "ctxc/Report/CardReport.h"
#include "gtest/gtest.h"

using namespace ctxc;

namespace {

Card card() {
  Card card;
  card.all = {10, 2, 0.5, 0.25, 0.75};
  card.sequences = 2;
  card.tokensSaved = 100;
  card.secondsOfContext = 0.3;
  card.secondsOfPrefix = 0.1;
  return card;
}

CardSettings settings() {
  CardSettings settings;
  settings.fit.emplace();
  settings.fit->seconds = 11;
  settings.fit->sampleSeconds = 5.1;
  return settings;
}

std::string textOf(const Card &card, const CardSettings &settings) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeCard(os, card, settings);
  return text;
}

bool says(const Card &card, const CardSettings &settings, llvm::StringRef line) {
  return llvm::StringRef(textOf(card, settings)).contains(line);
}

TEST(Cards, sayWhenTheAdapterPays) {
  EXPECT_EQ(requestsToPay(card(), settings()), 81);
  EXPECT_TRUE(says(card(), settings(),
                   "saves 100 tokens of each request, and the 0.200 s of reading them\n"
                   "the 16.1 s of making it are saved after 81 requests\n"));
  EXPECT_EQ(*cardJson(card(), settings()).getAsObject()->getInteger("requests_to_pay"), 81);
  EXPECT_EQ(*cardJson(card(), settings()).getAsObject()->getNumber("seconds_saved"),
            card().secondsSaved());

  Card slower = card(); // a prefix that takes longer than the context never pays
  slower.secondsOfPrefix = 0.4;
  EXPECT_EQ(requestsToPay(slower, settings()), std::nullopt);
  EXPECT_TRUE(says(slower, settings(), "saves 100 tokens of each request, and no time\n"));
  EXPECT_EQ(cardJson(slower, settings()).getAsObject()->get("requests_to_pay"), nullptr);

  CardSettings elsewhere; // of an adapter that was made elsewhere nobody knows the time
  EXPECT_TRUE(says(card(), elsewhere,
                   "saves 100 tokens of each request, and the 0.200 s of reading them\n"));
  EXPECT_FALSE(says(card(), elsewhere, "making it"));
}

TEST(Cards, nameAnotherStrength) {
  CardSettings half = settings();
  half.strength = 0.5;
  EXPECT_TRUE(says(card(), half, "strength: 0.50 of what was fitted\n"));
  EXPECT_EQ(*cardJson(card(), half).getAsObject()->getNumber("strength"), 0.5);
  EXPECT_FALSE(says(card(), settings(), "strength"));
}

TEST(Cards, sayWhereTheAdapterFails) {
  Card some = card();
  EXPECT_FALSE(says(some, settings(), "where it fails"));
  some.taken = {4, 3, 2, 0, 0.25};
  some.others = {6, 1, 0.1, 0, 1};
  some.worst = WorstText{1, -0.5};
  some.failures = {{1, 3, 8, 9, 4.5}};
  CardSettings named = settings();
  named.worstText = "Where does\nshe live?";
  named.failures = {{"she lives in", " Rome", " Paris"}};
  const char *expected = "where it fails\n"
                         "  on 4 tokens that answers take from the context 33.3 % are recovered, "
                         "on 6 others 90.0 %\n"
                         "  worst: -50.0 % of text 2, \"Where does\\nshe live?\"\n"
                         "  after \"she lives in\" the model with the context has \" Rome\", the "
                         "adapted one \" Paris\" (KL 4.50)\n";
  EXPECT_TRUE(says(some, named, expected)) << textOf(some, named);
  some.taken.tokens = 3; // too few
  EXPECT_FALSE(says(some, named, "take from the context"));
  some.taken.tokens = 4;
  auto json = cardJson(some, named);
  const llvm::json::Object *object = json.getAsObject();
  EXPECT_EQ(*object->getObject("worst_text")->getInteger("text"), 1);
  EXPECT_EQ(*object->getObject("worst_text")->getNumber("share_recovered"), -0.5);
  EXPECT_EQ(*object->getObject("taken_from_context")->getInteger("tokens"), 4);
  const llvm::json::Object *first = (*object->getArray("failures"))[0].getAsObject();
  EXPECT_EQ(*first->getInteger("full"), 8);
  EXPECT_EQ(*first->getInteger("adapted"), 9);
}

} // namespace
