// SPDX-License-Identifier: Apache-2.0
// What goes in comes out, small; and of foreign bytes only what makes sense.
#include "lib/trace/clock_evidence_codec.h"

#include <gtest/gtest.h>

#include "lib/base/random.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

bool AreEqual(const ClockEvidence& a, const ClockEvidence& b) {
  return a.snapshots == b.snapshots && a.exchanges == b.exchanges && a.events == b.events &&
         a.utc == b.utc;
}

// What an agent measures in two seconds: exchanges as they are between machines of one region.
ClockEvidence TwoSeconds(uint64_t seed) {
  SeededRandom random(seed);
  const auto jitter = [&](uint64_t below) { return random.Next64() % below; };
  ClockEvidence evidence;
  const uint64_t raw = 86'400'000'000'000 + seed * 2'000'000'000;
  const uint64_t offset = 1'700'000'000'000'000'000;
  for (uint64_t i = 0; i < 2; ++i) {
    const uint64_t begin = raw + i * 800'000'000 + jitter(100'000);
    evidence.snapshots.push_back({.raw_begin_ns = begin,
                                  .raw_end_ns = begin + 90 + jitter(100),
                                  .realtime_ns = begin + offset + 50'000 + jitter(3'000),
                                  .monotonic_ns = begin + 50'000 + jitter(3'000),
                                  .boottime_ns = 0,
                                  .frequency = static_cast<int64_t>(jitter(2'000'000)) - 1'000'000,
                                  .tick_us = 10'000,
                                  .status = 0x2001,
                                  .tai_offset_s = 37});
    evidence.snapshots.back().boottime_ns = evidence.snapshots.back().monotonic_ns;
  }
  for (uint64_t i = 0; i < 16; ++i) {
    const uint64_t send = raw + (i / 4) * 500'000'000 + (i % 4) * 12'000 + jitter(4'000);
    const uint64_t there = send + offset + 40'000 + jitter(20'000);
    evidence.exchanges.push_back({.send_raw_ns = send,
                                  .reference_receive_ns = there,
                                  .reference_send_ns = there + 5'000 + jitter(15'000),
                                  .receive_raw_ns = send + 100'000 + jitter(40'000),
                                  .reference_epoch = 3,
                                  .path = ProbePath::kUdp});
  }
  evidence.utc.push_back({.source = UtcSource::kChrony,
                          .raw_ns = raw,
                          .utc_earliest_ns = raw + offset - 300'000,
                          .utc_latest_ns = raw + offset + 350'000});
  return evidence;
}

TEST(ClockEvidenceCodec, RoundTripsTypicalEvidenceCompactly) {
  size_t bytes = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ClockEvidence evidence = TwoSeconds(seed);
    const std::string encoded = EncodeClockEvidence(evidence);
    const auto decoded = DecodeClockEvidence(encoded);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_TRUE(AreEqual(*decoded, evidence));
    bytes += encoded.size();
  }
  // Two hundred seconds: at most 200 bytes a second are to be stored, keys and all.
  EXPECT_LT(bytes / 200, 150u);
  RecordProperty("bytes_per_second", static_cast<int>(bytes / 200));
}

TEST(ClockEvidenceCodec, RoundTripsExtremeEvidence) {
  ClockEvidence evidence;
  const uint64_t most = ~uint64_t{0};
  evidence.snapshots = {{},
                        {0, most, most, 1, most, INT64_MIN, 0xffffffffu, 0xffffffffu, INT32_MIN},
                        {5, 5, 0, most, 0, INT64_MAX, 0, 0, INT32_MAX}};
  evidence.exchanges = {{most, 0, most, most, 0xffffffffu, ProbePath::kPeer},
                        {0, most, most, most, 0, ProbePath::kUdp},
                        {1, 2, 3, 4, 0, ProbePath::kUdp},
                        {1, 2, 3, 4, 0, ProbePath::kGrpc}};
  evidence.events = {{ClockEventKind::kMigration, 0, most, INT64_MIN},
                     {ClockEventKind::kClockSource, most, most, INT64_MAX}};
  evidence.utc = {{UtcSource::kPhc, most, 0, most}, {UtcSource::kClockBound, 0, most, most}};
  const auto decoded = DecodeClockEvidence(EncodeClockEvidence(evidence));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(AreEqual(*decoded, evidence));
  EXPECT_TRUE(AreEqual(*DecodeClockEvidence(EncodeClockEvidence({})), {}));
}

