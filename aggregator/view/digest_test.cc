// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>
#include <string>

#include "aggregator/view/digest_folder.h"
#include "aggregator/view/digest_summer.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/fuzz_seed.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

DigestNode NodeOfOneRow(uint64_t width_ns) {
  return {.until = 8, .width_ns = width_ns, .rows = {{.thread_id = 7}}, .names = {{"a", "rt"}}};
}

DigestItem Event(uint64_t start_ns, uint64_t end_ns, uint32_t row = 0) {
  return {.start_ns = start_ns, .end_ns = end_ns, .longest_ns = end_ns - start_ns, .row = row};
}

uint64_t EventsIn(const DigestNode& node) {
  uint64_t events = 0;
  for (const DigestItem& item : node.items) events += item.count;
  return events;
}

DigestNode Decoded(const DigestNode& node) {
  auto decoded = DecodeDigestHead(EncodeDigestHead(node));
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(DecodeDigestItems(EncodeDigestItems(node), *decoded).ok());
  return *std::move(decoded);
}

TEST(DigestTest, SurvivesEncoding) {
  DigestNode node = NodeOfOneRow(1'024);
  node.begin_ns = 100;
  node.end_ns = uint64_t{1} << 63;
  node.chunks = 7;
  node.unreadable_chunks = 1;
  node.lost_until_ns = 150;
  node.chain_lost_ns = 160;
  node.is_late = true;
  node.has_open = true;
  node.complete_at = 9;
  node.open_from = 0;
  node.rows.push_back({.source = RowSource::kHardware, .thread_id = 1, .core = 4});
  node.rows.push_back({.counter = "memory\x01 x", .counter_key = "used"});
  node.names.push_back({"b", "hw"});
  node.incoming = {{.type_hash = UINT64_MAX, .start_ns = 1, .stop_ns = 120, .row = 1, .name = 1}};
  node.pending = {{.type_hash = 3, .start_ns = 110, .stop_ns = 900, .flags = kViewNoBound}};
  node.items = {Event(100, 130), Event(100, 100, 1), Event(140, DigestItem::kOpenEnd)};
  node.items[1].count = 12;
  node.items[2].flags = kViewOpen;
  node.bin_ns = 2'048;
  node.has_other_names = true;
  node.covered_before_ns = {1, 2, 3};
  node.covered_until_ns = {4, uint64_t{1} << 62, 6};
  const DigestNode decoded = Decoded(node);
  EXPECT_EQ(decoded.rows, node.rows);
  EXPECT_EQ(decoded.names, node.names);
  EXPECT_EQ(decoded.incoming, node.incoming);
  EXPECT_EQ(decoded.pending, node.pending);
  EXPECT_EQ(decoded.items, node.items);
  EXPECT_EQ(decoded.covered_until_ns, node.covered_until_ns);
  EXPECT_EQ(EncodeDigestHead(decoded), EncodeDigestHead(node));
}

TEST(DigestTest, RefusesOtherVersionsAndDamage) {
  DigestNode node = NodeOfOneRow(64);
  node.items = {Event(10, 20), Event(30, 40)};
  const std::string bytes = EncodeDigestHead(node);
  const std::string items = EncodeDigestItems(node);
  std::string other = bytes;
  other[0] = static_cast<char>(kDigestVersion + 1);
  EXPECT_TRUE(absl::IsDataLoss(DecodeDigestHead(other).status()));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(DecodeDigestHead(std::string_view(bytes).substr(0, length)).ok()) << length;
  }
  for (size_t length = 0; length < items.size(); ++length) {
    DigestNode head = *DecodeDigestHead(bytes);
    EXPECT_FALSE(DecodeDigestItems(std::string_view(items).substr(0, length), head).ok());
  }
  // Whatever a byte becomes, the result is valid or refused; a sanitizer sees anything else.
  for (size_t at = 1; at < items.size(); ++at) {
    std::string damaged = items;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    DigestNode decoded = *DecodeDigestHead(bytes);
    if (!DecodeDigestItems(damaged, decoded).ok()) continue;
    for (const DigestItem& item : decoded.items) {
      EXPECT_LT(item.row, decoded.rows.size());
      EXPECT_LT(item.name, decoded.names.size());
      EXPECT_GE(item.end_ns, item.start_ns);
    }
  }
}

