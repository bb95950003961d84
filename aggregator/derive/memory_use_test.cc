// SPDX-License-Identifier: Apache-2.0
// Goal: memory in use is what the runtime last said, of every process, in the order of time.
// Method: hand-made allocations and releases.
#include "aggregator/derive/memory_use.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "aggregator/derive/derive_fixture.h"

namespace neurontrace {
namespace {

class MemoryUseTest : public DeriveTest {
 protected:
  std::vector<HbmSample> Find() {
    std::vector<HbmSample> done;
    std::optional<HbmUse> use;
    Read([&](const TimelineReader& reader) { use.emplace(reader.streams(), fields_); },
         [&](const TimelineBatch& batch) { use->Take(batch, done); });
    use->Finish(done);
    counts_ = use->counts();
    memories_.assign(use->memories().begin(), use->memories().end());
    return done;
  }
  static EventScript::Attributes About(uint64_t hbm, const std::string& usage) {
    return {{"hbm_idx", hbm}, {"mla_idx", uint64_t{3}}, {"usage_type", usage}};
  }
  static EventScript::Attributes Totals(uint64_t usage_bytes, uint64_t total_bytes) {
    return {{"total_bytes", total_bytes}, {"usage_type_total_bytes", usage_bytes}};
  }
  static uint64_t Of(const HbmSample& sample, HbmCategory category) {
    return sample.category_bytes[static_cast<size_t>(category)];
  }

  ShapeFieldTable fields_;
  HbmCounts counts_;
  std::vector<HbmIdentity> memories_;
};

TEST_F(MemoryUseTest, ReportsUsageAfterEachEvent) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Span("nrt_dma_mem_alloc", kBase, kBase + 100, 1, 7, About(1, "Tensors"),
                    Totals(1000, 1000));
  // Begins later and ends first.
  script(core).Span("nrt_dma_mem_alloc", kBase + 10, kBase + 20, 2, 7, About(1, "Weights"),
                    Totals(50, 50));
  script(core).Span("nrt_dma_mem_dealloc", kBase + 200, kBase + 210, 3, 7, About(1, "TENSORS"),
                    Totals(400, 450));
  const auto samples = Find();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[0].time_ns, kBase + 20);
  EXPECT_EQ(Of(samples[0], HbmCategory::kWeights), 50u);
  EXPECT_EQ(samples[1].time_ns, kBase + 100);
  EXPECT_EQ(Of(samples[1], HbmCategory::kTensors), 1000u);
  EXPECT_EQ(samples[2].total_bytes, 450u);
  EXPECT_EQ(Of(samples[2], HbmCategory::kTensors), 400u);
  EXPECT_EQ(Of(samples[2], HbmCategory::kWeights), 50u);
  ASSERT_EQ(memories_.size(), 1u);
  EXPECT_EQ(memories_[0], (HbmIdentity{"i-a", 3, 1}));
}

TEST_F(MemoryUseTest, ProcessesOfOneMemoryAddUpAndMemoriesDoNot) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const uint32_t b = AddStream(Core("i-a", 2, 0));
  script(a).Span("nrt_dma_mem_alloc", kBase, kBase + 1, 1, 7, About(0, "io"), Totals(100, 100));
  script(b).Span("nrt_dma_mem_alloc", kBase + 2, kBase + 3, 1, 7, About(0, "io"), Totals(7, 7));
  script(b).Span("nrt_dma_mem_alloc", kBase + 4, kBase + 5, 2, 7, About(1, "io"), Totals(9, 9));
  script(a).Span("nrt_dma_mem_dealloc", kBase + 6, kBase + 7, 2, 7, About(0, "io"), Totals(0, 0));
  const auto samples = Find();
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1].total_bytes, 107u);
  EXPECT_EQ(samples[2].total_bytes, 9u);
  EXPECT_EQ(samples[3].total_bytes, 7u);
  EXPECT_EQ(Of(samples[3], HbmCategory::kIo), 7u);
}

TEST_F(MemoryUseTest, SumsCoresOfOneProcess) {
  const uint32_t a = AddStream(Core("i-a", 1, 0));
  const uint32_t b = AddStream(Core("i-a", 1, 1));
  script(a).Span("nrt_dma_mem_alloc", kBase, kBase + 1, 1, 7, About(0, "io"), Totals(100, 100));
  script(b).Span("nrt_dma_mem_alloc", kBase + 2, kBase + 3, 2, 7, About(0, "io"), Totals(130, 130));
  script(a).Span("nrt_dma_mem_alloc", kBase + 4, kBase + 5, 3, 7, About(0, "io"), Totals(150, 150));
  const auto samples = Find();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1].total_bytes, 130u);
  EXPECT_EQ(samples[2].total_bytes, 150u);
}

TEST_F(MemoryUseTest, AStopInAnotherChunkCountsAndOneThatNeverComesDoesNot) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  script(core).Start("nrt_dma_mem_alloc", kBase, 1, 7, About(0, "dram_spill"));
  script(core).Start("nrt_dma_mem_alloc", kBase + 1, 2, 7, About(0, "io"));
  CloseChunk(core);
  script(core).Stop("nrt_dma_mem_alloc", kBase + 50, 1, 7, Totals(5, 6));
  const auto samples = Find();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].time_ns, kBase + 50);
  EXPECT_EQ(Of(samples[0], HbmCategory::kDramSpill), 5u);
  EXPECT_EQ(samples[0].total_bytes, 6u);
  EXPECT_EQ(counts_.open, 1u);
}

TEST_F(MemoryUseTest, CountsRefusedAndUnusableEvents) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  EventScript::Attributes refused = Totals(5, 6);
  refused.push_back({"return_code", uint64_t{4}});
  script(core).Span("nrt_dma_mem_alloc", kBase, kBase + 1, 1, 7, About(0, "io"), refused);
  EventScript::Attributes failed = Totals(5, 6);
  failed.push_back({"return_code", int64_t{-1}});
  script(core).Span("nrt_dma_mem_alloc", kBase + 1, kBase + 2, 3, 7, About(0, "io"), failed);
  script(core).Span("nrt_dma_mem_alloc", kBase + 2, kBase + 3, 2, 7, About(0, "io"));
  EXPECT_EQ(Find().size(), 0u);
  EXPECT_EQ(counts_.failed, 2u);
  EXPECT_EQ(counts_.without_total, 1u);
}

TEST_F(MemoryUseTest, KnowsEveryCategoryByItsOwnName) {
  for (size_t i = 0; i < kHbmCategories; ++i) {
    const auto category = static_cast<HbmCategory>(i);
    EXPECT_EQ(HbmCategoryOf(ToString(category)), category);
  }
  EXPECT_EQ(HbmCategoryOf("DMA Rings (Runtime)"), HbmCategory::kDmaRingsRuntime);
  EXPECT_EQ(HbmCategoryOf("dramSpill"), HbmCategory::kDramSpill);
  EXPECT_EQ(HbmCategoryOf("some future use"), HbmCategory::kUnknown);
  EXPECT_EQ(HbmCategoryOf(""), HbmCategory::kUnknown);
}

}  // namespace
}  // namespace neurontrace