TEST(ClockEvidenceCodec, KeepsItsFormat) {
  ClockEvidence evidence;
  evidence.snapshots = {{10, 12, 110, 11, 11, -2, 10'000, 64, 37}};
  evidence.exchanges = {{100, 200, 205, 150, 3, ProbePath::kUdp}};
  evidence.events = {{ClockEventKind::kRealtimeStep, 50, 60, -7}};
  evidence.utc = {{UtcSource::kPhc, 70, 80, 90}};
  const std::string expected(
      "\x01"                                                      // version
      "\x01\x01\x14\x04\xc8\x01\x02\x03\xa0\x9c\x01\x80\x01\x4a"  // a snapshot
      "\x01\x01\x01\x03\xc8\x01\xc8\x01\x05\x64"                  // a run of one exchange
      "\x01\x01\x64\x0a\x0d"                                      // an event
      "\x01\x01\x8c\x01\x14\x0a",                                 // a promise of UTC
      36);
  EXPECT_EQ(EncodeClockEvidence(evidence), expected);
}

TEST(ClockEvidenceCodec, RefusesEveryPartOfABatch) {
  const std::string good = EncodeClockEvidence(TwoSeconds(1));
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeClockEvidence(good.substr(0, bytes)).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeClockEvidence(good + '\0').status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeClockEvidence("\x02" + good.substr(1)).status()));
}

TEST(ClockEvidenceCodec, SurvivesEveryChangedByte) {
  const std::string good = EncodeClockEvidence(TwoSeconds(2));
  SeededRandom random(3);
  for (size_t at = 0; at < good.size(); ++at) {
    for (int i = 0; i < 20; ++i) {
      std::string changed = good;
      changed[at] = static_cast<char>(random.Next64());
      const auto decoded = DecodeClockEvidence(changed);
      if (!decoded.ok()) continue;
      const auto again = DecodeClockEvidence(EncodeClockEvidence(*decoded));
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_TRUE(AreEqual(*again, *decoded));
    }
  }
}

TEST(ClockEvidenceCodec, RejectsImpossibleEvidence) {
  const auto refused = [](const ClockEvidence& evidence) {
    return absl::IsInvalidArgument(CheckClockEvidence(evidence)) &&
           absl::IsInvalidArgument(DecodeClockEvidence(EncodeClockEvidence(evidence)).status());
  };
  EXPECT_TRUE(refused({.snapshots = {{.raw_begin_ns = 2, .raw_end_ns = 1}}}));
  EXPECT_TRUE(refused({.exchanges = {{.send_raw_ns = 2, .receive_raw_ns = 1}}}));
  EXPECT_TRUE(refused({.exchanges = {{.path = ProbePath::kUnspecified}}}));
  EXPECT_TRUE(refused({.exchanges = {{.path = static_cast<ProbePath>(4)}}}));
  EXPECT_TRUE(refused({.events = {{}}}));
  EXPECT_TRUE(refused({.events = {{.kind = static_cast<ClockEventKind>(6)}}}));
  EXPECT_TRUE(refused({.utc = {{}}}));
  EXPECT_TRUE(refused({.utc = {{.source = static_cast<UtcSource>(4)}}}));
  ClockEvidence many;
  many.exchanges.resize(limits::kClockBatchEntriesMax + 1,
                        {.reference_epoch = 1, .path = ProbePath::kUdp});
  EXPECT_TRUE(refused(many));
  many.exchanges.pop_back();
  EXPECT_TRUE(CheckClockEvidence(many).ok());
}

}  // namespace
}  // namespace neurontrace
