// SPDX-License-Identifier: Apache-2.0
// Goal: the capture of a verdict has the suspects and as many peers as its rule asks for, and never
// fewer workers than those.
#include "aggregator/triggers/verdict_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

VerdictCore CoreAt(const std::string& instance, int64_t gid) {
  return {.worker = {.instance_id = instance}, .worker_gid = gid};
}

TEST(VerdictSelection, NamesSuspectsAndPeersByRank) {
  const LiveVerdict verdict{.suspects = {CoreAt("i-1", 9), CoreAt("i-1", 8)},
                            .peers = {CoreAt("i-2", 24), CoreAt("i-3", 10), CoreAt("i-4", 40)}};
  EXPECT_THAT(SelectionOf(verdict, 2).worker_gids, ElementsAre(GidRange{8, 10}, GidRange{24, 24}));
  EXPECT_THAT(SelectionOf(verdict, 0).worker_gids, ElementsAre(GidRange{8, 9}));
  EXPECT_THAT(SelectionOf(verdict, 0).instance_ids, IsEmpty());
}

TEST(VerdictSelection, NamesInstancesWhereARankIsUnknown) {
  const LiveVerdict verdict{.suspects = {CoreAt("i-1", -1)}, .peers = {CoreAt("i-2", 3)}};
  const CaptureSpec::Selection selection = SelectionOf(verdict, 64);
  EXPECT_THAT(selection.worker_gids, IsEmpty());
  EXPECT_THAT(selection.instance_ids, ElementsAre("i-1", "i-2"));
}

TEST(VerdictSelection, RecordsTheWholeJobWhereNobodyIsNamed) {
  const LiveVerdict verdict{.kind = "uneven-data", .peers = {CoreAt("i-2", 3)}};
  EXPECT_TRUE(SelectionOf(verdict, 8).empty());
}

}  // namespace
}  // namespace neurontrace
