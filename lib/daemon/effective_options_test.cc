// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/effective_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <cstdint>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(EffectiveOptions, ListEveryOptionFromAnySource) {
  CLI::App app;
  std::string level = "info";
  std::vector<std::string> roots;
  bool samples = true;
  std::string other;
  app.add_option("-l,--level", level)->capture_default_str();
  app.add_option("--root", roots);
  app.add_flag("--samples,!--no-samples", samples);
  app.add_option("--other", other);
  app.set_config("--config");
  app.parse("--root /a --root /b --no-samples");
  EXPECT_THAT(TextsOf(app), ElementsAre(Pair("level", "info"), Pair("other", ""),
                                        Pair("root", "/a,/b"), Pair("samples", "false")));
}

TEST(EffectiveOptions, DifferencesAreByName) {
  EXPECT_THAT(ChangesBetween({{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "2"}}), IsEmpty());
  EXPECT_THAT(ChangesBetween({{"a", "1"}, {"b", "2"}}, {{"a", "9"}, {"b", "2"}, {"c", "3"}}),
              ElementsAre(OptionChange{"a", "1", "9"}, OptionChange{"c", "", "3"}));
}

TEST(EffectiveOptions, AreDescribedForPeople) {
  EXPECT_EQ(DescribeOptions("program", {{"a", "1"}, {"b", ""}}),
            "program: the configuration is valid\n  a = 1\n");
}

}  // namespace
}  // namespace neurontrace
