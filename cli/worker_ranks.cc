// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_ranks.h"

#include <fmt/format.h>

namespace neurontrace::cli {

std::string FormatRanks(const std::set<int64_t>& worker_gids) {
  std::string text;
  for (auto it = worker_gids.begin(); it != worker_gids.end();) {
    const int64_t first = *it;
    int64_t last = first;
    for (++it; it != worker_gids.end() && *it == last + 1; ++it) last = *it;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
  }
  return text.empty() ? "-" : text;
}

WorkerRanks::Key WorkerRanks::KeyOf(const v1::WorkerIdentity& worker) {
  return {worker.instance_id(), worker.boot_id(), worker.pid(), worker.start_time_ticks()};
}

void WorkerRanks::Take(const v1::ListWorkersReply& reply) {
  for (const v1::WorkerInventory& worker : reply.workers()) {
    for (const v1::CoreInventory& core : worker.cores()) {
      if (core.rank_evidence().empty()) continue;
      ranks_[KeyOf(worker.identity())].insert(core.rank_evidence(0).worker_gid());
    }
  }
}

void WorkerRanks::Take(const v1::Capture& capture) {
  for (const v1::CaptureStream& stream : capture.streams()) {
    if (stream.worker_gid() < 0) continue;
    ranks_[KeyOf(stream.identity().worker())].insert(stream.worker_gid());
  }
}

std::string WorkerRanks::Format(const v1::WorkerIdentity& worker) const {
  const auto known = ranks_.find(KeyOf(worker));
  return known == ranks_.end() ? "-" : FormatRanks(known->second);
}

}  // namespace neurontrace::cli
