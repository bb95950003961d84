// SPDX-License-Identifier: Apache-2.0
#include "lib/base/build_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;
using testing::StartsWith;

TEST(BuildFactsTest, BeginsWithProgramAndVersion) {
  EXPECT_THAT(BuildFacts("some-program", {}), StartsWith("some-program " NEURONTRACE_VERSION " ("));
}

TEST(BuildFactsTest, NamesCommitCompilerAndBuildType) {
  EXPECT_THAT(BuildFacts("p", {}),
              MatchesRegex("p [^ ]+ \\(commit ([0-9a-f]+(-dirty)?|unknown), (gcc|clang) "
                           "[0-9].*, [a-z]+[a-z, ]*\\)"));
}

TEST(BuildFactsTest, NamesFormatsInTheirOrder) {
  EXPECT_THAT(BuildFacts("p", {{"chunk", 1}, {"store", 12}}), EndsWith("; chunk 1, store 12)"));
}

}  // namespace
}  // namespace neurontrace
