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

// What is known of the workers' communicators in addition to events. A plain value.
struct CommunicatorFacts {
  // By stream: NEURON_RT_ROOT_COMM_ID of its worker, which is the address of rank 0, or anything
  // else that distinguishes jobs. Empty, or shorter than the streams, where it is not known.
  std::vector<std::string> root_comm_ids;
};

// A group of cores that take part in the same collectives, as far as that can be determined. A
// plain value. Its index in CommunicatorTable::all() never changes.
struct Communicator {
  // Empty if it is not known.
  std::string root_comm_id;
  // Of the job; 0 if it is not known.
  int64_t world_size = 0;
  // `gid` of its events, if that is the number of a group.
  std::optional<uint64_t> group;
  std::optional<uint64_t> cc_stream;  // `stream_id` of its events
  // Streams that had a part in one of its collectives, ascending.
  std::vector<uint32_t> streams;
  // For each of these streams, the number of its first collective.
  std::vector<uint64_t> since;
};

// Distinguishes communicators by everything that is known: the job's root address, its world size,
// the stream of collectives on a core, and `gid` of the events if that is the number of a group. No
// public source defines gid. It is taken for the rank of the core that reports it until that is
// contradicted: two cores report the same one, one core reports two, or it differs from the core's
// worker_gid. Used by one thread at a time; the streams must outlive it.
class CommunicatorTable {
 public:
  // Further communicators are merged into the last one; `overflow` counts their events.
  static constexpr size_t kCommunicatorsMax = 65'536;
  // Values of gid that are kept to detect a contradiction.
  static constexpr size_t kRanksMax = 65'536;
  // Streams of all communicators together. Further ones are not recorded; `not_members` counts
  // them.
  static constexpr size_t kMembershipsMax = 1'048'576;

  CommunicatorTable(std::span<const TimelineStream> streams, CommunicatorFacts facts,
                    size_t memberships_max = kMembershipsMax);

  // Returns the communicator of a collective's event, as an index into all(). Counts an event as
  // overflow if the table is full. Takes one comparison if the stream repeats its ids.
  uint32_t Find(const TimelineRecord& record, const ShapeFields& fields);
  // Records that a stream has a part in the communicator's collective of this number. Numbers
  // ascend with the starts of collectives, but parts of older ones may come later. Takes constant
  // time for nearly all calls; a new member costs an insertion.
  void AddMember(uint32_t communicator, uint32_t stream, uint64_t collective);

  // Returns the communicators in the order in which they were found; valid until the next Find.
  std::span<const Communicator> all() const { return communicators_; }
  uint64_t overflow() const { return overflow_; }
  // Returns how often a stream did not fit into a communicator.
  uint64_t not_members() const { return not_members_; }

 private:
  // An absent id. An id of this value cannot be distinguished from it.
  static constexpr uint64_t kNone = UINT64_MAX;
  // The job, whether gid is the number of a group, gid (if so), and the stream of collectives.
  using Key = std::tuple<uint32_t, bool, uint64_t, uint64_t>;

  // The ids of an event that identify its communicator; kNone for absent ones.
  struct Reported {
    uint64_t gid = kNone;
    uint64_t cc_stream = kNone;
    bool gid_names_group = false;
    friend bool operator==(const Reported&, const Reported&) = default;
  };
  // The result for a stream's latest event: most events repeat its ids.
  struct Latest {
    bool is_set = false;
    Reported ids;
    uint32_t communicator = 0;
    // The communicator of the stream's latest AddMember, and its `since` there.
    std::optional<uint32_t> member_of;
    uint64_t since = 0;  // the number that it has there
  };

  // Returns whether gid is known to be the number of a group, taking this event into account.
  bool NamesGroup(uint32_t stream, uint64_t gid);
  // Looks the communicator up by all its ids, or adds it.
  uint32_t FindOther(uint32_t stream, const Reported& ids);

  std::span<const TimelineStream> streams_;
  const size_t memberships_max_;
  std::vector<std::pair<std::string, int64_t>> jobs_;  // root address, world size
  std::vector<uint32_t> job_of_;                       // by stream
  bool gid_names_group_ = false;
  // Used only until gid is known to be the number of a group.
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
