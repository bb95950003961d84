// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/store/store_test_support.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {

inline constexpr int64_t kTestHostBegin = 1'750'000'000'000'000'000;

// A logical core whose clocks are known, for tests: writes the events of its executions as a
// runtime does, and keeps what it wrote of its devices, with the truth. Times are nanoseconds since
// the begin of the world.
class TestCoreWorld {
 public:
  struct Options {
    uint64_t seed = 1;
    // The host's REALTIME is so far ahead of the truth.
    int64_t host_ahead_ns = 0;
    std::vector<std::optional<uint64_t>> physical = {std::nullopt};  // device_core_idx of each
    double counter_ppm = 40;
    bool has_sync_points = true;
    bool has_host_events = true;
    int64_t rank = 0;
    int64_t world_size = 0;  // 0: nobody says what rank it is
  };
  struct Meeting {
    int64_t enter_ns = 0;
    int64_t exit_ns = 0;
  };
  struct Stamped {
    std::optional<uint64_t> physical;
    uint64_t sequence = 0;
    uint64_t exec_id = 0;
    uint64_t counter_ns = 0;
    uint64_t runtime_ns = 0;    // as the runtime made it of the sync point
    uint64_t true_host_ns = 0;  // what the host's REALTIME was
  };

  explicit TestCoreWorld(Options with) : options_(std::move(with)), random_(options_.seed) {
    for (size_t i = 0; i < options_.physical.size(); ++i) {
      counter_begin_.push_back(144'000'000'000 + static_cast<int64_t>(i) * 7'000'000'000);
    }
  }

  // The counters of all its physical cores start again.
  void Reset(int64_t at_ns, int64_t to_ns) {
    for (size_t i = 0; i < counter_begin_.size(); ++i) {
      counter_begin_[i] = to_ns - Counted(at_ns) + static_cast<int64_t>(i) * 7'000'000'000;
    }
  }
  // Somebody sets the host's clock.
  void SetHost(int64_t by_ns) { options_.host_ahead_ns += by_ns; }
  // The ring restarts.
  void RestartRing() { sequence_ = 0; }

