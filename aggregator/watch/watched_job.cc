// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/watched_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>

#include "lib/trace/rank_evidence.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace {

const WatchedJob::Processes::value_type& WatchedJob::ProcessOf(const WorkerIdentity& worker) {
  const auto [known, is_new] = process_of_.try_emplace(worker, worker.pid);
  if (is_new) {
    const uint64_t before = same_pid_[fmt::format("{} {}", worker.pid, worker.instance_id)]++;
    known->second |= before << 32;
  }
  return *known;
}

bool WatchedJob::Knows(const StreamIdentity& stream) const {
  const auto worker = process_of_.find(stream.worker);
  return worker != process_of_.end() && core_of_.contains(std::pair(&worker->first, stream.nc_idx));
}

uint32_t WatchedJob::CoreOf(const StreamIdentity& stream, const ChunkHeader& header) {
  const auto& [worker, process] = ProcessOf(stream.worker);
  const auto [known, is_new] = core_of_.try_emplace(std::pair(&worker, stream.nc_idx),
                                                    static_cast<uint32_t>(streams_.size()));
  if (!is_new) return known->second;
  const RankEvidence* const best = BestEvidence(header.rank_evidence);
  const int64_t gid = best == nullptr ? -1 : best->worker_gid;
  const uint32_t core =
      engine_.AddCore({.job = job_,
                       .instance_id = stream.worker.instance_id,
                       .process = process,
                       .worker_gid = gid,
                       .nc_idx = stream.nc_idx,
                       .world_size = best == nullptr ? 0
                                                     : static_cast<uint32_t>(std::clamp<int64_t>(
                                                           best->world_size, 0, UINT32_MAX))});
  assert(core == streams_.size());
  streams_.push_back({.worker = &worker});
  feeds_.emplace_back(core, gid);
  return core;
}

void WatchedJob::Take(uint32_t core, const WatchedChunk& chunk, const DecodedChunk* events) {
  CoreFeed& feed = feeds_[core];
  feed.TakeHeader(chunk.header, chunk.arrival_ns);
  if (chunk.is_cut) feed.MarkLost();
  if (events != nullptr) feed.Read(*events, groups_, *this);
  if (feed.reached_arrival_ns() != chunk.arrival_ns) return;
  Stream& stream = streams_[core];
  const auto offset_ns = static_cast<int64_t>(chunk.arrival_reference_ns - feed.reached_ns());
  if (!stream.has_reference || offset_ns < stream.reference_minus_host_ns) {
    stream.reference_minus_host_ns = offset_ns;
  }
  stream.has_reference = true;
}

uint64_t WatchedJob::ToReference(uint32_t core, uint64_t host_ns) const {
  if (host_ns == 0) return 0;
  return host_ns + static_cast<uint64_t>(streams_[core].reference_minus_host_ns);
}

// Between canaries an agent shows that a stream is alive: it is connected, and everything that it
// has read of the worker is stored. Its host's clock has advanced as ours since the newest chunk
// arrived, or more.
uint64_t WatchedJob::AliveAt(const CoreFeed& feed, const WorkerView* worker, uint64_t now_ns) {
  const uint64_t reached_ns = feed.reached_ns();
  if (worker == nullptr || feed.has_ended() || !worker->is_stored) return reached_ns;
  const bool is_recent =
      worker->last_seen_ns != 0 && worker->last_seen_ns + limits::kWatchAgentSeenNs >= now_ns;
  if (!is_recent || worker->last_seen_ns <= feed.reached_arrival_ns()) return reached_ns;
  return reached_ns + (worker->last_seen_ns - feed.reached_arrival_ns());
}

InsightReport WatchedJob::Judge(const absl::flat_hash_map<WorkerIdentity, WorkerView>& workers,
                                uint64_t now_ns) {
  std::vector<CoreCondition> conditions(feeds_.size());
  for (uint32_t core = 0; core < feeds_.size(); ++core) {
    const auto found = workers.find(*streams_[core].worker);
    const WorkerView* const worker = found == workers.end() ? nullptr : &found->second;
    CoreFeed& feed = feeds_[core];
    CoreCondition& condition = conditions[core];
    condition.alive_at_ns = AliveAt(feed, worker, now_ns);
    feed.ShowOpen(condition.alive_at_ns, *this);
    feed.AddLosses(condition);
    if (worker == nullptr) continue;
    // Another capture has its events.
    if (worker->is_suspended) {
      condition.lost_unknown = true;
      condition.loss_end_ns = condition.alive_at_ns;
      if (condition.loss_begin_ns == 0) condition.loss_begin_ns = feed.reached_ns();
    }
    const uint64_t received_ns = std::max(feed.reached_arrival_ns(), worker->last_seen_ns);
    condition.is_silent =
        !worker->has_ended && !feed.has_ended() && received_ns + limits::kWatchAgentSeenNs < now_ns;
    condition.has_ended = worker->has_ended;
    condition.ended_orderly = worker->ended_orderly;
    if (worker->has_ended) condition.ended_at_ns = feed.reached_ns();
  }
  return engine_.Judge(conditions);
}

void WatchedJob::StartWindow() {
  for (CoreFeed& feed : feeds_) feed.StartWindow();
  // Clocks may have been set: the next chunks say where they are.
  for (Stream& stream : streams_) stream.has_reference = false;
  engine_.StartWindow();
}

std::vector<uint32_t> WatchedJob::PeersOf(std::span<const uint32_t> suspects, size_t count) const {
  std::set<uint32_t> indexes;
  for (const uint32_t core : suspects) indexes.insert(cores()[core].nc_idx);
  std::vector<uint32_t> peers;
  for (const bool is_same_index : {true, false}) {
    for (uint32_t core = 0; core < feeds_.size() && peers.size() < count; ++core) {
      const bool is_suspect = std::ranges::binary_search(suspects, core);
      if (is_suspect || indexes.contains(cores()[core].nc_idx) != is_same_index) continue;
      if (!feeds_[core].has_ended()) peers.push_back(core);
    }
  }
  return peers;
}

size_t WatchedJob::CoresWithout(InsightClass calls) const {
  return static_cast<size_t>(std::ranges::count_if(
      feeds_, [calls](const CoreFeed& feed) { return feed.LacksCalls(calls); }));
}

bool WatchedJob::IsMostlyEnded() const {
  const auto ended = std::ranges::count_if(feeds_, &CoreFeed::has_ended);
  return static_cast<size_t>(ended) > std::max<size_t>(feeds_.size() / 2, 64);
}

CoreFeed::Counters WatchedJob::counters() const {
  CoreFeed::Counters sum;
  for (const CoreFeed& feed : feeds_) sum += feed.counters();
  return sum;
}

size_t WatchedJob::memory_bytes() const {
  size_t bytes = engine_.memory_bytes() + sizeof(*this);
  for (const CoreFeed& feed : feeds_) bytes += feed.memory_bytes();
  return bytes + streams_.capacity() * sizeof(Stream) +
         core_of_.capacity() * (sizeof(decltype(core_of_)::value_type) + 1) +
         process_of_.size() * (sizeof(Processes::value_type) + 2 * sizeof(void*));
}

}  // namespace neurontrace
