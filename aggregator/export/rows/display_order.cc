// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/display_order.h"

#include <algorithm>
#include <compare>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {
namespace {

using WorkerTuple = std::tuple<std::string, std::string, uint32_t, uint64_t, std::string>;

WorkerTuple TupleOf(const WorkerIdentity& worker) {
  return {worker.instance_id, worker.boot_id, worker.pid, worker.start_time_ticks,
          worker.container_id};
}

struct DisplayKey {
  int64_t instance_gid = INT64_MAX;
  std::string instance_id;
  int64_t worker_gid = INT64_MAX;  // the worker's lowest
  WorkerTuple worker;
  StreamKind kind = StreamKind::kUnspecified;
  int64_t gid = INT64_MAX;
  uint32_t nc_idx = 0;
  std::string name;
  friend auto operator<=>(const DisplayKey&, const DisplayKey&) = default;
};

int64_t GidOf(const TimelineStream& stream) { return stream.rank.worker_gid.value_or(INT64_MAX); }

}  // namespace

std::vector<uint32_t> DisplayOrder(std::span<const TimelineStream> streams) {
  absl::flat_hash_map<std::string, int64_t> instance_gids;
  absl::flat_hash_map<WorkerTuple, int64_t> worker_gids;
  const auto lower = [](auto& gids, const auto& key, int64_t gid) {
    const auto [known, is_new] = gids.try_emplace(key, gid);
    known->second = std::min(known->second, gid);
  };
  for (const TimelineStream& stream : streams) {
    const WorkerIdentity& worker = stream.description.identity.worker;
    lower(instance_gids, worker.instance_id, GidOf(stream));
    lower(worker_gids, TupleOf(worker), GidOf(stream));
  }
  std::vector<DisplayKey> keys;
  keys.reserve(streams.size());
  for (const TimelineStream& stream : streams) {
    const StreamIdentity& id = stream.description.identity;
    WorkerTuple worker = TupleOf(id.worker);
    const int64_t worker_gid = worker_gids[worker];
    keys.push_back({.instance_gid = instance_gids[id.worker.instance_id],
                    .instance_id = id.worker.instance_id,
                    .worker_gid = worker_gid,
                    .worker = std::move(worker),
                    .kind = id.kind,
                    .gid = GidOf(stream),
                    .nc_idx = id.nc_idx,
                    .name = id.name});
  }
  std::vector<uint32_t> order(streams.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace neurontrace
