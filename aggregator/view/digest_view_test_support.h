// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/store/store_test_support.h"
#include "aggregator/view/digest_builder.h"
#include "aggregator/view/digest_feed.h"
#include "aggregator/view/selected_streams.h"
#include "aggregator/view/view_test_support.h"
#include "lib/base/sanitizers.h"

namespace neurontrace {

// Builds digests without a rest.
class NeverPauses final : public DigestBuilder::Pacer {
 public:
  bool Continue() override { return true; }
};

// One event of a chunk to come.
struct ScriptEvent {
  uint64_t at_ns = 0;
  Phase phase = Phase::kInstant;
  std::string type;
  uint64_t tracking_id = 0;
  uint64_t thread_id = 0;
};

// A capture of random events with its digests, and a reading of it that uses them. Views with
// digests are compared with views that read every event. One thread.
class DigestFixture : public ViewFixture {
 protected:
  static constexpr uint64_t kLengthNs = 1'500'000'000;  // within the lookback of a reader

  // Returns how many of so many windows are drawn: a tenth under sanitizers, and at least one.
  static constexpr int Drawn(int windows) { return kUnderSanitizer ? (windows + 9) / 10 : windows; }

  void SetUp() override {
    source_.description().id = TestCaptureId(1);
    ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
  }

  // Makes events of a stream in the order of time: spans that nest, overlap, have no stop or no
  // start, and instants, on three threads of the runtime and the hardware.
  std::vector<ScriptEvent> MakeEvents(size_t spans) {
    static const char* const kTypes[] = {"nrt_execute", "nc_exec_running", "cc_running"};
    std::vector<ScriptEvent> events;
    for (uint64_t id = 1; id <= spans; ++id) {
      const std::string type = kTypes[random_() % 3];
      const uint64_t thread_id = 7 + random_() % 2;
      const uint64_t at_ns = kBase + random_() % kLengthNs;
      const uint64_t kind = random_() % 100;
      const uint64_t length_ns = random_() % (kind < 60   ? 100'000
                                              : kind < 95 ? 5'000'000
                                                          : 300'000'000);
      if (random_() % 8 == 0) {
        events.push_back({at_ns, Phase::kInstant, type, 0, thread_id});
        continue;
      }
      const uint64_t fate = random_() % 100;
      if (fate >= lost_percent_) events.push_back({at_ns, Phase::kStart, type, id, thread_id});
      if (fate < 100 - open_percent_) {
        events.push_back({at_ns + length_ns, Phase::kStop, type, id, thread_id});
      }
    }
    std::ranges::stable_sort(events, {}, &ScriptEvent::at_ns);
    return events;
  }

  // Adds events as chunks of 48. Some chunks change places with the next one: they come late.
  void AddChunks(uint32_t stream, const std::vector<ScriptEvent>& events, uint64_t swap_percent) {
    std::vector<std::span<const ScriptEvent>> chunks;
    for (size_t at = 0; at < events.size(); at += 48) {
      chunks.push_back(std::span(events).subspan(at, std::min<size_t>(48, events.size() - at)));
    }
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      if (random_() % 100 < swap_percent) std::swap(chunks[i], chunks[i + 1]);
    }
    for (const auto& chunk : chunks) {
      for (const ScriptEvent& event : chunk) {
        script_.Add(event.type, event.phase, event.at_ns, event.tracking_id, event.thread_id);
      }
      Close(stream);
    }
  }

  void Build(bool has_ended) {
    DigestBuilder builder(store_->digests());
    NeverPauses pacer;
    for (const StreamDescription& stream : source_.description().streams) {
      const auto built = builder.BuildStream(source_, TestCaptureId(1), stream, has_ended,
                                             retry_at_[stream.number], pacer);
      ASSERT_TRUE(built.ok()) << built.status();
      left_[stream.number] = built->chunks_left;
    }
  }

  std::vector<uint32_t> AllStreams() {
    std::vector<uint32_t> numbers(source_.description().streams.size());
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
  }
  void ReadFrom(ChunkSource& source, Exporter& exporter, uint64_t from_ns, uint64_t to_ns) {
    ExportRequest request;
    request.clocks = &clocks_;
    request.no_flows = true;
    request.filter.window_start_ns = from_ns;
    request.filter.window_end_ns = to_ns;
    const auto summary = RunExporter(source, exporter, request, true, nullptr);
    ASSERT_TRUE(summary.ok()) << summary.status();
  }
  // Reads the window into collectors that make(feed) returns, as CaptureViews does.
  template <typename Make>
  std::unique_ptr<DigestFeed> ReadDigested(const DigestFeed::Window& window, const Make& make) {
    const std::vector<uint32_t> streams = AllStreams();
    absl::flat_hash_set<uint32_t> excluded;
    while (true) {
      auto feed = DigestFeed::Make(store_->digests(), source_,
                                   {source_.description(), clocks_, streams}, window, excluded);
      EXPECT_TRUE(feed.ok()) << feed.status();
      auto digests = std::make_unique<DigestFeed>(*std::move(feed));
      SelectedStreams masked(source_, source_.description(), streams, UINT64_MAX, digests.get());
      ReadFrom(masked, make(digests.get()), window.from_ns, window.to_ns);
      if (digests->conflicts().empty()) {
        digested_chunks_ += digests->chunks();
        return digests;
      }
      excluded.insert(digests->conflicts().begin(), digests->conflicts().end());
    }
  }

  std::unique_ptr<Store> store_ = OpenInMemory();
  std::mt19937_64 random_{20261128};
  CaptureClocks clocks_;
  uint64_t lost_percent_ = 0;
  uint64_t open_percent_ = 0;
  uint64_t digested_chunks_ = 0;  // of all views
  std::map<uint32_t, uint64_t> retry_at_;
  std::map<uint32_t, uint64_t> left_;
};

}  // namespace neurontrace