TEST(DigestTest, MergesNarrowEventsOfAStretch) {
  DigestNode node = NodeOfOneRow(100);
  node.width_ns = 128;
  DigestFolder folder(node);
  for (const DigestItem& item : {Event(0, 10), Event(20, 50), Event(60, 60), Event(130, 140)}) {
    folder.Add(item);
  }
  ASSERT_EQ(node.items.size(), 2u);
  EXPECT_EQ(node.items[0].count, 3u);
  EXPECT_EQ(node.items[0].end_ns, 60u);
  EXPECT_EQ(node.items[0].longest_ns, 30u);
  EXPECT_EQ(node.items[1].count, 1u);
}

TEST(DigestTest, KeepsWideSpansAndLevelsApart) {
  DigestNode node = NodeOfOneRow(128);
  DigestFolder folder(node);
  // A narrow one before a wide one, three in it, one of them nested, and one behind it.
  for (const DigestItem& item : {Event(0, 10), Event(20, 220), Event(30, 50), Event(35, 40),
                                 Event(60, 70), Event(230, 240)}) {
    folder.Add(item);
  }
  std::vector<uint32_t> counts;
  for (const DigestItem& item : node.items) counts.push_back(item.count);
  EXPECT_THAT(counts, ElementsAre(1, 1, 2, 1, 1));
  EXPECT_EQ(node.items[1].end_ns, 220u);
}

TEST(DigestTest, KeepsTheHighestValueOfACounter) {
  DigestNode node = NodeOfOneRow(128);
  node.rows = {{.counter = "memory", .counter_key = "used"}};
  DigestFolder folder(node);
  for (const float value : {-3.0f, -1.0f, -2.0f}) {
    DigestItem item = Event(5, 5);
    item.longest_ns = std::bit_cast<uint32_t>(value);
    folder.Add(item);
  }
  ASSERT_EQ(node.items.size(), 1u);
  EXPECT_EQ(node.items[0].count, 3u);
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(node.items[0].longest_ns)), -1.0f);
}

