// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Maps raw nanoseconds of one clock to nanoseconds of the reference clock, piece by piece linearly.
// The map never runs backwards: of two raw times the later never maps to the earlier reference
// time. A value, constant after construction: any thread may read it.
class ClockMap {
 public:
  // Holds from raw_begin_ns to the next piece (the first also before its begin, the last for ever):
  //   reference = reference_begin_ns + (raw - raw_begin_ns) * (1 + rate / 2^40)
  struct Piece {
    uint64_t raw_begin_ns = 0;
    uint64_t reference_begin_ns = 0;
    int64_t rate = 0;                             // 1 ppm is about 1,099,512
    std::optional<uint64_t> error_bound_ns = {};  // nullopt: not known
  };
  static constexpr int kRateBits = 40;
  // A clock that stands still, to one that runs twice as fast; within it no product overflows.
  static constexpr int64_t kRateMax = int64_t{1} << kRateBits;

  // The identity, with an unknown bound.
  ClockMap();
  // INVALID_ARGUMENT for no piece, a rate beyond kRateMax, pieces that are not in ascending order
  // of raw time, or a map that would step backwards from one piece to the next.
  static absl::StatusOr<ClockMap> FromPieces(std::vector<Piece> pieces);

  bool is_identity() const { return is_identity_; }
  std::span<const Piece> pieces() const { return pieces_; }
  uint64_t ToReference(uint64_t raw_ns) const { return Apply(PieceFor(raw_ns), raw_ns); }
  // The smallest raw time that maps to `reference_ns` or later.
  uint64_t ToRaw(uint64_t reference_ns) const;
  // How far ToReference(raw_ns) can be from the truth.
  std::optional<uint64_t> ErrorBoundNs(uint64_t raw_ns) const {
    return PieceFor(raw_ns).error_bound_ns;
  }

 private:
  friend class ClockMapCursor;
  // Saturates instead of wrapping at either end of the scale.
  static uint64_t Apply(const Piece& piece, uint64_t raw_ns);
  const Piece& PieceFor(uint64_t raw_ns) const { return pieces_[PieceIndex(raw_ns)]; }
  size_t PieceIndex(uint64_t raw_ns) const;

  std::vector<Piece> pieces_;
  bool is_identity_ = true;
};

// Maps times that come roughly in ascending order: remembers the piece at hand, so that an event
// costs no search. Refers to the map, which must outlive it. One thread at a time.
class ClockMapCursor {
 public:
  explicit ClockMapCursor(const ClockMap& map) : map_(&map) {}

  uint64_t ToReference(uint64_t raw_ns) {
    const uint64_t elapsed = raw_ns - plain_begin_;
    if (elapsed >= plain_length_) [[unlikely]]
      return ToReferenceBeyond(raw_ns);
    return reference_begin_ + elapsed +
           static_cast<uint64_t>((__int128{elapsed} * rate_) >> ClockMap::kRateBits);
  }
  std::optional<uint64_t> ErrorBoundNs(uint64_t raw_ns) {
    if (raw_ns < begin_ || raw_ns >= end_) [[unlikely]]
      Seek(raw_ns);
    return map_->pieces_[piece_].error_bound_ns;
  }

 private:
  void Seek(uint64_t raw_ns);
  uint64_t ToReferenceBeyond(uint64_t raw_ns);

  const ClockMap* map_;
  size_t piece_ = 0;
  uint64_t begin_ = 1;  // of the piece at hand; empty at first
  uint64_t end_ = 0;
  // Of it, what lies after its own begin and far from the end of the scale: it needs no saturation.
  uint64_t plain_begin_ = 0;
  uint64_t plain_length_ = 0;
  uint64_t reference_begin_ = 0;
  int64_t rate_ = 0;
};

// A device core, as the events of one worker's stream name it.
struct DeviceCore {
  uint32_t nc_idx = 0;                    // the stream's: the logical core
  std::optional<uint64_t> physical = {};  // device_core_idx; nullopt: they name none
  friend auto operator<=>(const DeviceCore&, const DeviceCore&) = default;
};

// Where an event stood in its core's ring: its nc_local_id, and which execution it was of.
struct DevicePlace {
  std::optional<uint64_t> sequence = {};
  std::optional<uint64_t> exec_id = {};
};

// A core's counter to its host's REALTIME, while it ran on without starting again and nobody set
// either. What it was made of lies between these, ends included.
struct DeviceMapPart {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t first_exec_id = 0;
  uint64_t last_exec_id = 0;
  ClockMap map;
};

// Ascending in sequence. As a counter may say the same time twice, an event's place tells which
// part holds. No part: nothing is known of that core.
struct DeviceMap {
  std::vector<DeviceMapPart> parts;

  // nullptr: none, or it is not known which: of an event between two parts. Before the first and
  // behind the last these do. Without a sequence: if there is but one.
  const DeviceMapPart* For(const DevicePlace& place) const;
};

// The clocks of a capture: a map for each clock that has a model, the identity for every other.
// One thread fills it, then any thread may read it.
class ClockMaps {
 public:
  struct Device {
    std::optional<uint64_t> physical;
    DeviceMap map;
  };

  void Set(const WorkerIdentity& host, ClockDomain domain, ClockMap map);
  // The map of this clock on the machine (and its boot) that the worker runs on.
  const ClockMap& For(const WorkerIdentity& host, ClockDomain domain) const;

  // A device's clock, for what it stamped while this worker had it: from its time to the host's
  // REALTIME, whose map leads on to the reference. To be set also for a core of which nothing is
  // known, so that nobody takes an event of its for another core's.
  void SetDevice(const WorkerIdentity& worker, const DeviceCore& core, DeviceMap map);
  // The physical cores of a logical one, in the order in which they were set.
  std::span<const Device> Devices(const WorkerIdentity& worker, uint32_t nc_idx) const;
  bool has_devices() const { return !devices_.empty(); }

 private:
  struct Key {
    std::string instance_id;
    std::string boot_id;
    ClockDomain domain = ClockDomain::kUnspecified;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.instance_id, key.boot_id, key.domain);
    }
  };
  static Key KeyOf(const WorkerIdentity& host, ClockDomain domain);

  absl::flat_hash_map<Key, ClockMap> maps_;
  absl::flat_hash_map<std::pair<WorkerIdentity, uint32_t>, std::vector<Device>> devices_;
  ClockMap identity_;
};

// A stretch of the reference, both ends included.
struct ReferenceWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = ~uint64_t{0};
};

// How well a clock is known from one reference time to another; kNoBound: not at all.
struct ClockBound {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bound_ns = 0;
  friend bool operator==(const ClockBound&, const ClockBound&) = default;
};

// The bounds of a map everywhere in a window, in order and without a gap. Pure.
std::vector<ClockBound> BoundsIn(const ClockMap& map, const ReferenceWindow& window);

}  // namespace neurontrace