  // An execution from `start_ns` on; with collectives inside, and a barrier of the hosts before.
  void Execute(int64_t start_ns, int64_t length_ns, const std::vector<Meeting>& collectives = {},
               std::optional<Meeting> barrier = {}) {
    ++exec_id_;
    const int64_t end_ns = start_ns + length_ns;
    const int64_t submit_ns = start_ns - 4'000 - Late(6'000);
    const int64_t known_ns = end_ns + 4'000 + Late(6'000);
    HostSpan("kbl_exec_pre", submit_ns - 20'000, submit_ns - 500);
    if (options_.has_host_events) {
      Add("kbl_exec_core", Phase::kStart, Host(submit_ns), 3, {{"exec_id", exec_id_}});
    }
    sync_late_ns_ = 1'200 + Late(30'000);
    latched_ns_ = end_ns + 3'000;
    for (size_t i = 0; i < options_.physical.size(); ++i) {
      DeviceSpan("nc_exec_running", i, start_ns, end_ns, {});
      uint64_t operation = 0;
      for (const Meeting& meeting : collectives) {
        DeviceSpan("cc_running", i, meeting.enter_ns, meeting.exit_ns,
                   {{"gid", 5}, {"op_id", operation++}});
      }
    }
    if (barrier) HostSpan("enc_barrier", barrier->enter_ns, barrier->exit_ns, 2);
    HostSpan("kbl_exec_wait", submit_ns + 1'000, known_ns);
    for (size_t i = 0; options_.has_sync_points && i < options_.physical.size(); ++i) {
      Add("timestamp_sync_point", Phase::kInstant, Host(latched_ns_ + sync_late_ns_ + 10'000), 0,
          {{"exec_id", exec_id_},
           {"nc_timestamp_ns", Counter(i, latched_ns_)},
           {"cpu_timestamp_ns", Host(latched_ns_ + sync_late_ns_)}});
    }
    HostSpan("kbl_exec_post", known_ns + 60'000, known_ns + 70'000);
  }

  // Stores what was written since the last time as the next chunk of the stream.
  void Put(Store& store, uint8_t capture, const StreamIdentity& stream) {
    const EncodedColumns columns = builder_.Finish();
    ReceivedChunk chunk = TestChunk(capture, stream, chunks_++);
    chunk.header.event_count = columns.event_count;
    chunk.header.first_timestamp_ns = columns.first_timestamp_ns;
    chunk.header.last_timestamp_ns = columns.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.columns = CompressColumns(columns.bytes);
    if (options_.world_size > 0) {
      chunk.header.rank_evidence = {
          {RankSource::kCommunicator, options_.rank, options_.world_size, ""}};
    }
    const auto results = store.chunks().PutBatch({&chunk, 1});
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->front().outcome, PutOutcome::kStored);
  }

  const std::vector<Stamped>& stamped() const { return stamped_; }
  uint64_t sequence() const { return sequence_; }

 private:
  using Attributes = std::vector<std::pair<std::string_view, uint64_t>>;

  int64_t Late(double mean_ns) {
    return static_cast<int64_t>(std::exponential_distribution<double>(1 / mean_ns)(random_));
  }
  int64_t Counted(int64_t ns) const {
    return ns + static_cast<int64_t>(options_.counter_ppm * 1e-6 * static_cast<double>(ns));
  }
  uint64_t Counter(size_t core, int64_t ns) const {
    return static_cast<uint64_t>(counter_begin_[core] + Counted(ns));
  }
  uint64_t Host(int64_t ns) const {
    return static_cast<uint64_t>(kTestHostBegin + ns + options_.host_ahead_ns);
  }

  void Add(std::string_view type, Phase phase, uint64_t timestamp_ns, uint64_t span,
           const Attributes& attributes) {
    Shape shape{.event_type = type,
                .phase = phase,
                .present = FieldBit(Field::kTimestamp) | FieldBit(Field::kNcLocalId) |
                           FieldBit(Field::kTrackingId)};
    std::vector<AttributeValue> values;
    for (const auto& [name, value] : attributes) {
      shape.keys.push_back({name, ValueType::kUint, KeyScope::kData});
      values.push_back({value, {}});
    }
    const auto id = builder_.InternShape(shape);
    ASSERT_TRUE(id.ok()) << id.status();
    const EventFields fields{.timestamp_ns = timestamp_ns,
                             .nc_local_id = sequence_++,
                             .tracking_id = exec_id_ * 64 + span};
    ASSERT_TRUE(builder_.Append(*id, fields, values).ok());
  }
  void HostSpan(std::string_view type, int64_t start_ns, int64_t stop_ns, uint64_t span = 1) {
    if (!options_.has_host_events) return;
    Add(type, Phase::kStart, Host(start_ns), span, {{"exec_id", exec_id_}});
    Add(type, Phase::kStop, Host(stop_ns), span, {});
  }
  void Device(std::string_view type, Phase phase, size_t core, int64_t ns, uint64_t span,
              Attributes attributes) {
    const uint64_t counter_ns = Counter(core, ns);
    const uint64_t runtime_ns =
        Host(latched_ns_ + sync_late_ns_) + counter_ns - Counter(core, latched_ns_);
    stamped_.push_back(
        {options_.physical[core], sequence_, exec_id_, counter_ns, runtime_ns, Host(ns)});
    attributes.emplace_back("nc_timestamp_ns", counter_ns);
    Add(type, phase, runtime_ns, span, attributes);
  }
  void DeviceSpan(std::string_view type, size_t core, int64_t start_ns, int64_t stop_ns,
                  Attributes attributes) {
    const uint64_t span = 4 + span_++ % 60;
    attributes.emplace_back("exec_id", exec_id_);
    // As runtimes do, of the execution alone.
    if (options_.physical[core] && type == "nc_exec_running") {
      attributes.emplace_back("device_core_idx", *options_.physical[core]);
    }
    Device(type, Phase::kStart, core, start_ns, span, std::move(attributes));
    Device(type, Phase::kStop, core, stop_ns, span, {});
  }

  Options options_;
  std::mt19937_64 random_;
  std::vector<int64_t> counter_begin_;
  EventChunkBuilder builder_;
  std::vector<Stamped> stamped_;
  uint64_t sequence_ = 0;
  uint64_t exec_id_ = 0;
  uint64_t span_ = 0;
  uint64_t chunks_ = 0;
  int64_t latched_ns_ = 0;
  int64_t sync_late_ns_ = 0;
};

}  // namespace neurontrace