TEST(DigestTest, JoinsConsecutiveDigests) {
  std::vector<DigestNode> nodes;
  for (uint64_t i = 0; i < 3; ++i) {
    DigestNode node = NodeOfOneRow(16);
    node.first = i * 8;
    node.until = i * 8 + 8;
    node.chunks = 8;
    node.begin_ns = i * 1'000;
    node.end_ns = i * 1'000 + 900;
    node.names = {{"name " + std::to_string(i), "rt"}};
    node.items = {Event(i * 1'000, i * 1'000 + 10), Event(i * 1'000 + 20, i * 1'000 + 800)};
    if (i > 0) node.incoming = {{.start_ns = i * 1'000 - 500, .stop_ns = i * 1'000 + 5}};
    node.pending = {{.start_ns = i * 1'000 + 500, .stop_ns = i * 1'000 + 1'005}};
    nodes.push_back(std::move(node));
  }
  // From before all of them: the others have their starts in the node before.
  nodes[0].begin_ns = 100;
  nodes[0].incoming = {{.start_ns = 50, .stop_ns = 200}};
  const auto joined = JoinDigests(nodes);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->first, 0u);
  EXPECT_EQ(joined->until, 24u);
  EXPECT_EQ(joined->chunks, 24u);
  EXPECT_EQ(joined->width_ns, 16 * kDigestFanOut);
  EXPECT_EQ(EventsIn(*joined), 6u);
  ASSERT_EQ(joined->incoming.size(), 1u);
  EXPECT_EQ(joined->incoming[0].start_ns, 50u);
  ASSERT_EQ(joined->pending.size(), 1u);
  EXPECT_EQ(joined->names[joined->pending[0].name].first, "name 2");
}

TEST(DigestTest, BecomesCoarserAtTheLimit) {
  DigestNode node = NodeOfOneRow(2);
  for (uint64_t i = 0; i < limits::kDigestItemsMax * 2; ++i) {
    node.items.push_back(Event(i * 4, i * 4 + 1));
  }
  const uint64_t events = EventsIn(node);
  node = LimitDigest(std::move(node));
  EXPECT_LE(node.items.size(), limits::kDigestItemsMax);
  EXPECT_EQ(EventsIn(node), events);
  EXPECT_GT(node.width_ns, 2u);
}

// The value of each bin that has one.
std::map<uint64_t, uint64_t> ValuesOf(const std::vector<DigestRun>& runs) {
  std::map<uint64_t, uint64_t> values;
  for (const DigestRun& run : runs) {
    for (uint64_t i = 0; i < run.count; ++i) values[run.begin + i] += run.value;
  }
  return values;
}

TEST(DigestRunSumTest, AddsAndFoldsAsSingleBinsDo) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    DigestRunSum sum;
    DigestRunSum folded;
    std::map<uint64_t, uint64_t> expected;
    std::map<uint64_t, uint64_t> expected_folded;
    for (int i = 0; i < 20; ++i) {
      const DigestRun run{random() % 100, 1 + random() % 40, random() % 3};
      sum.Add(run);
      folded.AddFolded(run, 16);
      for (uint64_t bin = run.begin; bin < run.begin + run.count && run.value > 0; ++bin) {
        expected[bin] += run.value;
        expected_folded[bin / 16] += run.value;
      }
    }
    const std::vector<DigestRun> runs = sum.Take();
    EXPECT_EQ(ValuesOf(runs), expected);
    EXPECT_EQ(ValuesOf(folded.Take()), expected_folded);
    for (size_t i = 1; i < runs.size(); ++i) {
      EXPECT_LE(runs[i - 1].begin + runs[i - 1].count, runs[i].begin);
    }
  }
}

TEST(DigestSumsTest, CountsCoveredTimeOnceAndOwnTimeByName) {
  DigestSummer summer(/*bin_ns=*/128, /*covered_ns=*/{0, 100, 0});
  const DigestSummer::Event span{
      .is_span = true, .has_length = true, .is_cover = true, .is_wait = true};
  const auto add = [&](uint64_t start_ns, uint64_t end_ns, uint32_t name) {
    DigestSummer::Event event = span;
    event.start_ns = start_ns;
    event.end_ns = end_ns;
    event.name = name;
    summer.Add(event);
  };
  // Up to 100 an earlier digest has it. Two nested spans, then an instant.
  add(90, 400, 0);
  add(100, 200, 1);
  summer.Add({.start_ns = 300, .end_ns = 300, .name = 1});
  const DigestSums sums = summer.Take({{"outer", "rt"}, {"inner", "rt"}});
  EXPECT_THAT(
      ValuesOf(sums.of(DigestMeasure::kOther)),
      ElementsAre(std::pair(0, 28), std::pair(1, 128), std::pair(2, 128), std::pair(3, 16)));
  EXPECT_THAT(
      ValuesOf(sums.of(DigestMeasure::kWait)),
      ElementsAre(std::pair(0, 38), std::pair(1, 128), std::pair(2, 128), std::pair(3, 16)));
  EXPECT_THAT(ValuesOf(sums.of(DigestMeasure::kBegun)),
              ElementsAre(std::pair(0, 2), std::pair(2, 1)));
  ASSERT_EQ(sums.names.size(), 2u);
  EXPECT_EQ(sums.names[0].self_ns, 210);
  EXPECT_EQ(sums.names[1].self_ns, 100);
  EXPECT_EQ(sums.names[1].instants, 1u);
  EXPECT_EQ(sums.names[1].events(), 2u);
  const auto decoded = DecodeDigestSums(EncodeDigestSums(sums), 128);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(EncodeDigestSums(*decoded), EncodeDigestSums(sums));
  EXPECT_EQ(decoded->names[0].durations.max_ns(), 310u);
}

