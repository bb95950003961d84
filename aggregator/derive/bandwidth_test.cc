// SPDX-License-Identifier: Apache-2.0
// Goal: every byte of a transfer is in a bin, once, and bins come in the order of time. Method:
// hand-made transfers; a random set against a sum over all of them.
#include "aggregator/derive/bandwidth.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <random>

#include "aggregator/derive/derive_fixture.h"

namespace neurontrace {
namespace {

class BandwidthTest : public DeriveTest {
 protected:
  static_assert(kBase % kMs == 0);

  std::vector<BandwidthSample> Find(uint64_t bin_ns = kMs) {
    std::vector<BandwidthSample> done;
    ShapeFieldTable fields;
    Bandwidth bandwidth(fields, bin_ns);
    Read([](const TimelineReader&) {},
         [&](const TimelineBatch& batch) { bandwidth.Take(batch, done); });
    bandwidth.Finish(done);
    counts_ = bandwidth.counts();
    uint64_t before_ns = 0;
    for (const BandwidthSample& sample : done) {
      EXPECT_GE(sample.start_ns, before_ns);
      before_ns = sample.start_ns;
    }
    return done;
  }
  void Copy(uint32_t stream, const std::string& type, uint64_t start_ns, uint64_t end_ns,
            uint64_t bytes) {
    script(stream).Span(type, start_ns, end_ns, next_tracking_id_++, 7, {{"size", bytes}});
  }

  BandwidthCounts counts_;
};

TEST_F(BandwidthTest, SpreadsBytesOverTheBinsOfATransfer) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Copy(core, "dmem_buf_copyin", kBase + kMs / 2, kBase + 2 * kMs + kMs / 2, 4000);
  Copy(core, "dmem_buf_copyout", kBase + kMs, kBase + kMs, 10);  // takes no time
  const auto samples = Find();
  std::map<std::pair<TransferDirection, uint64_t>, double> bins;
  for (const auto& s : samples) bins[{s.direction, (s.start_ns - kBase) / kMs}] = s.bytes;
  const auto in = TransferDirection::kHostToDevice;
  const auto out = TransferDirection::kDeviceToHost;
  EXPECT_DOUBLE_EQ((bins[{in, 0}]), 1000);
  EXPECT_DOUBLE_EQ((bins[{in, 1}]), 2000);
  EXPECT_DOUBLE_EQ((bins[{in, 2}]), 1000);
  EXPECT_DOUBLE_EQ((bins[{in, 3}]), 0) << "the series ends with 0";
  EXPECT_DOUBLE_EQ((bins[{out, 1}]), 10);
  EXPECT_DOUBLE_EQ((bins[{out, 2}]), 0);
  EXPECT_EQ(samples.size(), 6u);
  EXPECT_DOUBLE_EQ(samples[0].BytesPerSecond(kMs), 1e6);
  EXPECT_EQ(counts_.bytes, 4010u);
}

TEST_F(BandwidthTest, ALongPauseHasNoBins) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Copy(core, "dmem_buf_copyin", kBase, kBase + 10, 1);
  Copy(core, "dmem_buf_copyin", kBase + 3'600'000 * kMs, kBase + 3'600'000 * kMs + 10, 1);
  EXPECT_EQ(Find().size(), 4u);
}

TEST_F(BandwidthTest, CountsUnusableTransfers) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Copy(core, "dmem_buf_copyin", kBase, kBase + Bandwidth::kSpreadMaxNs + 1, 77);
  script(core).Span("dmem_buf_copyin", kBase + 1, kBase + 2, 5000);
  script(core).Start("dmem_buf_copyout", kBase + 3, 5001, 7);
  script(core).Stop("dmem_buf_copyout", kBase + 4, 5002, 7);
  const auto samples = Find();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].bytes, 77);
  EXPECT_EQ(counts_.not_spread, 1u);
  EXPECT_EQ(counts_.without_size, 1u);
  EXPECT_EQ(counts_.open, 2u);
}

TEST_F(BandwidthTest, ABatchOfLongTransfersHasBoundedSamples) {
  constexpr uint64_t kCopies = 2'000;
  constexpr uint64_t kBins = Bandwidth::kSpreadMaxNs / kMs;
  static_assert(kCopies * kBins > 4 * Bandwidth::kSpreadBinsMax);
  for (uint32_t core = 0; core < 50; ++core) {
    AddStream(Core("i-a", 1, core));
    for (uint64_t i = 0; i < kCopies / 50; ++i) {
      const uint64_t at = kBase + i * Bandwidth::kSpreadMaxNs + core;
      Copy(core, "dmem_buf_copyin", at, at + Bandwidth::kSpreadMaxNs, 1'000);
    }
  }
  ShapeFieldTable fields;
  Bandwidth bandwidth(fields);
  uint64_t calls = 0;
  uint64_t copies = 0;
  std::vector<BandwidthSample> done;
  double bytes = 0;
  const auto check = [&](uint64_t records) {
    EXPECT_LE(done.size(), 2 * Bandwidth::kSpreadBinsMax + 2 * (copies + records));
    for (const BandwidthSample& sample : done) bytes += sample.bytes;
    copies += records;
    done.clear();
    ++calls;
  };
  Read([](const TimelineReader&) {},
       [&](const TimelineBatch& batch) {
         bandwidth.Take(batch, done);
         check(batch.records.size());
       },
       {}, 4'096);
  bandwidth.Finish(done);
  check(0);
  EXPECT_EQ(bandwidth.counts().transfers, kCopies);
  EXPECT_GT(bandwidth.counts().not_spread, 0u);
  EXPECT_LT(calls, 100u) << "batches must be large";
  EXPECT_NEAR(bytes, kCopies * 1'000.0, 1) << "each byte is in some bin";
}

TEST_F(BandwidthTest, NoByteIsLostOrCountedTwice) {
  std::mt19937_64 random(3);
  std::map<uint32_t, double> expected;
  for (uint32_t core = 0; core < 3; ++core) {
    AddStream(Core("i-a", 1, core));
    uint64_t at = kBase;
    for (int i = 0; i < 500; ++i) {
      at += random() % (3 * kMs);
      const uint64_t bytes = random() % 1'000'000;
      Copy(core, "dmem_buf_batch_copyin", at, at + random() % (20 * kMs), bytes);
      expected[core] += static_cast<double>(bytes);
    }
  }
  std::map<uint32_t, double> found;
  for (const BandwidthSample& sample : Find(777'777)) {
    EXPECT_EQ(sample.start_ns % 777'777, 0u);
    found[sample.stream] += sample.bytes;
  }
  for (const auto& [core, bytes] : expected) EXPECT_NEAR(found[core], bytes, bytes * 1e-9);
}

}  // namespace
}  // namespace neurontrace
