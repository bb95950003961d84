// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json_string.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(JsonText, EscapesRequiredCharacters) {
  EXPECT_EQ(JsonText("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(JsonText("line\n\x01"), "\"line\\n\\u0001\"");
  EXPECT_EQ(JsonText("\xff…"), "\"?…\"");
  EXPECT_EQ(JsonText(""), "\"\"");
}

}  // namespace
}  // namespace neurontrace