TEST(DigestSumsTest, DecodesTheWantedPart) {
  DigestSummer summer(/*bin_ns=*/128, /*covered_ns=*/{});
  for (uint64_t i = 0; i < 40; ++i) {
    summer.Add({.start_ns = i * 100,
                .end_ns = i * 100 + 70,
                .name = static_cast<uint32_t>(i % 2),
                .is_span = true,
                .has_length = true,
                .is_cover = true});
  }
  const DigestSums sums = summer.Take({{"a", "rt"}, {"b", "rt"}});
  const auto bins = DecodeDigestSums(EncodeDigestSums(sums), 128, DigestSumsPart::kBins);
  ASSERT_TRUE(bins.ok()) << bins.status();
  EXPECT_EQ(bins->bins, sums.bins);
  EXPECT_TRUE(bins->names.empty());
  const auto begun = DecodeDigestSums(EncodeDigestSums(sums), 128, DigestSumsPart::kBegun);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(begun->of(DigestMeasure::kBegun).empty());
  ASSERT_EQ(begun->names.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(begun->names[i].name, sums.names[i].name);
    EXPECT_EQ(begun->names[i].begun, sums.names[i].begun);
    EXPECT_FALSE(begun->names[i].begun.empty());
  }
}

TEST(DigestSumsTest, AnOpenSpanCoversWhatFollows) {
  DigestSummer summer(/*bin_ns=*/64, {});
  summer.Add({.start_ns = 10, .end_ns = UINT64_MAX, .is_span = true, .is_cover = true});
  EXPECT_GT(summer.covered_ns()[static_cast<size_t>(DigestMeasure::kOther)], uint64_t{1} << 62);
  DigestSums sums = summer.Take({{"open", "rt"}});
  EXPECT_LE(sums.of(DigestMeasure::kOther).size(), 3u);
  EXPECT_EQ(sums.names[0].without_length, 1u);
  EXPECT_TRUE(DecodeDigestSums(EncodeDigestSums(sums), 64).ok());
}

TEST(DigestSumsTest, NamesBeyondTheLimitShareOne) {
  DigestSumsJoiner joiner(/*bin_ns=*/2);
  for (size_t i = 0; i < limits::kDigestSumNamesMax + 10; ++i) {
    DigestSums one;
    one.names = {{.name = {"name " + std::to_string(i), "rt"}, .instants = 1}};
    joiner.Add(one, 2);
  }
  const DigestSums sums = joiner.Take();
  EXPECT_EQ(sums.names.size(), limits::kDigestSumNamesMax);
  EXPECT_TRUE(sums.has_other_names());
  EXPECT_EQ(sums.names.back().instants, 11u);
}

