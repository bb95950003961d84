// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/capture_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "absl/status/status.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

TEST(CaptureStore, FindsByPrefixAndNamesTheCandidates) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), false).ok());
  ASSERT_TRUE(store->captures().Put(TestCapture(2), false).ok());
  const std::string text = TestCaptureId(1).ToString();
  EXPECT_EQ(store->captures().Find(text).value(), TestCaptureId(1));
  std::string lower = text;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  EXPECT_EQ(store->captures().Find(lower).value(), TestCaptureId(1));
  const auto both = store->captures().Find(text.substr(0, 10));
  EXPECT_EQ(both.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(both.status().message()), HasSubstr(text));
  EXPECT_THAT(std::string(both.status().message()), HasSubstr(TestCaptureId(2).ToString()));
  EXPECT_EQ(store->captures().Find("7").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->captures().Find("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store->captures().List()->size(), 2u);
}

}  // namespace
}  // namespace neurontrace
