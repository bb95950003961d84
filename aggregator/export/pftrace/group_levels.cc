// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/group_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "lib/trace/ids.h"

namespace neurontrace {
namespace {

using Part = Grouping::Part;

// Larger numbers are not padded: no job has such ranks, but a file may contain them.
constexpr int64_t kPaddedMax = 99'999'999;

// Returns the decimal digits of a number as names pad them; negative ones count as 0.
size_t DigitsOf(int64_t number) {
  return fmt::formatted_size("{}", std::clamp<int64_t>(number, 0, kPaddedMax));
}

}  // namespace

// Paddings and levels depend on all streams, so that they are decided before any name is made.
GroupLevels::GroupLevels(const Grouping& grouping, std::span<const TimelineStream> streams)
    : grouping_(grouping), streams_(streams), parts_(grouping.secondary()) {
  // Threads at the end are the rows themselves.
  if (!parts_.empty() && parts_.back() == Part::kThreadId) parts_.pop_back();
  for (const TimelineStream& stream : streams) {
    gid_digits_ = std::max(gid_digits_, DigitsOf(stream.rank.worker_gid.value_or(0)));
    const StreamIdentity& identity = stream.description.identity;
    if (identity.has_core()) core_digits_ = std::max(core_digits_, DigitsOf(identity.nc_idx));
  }
  // The first pass finds which places in the tree have more than one core.
  absl::flat_hash_map<std::string, uint32_t> first_core;
  absl::flat_hash_set<std::string> has_several;
  for (uint32_t i = 0; i < streams.size(); ++i) {
    const StreamIdentity& identity = streams[i].description.identity;
    if (!identity.has_core()) continue;
    const auto [known, is_new] = first_core.try_emplace(CorePath(i), identity.nc_idx);
    if (known->second != identity.nc_idx) has_several.insert(known->first);
  }
  has_core_level_.resize(streams.size());
  for (uint32_t i = 0; i < streams.size(); ++i) {
    has_core_level_[i] = has_several.contains(CorePath(i));
  }
}

// Where in the tree the level of a stream's cores is, threads aside.
std::string GroupLevels::CorePath(uint32_t stream) const {
  assert(stream < streams_.size());
  std::string path = grouping_.ProcessLabel(streams_[stream], 0);
  for (const Part part : parts_) {
    if (part == Part::kLncIdx) break;
    if (part != Part::kThreadId) path += "\n" + NameOf(part, streams_[stream], 0);
  }
  return path;
}

// Returns the name of one level, or an empty text if the part is not known for the stream.
std::string GroupLevels::NameOf(Part part, const TimelineStream& stream, uint64_t thread_id) const {
  const StreamIdentity& identity = stream.description.identity;
  const std::string text = Grouping::Text(part, stream, thread_id);
  if (text.empty()) return text;
  if (part == Part::kLncIdx) return fmt::format("nc{:0{}}", identity.nc_idx, core_digits_);
  if (part != Part::kWorkerGid) return text;
  const std::string number = fmt::format("gid{}", stream.rank.worker_gid.value_or(0));
  // A disputed rank has a label of its own.
  if (!text.starts_with(number)) return "worker " + text;
  return fmt::format("worker gid{:0{}}{}", stream.rank.worker_gid.value_or(0), gid_digits_,
                     text.substr(number.size()));
}

std::vector<std::string> GroupLevels::Of(uint32_t stream, std::optional<uint64_t> thread_id) const {
  assert(stream < streams_.size() && has_core_level_.size() == streams_.size());
  std::vector<std::string> names;
  for (const Part part : parts_) {
    if (part == Part::kThreadId && !thread_id) break;
    if (part == Part::kLncIdx && !has_core_level_[stream]) continue;
    std::string name = NameOf(part, streams_[stream], thread_id.value_or(0));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace neurontrace
