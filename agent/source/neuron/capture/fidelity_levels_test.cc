// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/fidelity_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> kTypes = {"nrt_execute",          "kmgr_exec_core",
                                         "kbl_exec_wait",        "nc_exec_running",
                                         "cc_running",           "nrt_tensor_read",
                                         "nrt_tensor_write",     "nrt_tensor_write_batch",
                                         "nrt_tensor_free",      "nrt_tensor_allocate",
                                         "dmem_buf_copyin",      "nrt_dma_mem_alloc",
                                         "enc_barrier",          "nrt_model_submit",
                                         "timestamp_sync_point", "numerical_err",
                                         "cc_exec_barrier",      "nrt_load"};

std::vector<std::string> RecordedAt(uint32_t level) {
  std::vector<std::string> types;
  for (const std::string& type : kTypes) {
    if (FilterOfFidelity(level).Selects(type)) types.push_back(type);
  }
  return types;
}

TEST(FidelityLevels, ExcludeOneMoreClassPerLevel) {
  EXPECT_EQ(RecordedAt(0), kTypes);
  EXPECT_THAT(
      RecordedAt(1),
      ElementsAre("nrt_execute", "kmgr_exec_core", "kbl_exec_wait", "nc_exec_running", "cc_running",
                  "nrt_tensor_read", "nrt_tensor_write", "nrt_tensor_write_batch",
                  "dmem_buf_copyin", "enc_barrier", "nrt_model_submit", "timestamp_sync_point",
                  "numerical_err", "cc_exec_barrier", "nrt_load"));
  EXPECT_THAT(RecordedAt(2),
              ElementsAre("nrt_execute", "kmgr_exec_core", "kbl_exec_wait", "nc_exec_running",
                          "cc_running", "enc_barrier", "nrt_model_submit", "timestamp_sync_point",
                          "numerical_err", "cc_exec_barrier", "nrt_load"));
  EXPECT_THAT(RecordedAt(3),
              ElementsAre("nrt_execute", "nc_exec_running", "cc_running", "timestamp_sync_point",
                          "numerical_err", "cc_exec_barrier", "nrt_load"));
  EXPECT_THAT(RecordedAt(4),
              ElementsAre("nrt_execute", "nc_exec_running", "cc_running", "timestamp_sync_point",
                          "numerical_err", "cc_exec_barrier"));
  EXPECT_THAT(RecordedAt(5), ElementsAre("nc_exec_running", "cc_running", "timestamp_sync_point",
                                         "numerical_err"));
}

// Each leaves out what the one before does, so that going down never brings anything back.
TEST(FidelityLevels, NeverBringAnythingBack) {
  for (uint32_t level = 1; level < kFidelityLevels; ++level) {
    EXPECT_FALSE(FilterOfFidelity(level).selects_all());
    EXPECT_FALSE(LeftOutOfFidelity(level).empty());
    for (const std::string& type : kTypes) {
      const bool is_in = FilterOfFidelity(level).Selects(type);
      EXPECT_LE(is_in, FilterOfFidelity(level - 1).Selects(type)) << type << " at " << level;
    }
  }
  EXPECT_TRUE(FilterOfFidelity(0).selects_all());
  EXPECT_EQ(LeftOutOfFidelity(0), "");
}

TEST(FidelityLevels, ALeftOutEntryNamesItsLevel) {
  const auto level_of = [](std::string_view leaves_out) {
    return FidelityLevelOf(LeftOutFromTo(
        1, 2, std::string(kOmittedBegin).append(leaves_out).append(kOmittedReason) + "2 %"));
  };
  EXPECT_EQ(level_of(LeftOutOfFidelity(1)), kFidelityWithoutAllocations);
  EXPECT_EQ(level_of(LeftOutOfFidelity(2)), kFidelityWithoutTensorCalls);
  for (uint32_t level = 3; level < kFidelityLevels; ++level) {
    EXPECT_GT(level_of(LeftOutOfFidelity(level)), kFidelityWithoutTensorCalls);
  }
  EXPECT_GT(FidelityLevelOf(LeftOutFromTo(1, 2, "")), kFidelityWithoutTensorCalls);
}

TEST(FidelityLevels, OnlyThoseThatMakeADifferenceAreUsed) {
  EXPECT_THAT(UsefulFidelityLevels({}, kTypes), ElementsAre(0, 1, 2, 3, 4, 5));
  const auto without_allocations =
      *EventFilter::Parse({kDefaultEventTypeItems.begin(), kDefaultEventTypeItems.end()});
  EXPECT_THAT(UsefulFidelityLevels(without_allocations, kTypes), ElementsAre(0, 2, 3, 4, 5));
  EXPECT_THAT(UsefulFidelityLevels(*EventFilter::Parse({"hardware"}), kTypes), ElementsAre(0, 5));
}

TEST(FidelityLevels, EmptySetIsNoLevel) {
  EXPECT_THAT(UsefulFidelityLevels(*EventFilter::Parse({"nrt_tensor_free"}), kTypes),
              ElementsAre(0));
  EXPECT_THAT(
      UsefulFidelityLevels(*EventFilter::Parse({"nrt_tensor_free", "kbl_exec_wait"}), kTypes),
      ElementsAre(0, 1));
}

TEST(FidelityLevels, DocumentedTypesStandInForARuntimeThatListsNone) {
  EXPECT_THAT(UsefulFidelityLevels({}, {}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(UsefulFidelityLevels(*EventFilter::Parse({"cc_running"}), {}), ElementsAre(0));
}

}  // namespace
}  // namespace neurontrace
