// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "aggregator/insight/group_ids.h"
#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/watch/core_feed.h"
#include "aggregator/watch/fleet_view.h"
#include "aggregator/watch/watch_queue.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The cores of one job in a watch: feeds the rule with their chunks, and judges. Nothing of it is
// stored: after a restart it is made again of what comes. Used by one thread at a time.
class WatchedJob final : private InsightSink {
 public:
  explicit WatchedJob(std::string job) : job_(std::move(job)), engine_({}) {}

  // Returns the index of a stream's core, and adds it if it is new.
  uint32_t CoreOf(const StreamIdentity& stream, const ChunkHeader& header);
  bool Knows(const StreamIdentity& stream) const;
  // Takes the next stored chunk of a core. `events` is null for a chunk without events, or without
  // its columns.
  void Take(uint32_t core, const WatchedChunk& chunk, const DecodedChunk* events);

  // Judges the present window. `workers` are those of the watch, `now_ns` is monotonic.
  InsightReport Judge(const absl::flat_hash_map<WorkerIdentity, WorkerView>& workers,
                      uint64_t now_ns);
  // Begins a new window.
  void StartWindow();

  std::span<const InsightCore> cores() const { return engine_.cores(); }
  const WorkerIdentity& WorkerOf(uint32_t core) const { return *streams_[core].worker; }
  // Returns the rank of a core, as its chunks have it by now; -1 if unknown.
  int64_t GidOf(uint32_t core) const { return feeds_[core].worker_gid(); }
  // Converts a core's host time to reference time, by when its chunks arrived: late by the shortest
  // time that one of them took, which is less than a second.
  uint64_t ToReference(uint32_t core, uint64_t host_ns) const;
  // Returns cores that can be compared with a suspect, the best first: those with the same index in
  // other processes, then all others.
  std::vector<uint32_t> PeersOf(std::span<const uint32_t> suspects, size_t count) const;
  // Returns of how many cores the budget of the watch left out calls of this class in the window:
  // kMemory or kTransferIo.
  size_t CoresWithout(InsightClass calls) const;
  // Returns whether most cores, and many, have ended.
  bool IsMostlyEnded() const;
  CoreFeed::Counters counters() const;  // sums
  size_t memory_bytes() const;

 private:
  struct Stream {
    const WorkerIdentity* worker = nullptr;  // a key of process_of_
    int64_t reference_minus_host_ns = 0;
    bool has_reference = false;
  };
  void OnEvent(const InsightEvent& event) override { engine_.Take(event); }
  void OnModel(uint64_t model, std::string_view name) override { engine_.NameModel(model, name); }
  // Returns until when the core's stream is known to be alive, by its host's clock.
  static uint64_t AliveAt(const CoreFeed& feed, const WorkerView* worker, uint64_t now_ns);
  // A number for each worker that no other one of its instance has: its process id, if possible.
  using Processes = std::unordered_map<WorkerIdentity, uint64_t, absl::Hash<WorkerIdentity>>;
  // Returns the worker's entry, and adds it if it is new.
  const Processes::value_type& ProcessOf(const WorkerIdentity& worker);

  const std::string job_;
  InsightEngine engine_;
  GroupIds groups_;
  Processes process_of_;  // its nodes stay where they are
  absl::flat_hash_map<std::pair<const WorkerIdentity*, uint32_t>, uint32_t> core_of_;  // by nc_idx
  absl::flat_hash_map<std::string, uint32_t> same_pid_;  // by instance and process id: how many
  std::vector<Stream> streams_;                          // by core; as feeds_
  std::vector<CoreFeed> feeds_;
};

}  // namespace neurontrace
