// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

const std::vector<Finding> kTwoFindings = {
    {"socket", Severity::kGood, "there", ""},
    {"clock", Severity::kWarning, "says \"no\"", "set it"},
};

TEST(DoctorFinding, ExitCodeReflectsWorstFinding) {
  EXPECT_EQ(ExitCodeOf({}), 0);
  EXPECT_EQ(ExitCodeOf({{"a", Severity::kNote, "x", ""}}), 0);
  EXPECT_EQ(ExitCodeOf(kTwoFindings), 3);
  EXPECT_EQ(ExitCodeOf({{"a", Severity::kBroken, "x", "y"}, kTwoFindings[1]}), 1);
}

TEST(DoctorFinding, ReadsAsLinesWithTheirFixBelow) {
  EXPECT_EQ(FormatFindings(kTwoFindings),
            "ok       socket  there\n"
            "warning  clock   says \"no\"\n"
            "                 fix: set it\n"
            "\n1 ok, 0 notes, 1 warning, 0 broken\n");
}

TEST(DoctorFinding, IsSoundJson) {
  EXPECT_EQ(
      FormatFindingsJson(kTwoFindings),
      "{\n  \"worst\": \"warning\",\n  \"findings\": [\n"
      "    {\"check\": \"socket\", \"severity\": \"ok\", \"what\": \"there\", \"fix\": \"\"},\n"
      "    {\"check\": \"clock\", \"severity\": \"warning\", \"what\": \"says \\\"no\\\"\", "
      "\"fix\": \"set it\"}\n  ]\n}\n");
}

}  // namespace
}  // namespace neurontrace::cli
