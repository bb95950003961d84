// SPDX-License-Identifier: Apache-2.0
// Which workers captures select, by each thing that can be asked for, and what is said of others.
#include "lib/trace/capture_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

// Core 0 has a good and a bad claim to a rank, core 1 has rank 9, core 2 none.
WorkerInfo Worker() {
  WorkerInfo worker{.identity = {.instance_id = "i-a", .pid = 7}, .job = "llama"};
  worker.cores = {{.nc_idx = 0,
                   .rank_evidence = {{.source = RankSource::kSlurm, .worker_gid = 70},
                                     {.source = RankSource::kPjrt, .worker_gid = 8}}},
                  {.nc_idx = 1, .rank_evidence = {{.source = RankSource::kPjrt, .worker_gid = 9}}},
                  {.nc_idx = 2}};
  worker.job_facts = {{"label:app", "train"}, {"namespace", "ml"}, {"slurm", "4711"}};
  return worker;
}

TEST(CaptureSelection, WithoutConditionsEverythingIsSelected) {
  EXPECT_TRUE(Selects({}, Worker()));
  EXPECT_TRUE(Selects({}, {}));
}

TEST(CaptureSelection, ByInstance) {
  EXPECT_TRUE(Selects({.selection = {.instance_ids = {"i-b", "i-a"}}}, Worker()));
  EXPECT_EQ(NotSelectedReason({.selection = {.instance_ids = {"i-b"}}}, Worker()),
            "the capture does not select instance i-a");
}

TEST(CaptureSelection, AJobByItsKeyOrWhatOthersCallIt) {
  EXPECT_TRUE(Selects({.selection = {.job = "llama"}}, Worker()));
  EXPECT_TRUE(Selects({.selection = {.job = "4711"}}, Worker()));
  // A namespace is no job, though it can be asked for as what it is.
  EXPECT_EQ(NotSelectedReason({.selection = {.job = "ml"}}, Worker()),
            "the capture selects job ml, but this worker has job llama");
  EXPECT_EQ(NotSelectedReason({.selection = {.job = "llama"}}, {}),
            "the capture selects job llama, but this worker has no known job");
}

TEST(CaptureSelection, ByAllOfTheFacts) {
  EXPECT_TRUE(Selects({.selection = {.job_facts = {{"namespace", "ml"}, {"label:app", "train"}}}},
                      Worker()));
  EXPECT_THAT(
      NotSelectedReason({.selection = {.job_facts = {{"namespace", "ml"}, {"label:app", "serve"}}}},
                        Worker()),
      HasSubstr("label:app serve"));
}

TEST(CaptureSelection, ByCoreWhereCoresAreKnown) {
  EXPECT_TRUE(Selects({.selection = {.neuron_cores = {2, 5}}}, Worker()));
  EXPECT_FALSE(Selects({.selection = {.neuron_cores = {5}}}, Worker()));
  EXPECT_TRUE(Selects({.selection = {.neuron_cores = {5}}}, {}));
}

TEST(CaptureSelection, ByTheBestKnownRank) {
  EXPECT_TRUE(Selects({.selection = {.worker_gids = {{0, 3}, {8, 8}}}}, Worker()));
  EXPECT_FALSE(Selects({.selection = {.worker_gids = {{70, 70}}}}, Worker()));
  EXPECT_FALSE(Selects({.selection = {.worker_gids = {{0, 100}}}}, {}));
}

TEST(CaptureSelection, ACoreHasToFitInBoth) {
  EXPECT_TRUE(Selects({.selection = {.neuron_cores = {1}, .worker_gids = {{9, 9}}}}, Worker()));
  EXPECT_FALSE(Selects({.selection = {.neuron_cores = {0}, .worker_gids = {{9, 9}}}}, Worker()));
}

TEST(CaptureSelection, NoneWithoutTheRuntimesEvents) {
  EXPECT_FALSE(Selects({.filter = {.include_neuron = false}}, Worker()));
}

}  // namespace
}  // namespace neurontrace
