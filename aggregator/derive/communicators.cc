// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/communicators.h"

#include <algorithm>

namespace neurontrace {

// Determines the job of each stream once; events only add their ids.
CommunicatorTable::CommunicatorTable(std::span<const TimelineStream> streams,
                                     CommunicatorFacts facts, size_t memberships_max)
    : streams_(streams), memberships_max_(memberships_max) {
  absl::flat_hash_map<std::pair<std::string, int64_t>, uint32_t> numbers;
  for (size_t i = 0; i < streams.size(); ++i) {
    // Without evidence all such streams share one job: the world size 0 distinguishes nothing.
    const RankEvidence* rank = BestEvidence(streams[i].description.evidence);
    const std::pair job(i < facts.root_comm_ids.size() ? facts.root_comm_ids[i] : std::string(),
                        rank == nullptr ? 0 : rank->world_size);
    const auto [known, is_new] = numbers.try_emplace(job, static_cast<uint32_t>(jobs_.size()));
    if (is_new) jobs_.push_back(job);
    job_of_.push_back(known->second);
  }
  latest_.resize(streams.size());
}

// Every event may be the one that contradicts. Beyond kRanksMax values only the rank of the stream
// can.
bool CommunicatorTable::NamesGroup(uint32_t stream, uint64_t gid) {
  if (gid_names_group_) return true;
  const auto& rank = streams_[stream].rank.worker_gid;
  // One contradiction anywhere decides for the whole capture: gid is taken to mean the same on all
  // cores.
  if (rank && static_cast<uint64_t>(*rank) != gid) gid_names_group_ = true;
  if (stream_of_gid_.size() < kRanksMax) {
    if (stream_of_gid_.try_emplace(gid, stream).first->second != stream) gid_names_group_ = true;
    if (gid_of_stream_.try_emplace(stream, gid).first->second != gid) gid_names_group_ = true;
  }
  return gid_names_group_;
}

// The cache by stream answers nearly every call.
uint32_t CommunicatorTable::Find(const TimelineRecord& record, const ShapeFields& fields) {
  Reported ids{.gid = StartNumber(record, fields, DerivedField::kGid).value_or(kNone),
               .cc_stream = StartNumber(record, fields, DerivedField::kCcStream).value_or(kNone),
               .gid_names_group = gid_names_group_};
  Latest& latest = latest_[record.stream];
  if (latest.is_set && latest.ids == ids) return latest.communicator;
  const uint32_t communicator = FindOther(record.stream, ids);
  // At the limit nothing is cached, so that each event beyond it is counted.
  latest.is_set = communicators_.size() < kCommunicatorsMax;
  // FindOther may have learned that gid is a group: the cached answer is that of the new state.
  ids.gid_names_group = gid_names_group_;
  latest.ids = ids;
  latest.communicator = communicator;
  return communicator;
}

// The key contains gid only if it is the number of a group.
uint32_t CommunicatorTable::FindOther(uint32_t stream, const Reported& ids) {
  const bool is_group = ids.gid != kNone && NamesGroup(stream, ids.gid);
  const uint32_t job = job_of_[stream];
  const Key key(job, is_group, is_group ? ids.gid : kNone, ids.cc_stream);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  if (communicators_.size() >= kCommunicatorsMax) {
    ++overflow_;
    return kCommunicatorsMax - 1;
  }
  const auto number = static_cast<uint32_t>(communicators_.size());
  numbers_.emplace(key, number);
  communicators_.push_back(
      {.root_comm_id = jobs_[job].first,
       .world_size = jobs_[job].second,
       .group = is_group ? std::optional(ids.gid) : std::nullopt,
       .cc_stream = ids.cc_stream == kNone ? std::nullopt : std::optional(ids.cc_stream)});
  return number;
}

// Streams and `since` stay sorted and parallel. `since` may only decrease: a late part can be of an
// older collective.
void CommunicatorTable::AddMember(uint32_t communicator, uint32_t stream, uint64_t collective) {
  Latest& latest = latest_[stream];
  // Nearly every call ends here.
  if (latest.member_of == communicator && latest.since <= collective) return;
  Communicator& about = communicators_[communicator];
  const auto at = std::lower_bound(about.streams.begin(), about.streams.end(), stream);
  const auto since = about.since.begin() + (at - about.streams.begin());
  if (at == about.streams.end() || *at != stream) {
    // Never absent rather than wrongly absent: a core that is not recorded as a member is not
    // missed.
    if (memberships_ >= memberships_max_) {
      ++not_members_;
      latest.since = 0;
    } else {
      ++memberships_;
      latest.since = *about.since.insert(since, collective);
      about.streams.insert(at, stream);
    }
  } else {
    *since = std::min(*since, collective);
    latest.since = *since;
  }
  latest.member_of = communicator;
}

}  // namespace neurontrace
