// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What is known of the workers' communicators besides the events. A plain value.
struct CommunicatorFacts {
  // By stream: NEURON_RT_ROOT_COMM_ID of its worker, the address of rank 0, or whatever else keeps
  // jobs apart. Empty, or shorter than the streams: not known.
  std::vector<std::string> root_comm_ids;
};

// A group of cores that take part in the same collectives, as far as can be told. A plain value.
struct Communicator {
  std::string root_comm_id;           // empty: not known
  int64_t world_size = 0;             // of the job; 0: not known
  std::optional<uint64_t> group;      // `gid` of its events, where that names a group
  std::optional<uint64_t> cc_stream;  // `stream_id` of its events
  std::vector<uint32_t> streams;      // that had a part in one of its collectives, in their order
  std::vector<uint64_t> since;        // the same: the number of the first one of each
};

// Tells communicators apart by all that is known: the job's root address, its world size, the
// stream of collectives on a core, and `gid` of the events where that names a group. Nothing public
// says what gid is. It is taken for the rank of the core that says so until it contradicts that:
// two cores say the same one, one core says two, or it is not the core's worker_gid. One thread at
// a time; the streams must outlive it.
class CommunicatorTable {
 public:
  // Further ones are taken for the last; `overflow` counts their events.
  static constexpr size_t kCommunicatorsMax = 65'536;
  static constexpr size_t kRanksMax = 65'536;  // gids kept until they are known to name groups
  // Streams of all communicators together. Further ones are not in them; `not_members` counts them.
  static constexpr size_t kMembershipsMax = 1'048'576;

  CommunicatorTable(std::span<const TimelineStream> streams, CommunicatorFacts facts,
                    size_t memberships_max = kMembershipsMax);

  // The communicator of a collective's event.
  uint32_t Find(const TimelineRecord& record, const ShapeFields& fields);
  // Says that a stream has a part in the communicator's collective of this number. Numbers ascend
  // with the starts of collectives.
  void AddMember(uint32_t communicator, uint32_t stream, uint64_t collective);

  std::span<const Communicator> all() const { return communicators_; }
  uint64_t overflow() const { return overflow_; }
  // How often a stream came to a communicator that had no room for it.
  uint64_t not_members() const { return not_members_; }

 private:
  // An id that is not there, or cannot be told from it.
  static constexpr uint64_t kNone = UINT64_MAX;
  // Job, gid (where groups), stream of collectives.
  using Key = std::tuple<uint32_t, bool, uint64_t, uint64_t>;

  // What an event says of its communicator. kNone: nothing.
  struct Said {
    uint64_t gid = kNone;
    uint64_t cc_stream = kNone;
    bool gid_names_group = false;
    friend bool operator==(const Said&, const Said&) = default;
  };
  // Of a stream's latest event.
  struct Latest {
    bool is_set = false;
    Said said;
    uint32_t communicator = 0;
    std::optional<uint32_t> member_of;  // a communicator that AddMember was told about
    uint64_t since = 0;                 // the number that it has there
  };

  bool NamesGroup(uint32_t stream, uint64_t gid);
  uint32_t FindOther(uint32_t stream, const Said& said);

  std::span<const TimelineStream> streams_;
  const size_t memberships_max_;
  std::vector<std::pair<std::string, int64_t>> jobs_;  // root address, world size
  std::vector<uint32_t> job_of_;                       // by stream
  bool gid_names_group_ = false;
  absl::flat_hash_map<uint64_t, uint32_t> stream_of_gid_;
  absl::flat_hash_map<uint32_t, uint64_t> gid_of_stream_;
  absl::flat_hash_map<Key, uint32_t> numbers_;
  std::vector<Communicator> communicators_;
  std::vector<Latest> latest_;  // by stream
  size_t memberships_ = 0;
  uint64_t overflow_ = 0;
  uint64_t not_members_ = 0;
};

}  // namespace neurontrace
