// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace neurontrace {

// Cut anywhere, or of another version, it is no value.
template <typename Decode>
void ExpectNothingElseDecodes(const std::string& value, Decode decode) {
  for (size_t length = 0; length < value.size(); ++length) {
    EXPECT_EQ(decode(value.substr(0, length)).code(), absl::StatusCode::kDataLoss) << length;
  }
  EXPECT_EQ(decode(value + "x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(decode("\x7f" + value.substr(1)).code(), absl::StatusCode::kDataLoss);
}

}  // namespace neurontrace