TEST(DigestSumsTest, RefusesDamage) {
  DigestSummer summer(/*bin_ns=*/128, {});
  for (uint64_t i = 0; i < 40; ++i) {
    summer.Add({.start_ns = i * 100,
                .end_ns = i * 100 + 70,
                .is_span = true,
                .has_length = true,
                .is_cover = true});
  }
  const std::string bytes = EncodeDigestSums(summer.Take({{"a", "rt"}}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string_view cut = std::string_view(bytes).substr(0, length);
    EXPECT_FALSE(DecodeDigestSums(cut, 128).ok()) << length;
    EXPECT_FALSE(DecodeDigestSums(cut, 128, DigestSumsPart::kBegun).ok()) << length;
  }
  for (size_t at = 1; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    const auto decoded = DecodeDigestSums(damaged, 128);
    if (!decoded.ok()) continue;
    DigestSumsJoiner joiner(1'024);
    joiner.Add(*decoded, 128);
    joiner.Take();
  }
}

TEST(DigestSumsTest, BecomeCoarserAtTheLimit) {
  DigestSums sums;
  for (uint64_t i = 0; i < limits::kDigestRunsMax * 3; ++i) {
    sums.bins[static_cast<size_t>(DigestMeasure::kBegun)].push_back({i * 2, 1, i + 1});
  }
  uint64_t before = 0;
  for (const DigestRun& run : sums.of(DigestMeasure::kBegun)) before += run.value;
  EXPECT_EQ(LimitSums(sums, 64), 512u);
  uint64_t after = 0;
  for (const DigestRun& run : sums.of(DigestMeasure::kBegun)) after += run.count * run.value;
  EXPECT_EQ(after, before);
}

// Head, items and sums as digest_fuzzer takes them: each behind its length of two bytes.
std::string FuzzInput(const DigestNode& node) {
  std::string input;
  for (const std::string& part :
       {EncodeDigestHead(node), EncodeDigestItems(node), EncodeDigestSums(node.sums)}) {
    input += static_cast<char>(part.size() & 0xff);
    input += static_cast<char>(part.size() >> 8);
    input += part;
  }
  return input;
}

// Not a test: see lib/base/fuzz_seed.h.
TEST(DigestTest, WritesFuzzCorpusOnRequest) {
  NT_SKIP_UNLESS_FUZZ_SEEDS_ARE_WANTED();
  const auto write = [](const std::string& name, const DigestNode& node) {
    WriteFuzzSeed("digest_fuzzer", name, FuzzInput(node));
  };
  write("empty", {.until = 3});
  DigestNode plain = NodeOfOneRow(64);
  plain.bin_ns = 128;
  plain.items = {Event(10, 20), Event(30, 140)};
  DigestSummer summer(plain.bin_ns, {});
  const DigestSummer::Event span{
      .start_ns = 10, .end_ns = 20, .is_span = true, .has_length = true, .is_cover = true};
  summer.Add(span);
  DigestSummer::Event wait = span;
  wait.start_ns = 30;
  wait.end_ns = 140;
  wait.is_wait = true;
  summer.Add(wait);
  summer.Add({.start_ns = 150, .end_ns = 150});
  plain.sums = summer.Take(plain.names);
  write("plain", plain);
  std::string other = FuzzInput(plain);
  other[2] = static_cast<char>(kDigestVersion + 1);
  WriteFuzzSeed("digest_fuzzer", "other_version", other);
  DigestNode open = NodeOfOneRow(64);
  open.has_open = true;
  open.items = {Event(100, DigestItem::kOpenEnd)};
  open.items[0].flags = kViewOpen;
  DigestSummer endless(open.bin_ns, {});
  endless.Add({.start_ns = 100, .end_ns = UINT64_MAX, .is_span = true, .is_cover = true});
  open.sums = endless.Take(open.names);
  write("open", open);
  DigestNode crossing = NodeOfOneRow(64);
  crossing.rows.push_back({.source = RowSource::kHardware, .thread_id = 1, .core = 4});
  crossing.incoming = {{.type_hash = 1, .start_ns = 5, .stop_ns = 500, .row = 1}};
  crossing.pending = {{.type_hash = 2, .start_ns = 1'000, .stop_ns = 2'000}};
  crossing.covered_before_ns = {500, 0, 0};
  crossing.covered_until_ns = {500, 2'000, 0};
  crossing.items = {Event(1'000, 2'000)};
  write("crossing", crossing);
  DigestNode counter = NodeOfOneRow(64);
  counter.rows = {{.counter = "memory", .counter_key = "used"}};
  counter.items = {Event(10, 10), Event(90, 90)};
  for (DigestItem& item : counter.items) item.longest_ns = std::bit_cast<uint32_t>(1.5f);
  write("counter", counter);
  DigestNode wide = plain;
  wide.width_ns = kDigestWidthMax;
  write("wide", wide);
  DigestNode many = plain;
  many.has_other_names = true;
  many.sums.names.push_back({.name = DigestSums::OtherName(), .instants = 7});
  many.sums.names.back().begun = {{0, 1, 3}, {2, 4, 1}};
  many.sums.names.back().self_ns = -5;
  write("other_names", many);
}

}  // namespace
}  // namespace neurontrace
