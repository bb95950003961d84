// SPDX-License-Identifier: Apache-2.0
// How remarks add up, stay within their limits and read.
#include "lib/trace/remark.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

TEST(Remark, CountsAllAndKeepsTheFirstDetails) {
  std::vector<Remark> remarks;
  for (size_t i = 0; i < limits::kRemarkDetailsMax + 5; ++i) {
    AddRemark(RemarkKind::kNoTime, 1, "element " + std::to_string(i), remarks);
  }
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].count, limits::kRemarkDetailsMax + 5);
  ASSERT_EQ(remarks[0].details.size(), limits::kRemarkDetailsMax);
  EXPECT_EQ(remarks[0].details.back(), "element 15");
  EXPECT_EQ(Describe(remarks[0]),
            "21 events have no usable time (element 0; element 1; element 2; …)");
}

TEST(Remark, DetailsAreCutAndClean) {
  std::vector<Remark> remarks;
  AddRemark(RemarkKind::kOpenSpan, 1, std::string(10'000, 'x'), remarks);
  AddRemark(RemarkKind::kOpenSpan, 1, "a\x1b[31mb", remarks);
  EXPECT_EQ(remarks[0].details[0].size(), limits::kRemarkDetailBytesMax);
  EXPECT_EQ(remarks[0].details[1].find('\x1b'), std::string::npos);
}

TEST(Remark, CountsOfHostileProducersSaturate) {
  std::vector<Remark> sums = {{.kind = RemarkKind::kNoTime, .count = UINT64_MAX, .details = {}}};
  AddRemarks(std::vector<Remark>{{.kind = RemarkKind::kNoTime, .count = 2, .details = {"x"}}},
             sums);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].count, UINT64_MAX);
}

TEST(Remark, ANewerOneReplacesItsKindAndZeroTakesItBack) {
  std::vector<Remark> remarks = {
      {.kind = RemarkKind::kRankContradiction, .count = 2, .details = {"a", "b"}},
      {.kind = RemarkKind::kNoTime, .count = 1, .details = {}}};
  ReplaceRemarks(std::vector<Remark>{{.kind = RemarkKind::kNoTime, .count = 5, .details = {"c"}},
                                     {.kind = RemarkKind::kRankContradiction, .count = 0}},
                 remarks);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].kind, RemarkKind::kNoTime);
  EXPECT_EQ(remarks[0].count, 5u);
}

TEST(Remark, EachKindHasANameOfItsOwnAndASentence) {
  std::set<std::string_view> names;
  std::set<RemarkKind> kinds;
  for (const RemarkKindRow& row : RemarkKinds()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.name;
    EXPECT_EQ(Describe({.kind = row.kind, .count = 1, .details = {}}), "1 " + std::string(row.one));
    EXPECT_LT(static_cast<int>(row.kind), 80) << "the store reads none above";
  }
  EXPECT_EQ(Describe({.kind = static_cast<RemarkKind>(79), .count = 4, .details = {}}),
            "4 remarks of kind 79, which this version does not know");
}

}  // namespace
}  // namespace neurontrace
