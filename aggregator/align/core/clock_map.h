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

// Maps raw nanoseconds of one clock to nanoseconds of the reference clock, linearly in each piece.
// Never runs backwards: a later raw time never maps to an earlier reference time. A value, constant
// after construction: any thread may read it.
class ClockMap {
 public:
  // Applies from raw_begin_ns to the next piece; the first also before its begin, the last for
  // ever:
  //   reference = reference_begin_ns + (raw - raw_begin_ns) * (1 + rate / 2^40)
  // The rate is a fixed-point fraction, so that mapping needs no floating point and gives equal
  // results on every machine.
  struct Piece {
    uint64_t raw_begin_ns = 0;
    uint64_t reference_begin_ns = 0;
    int64_t rate = 0;                             // 1 ppm is about 1,099,512
    std::optional<uint64_t> error_bound_ns = {};  // nullopt: unknown
  };
  static constexpr int kRateBits = 40;
  // From a clock that stands still to one that runs twice as fast. Within this no product
  // overflows.
  static constexpr int64_t kRateMax = int64_t{1} << kRateBits;

  // The identity, with an unknown bound.
  ClockMap();
  // Fails with INVALID_ARGUMENT for no piece, a rate beyond kRateMax, pieces that are not in
  // ascending order of raw time, or a step backwards from one piece to the next. The result is the
  // identity, by is_identity(), if its only piece changes nothing.
  static absl::StatusOr<ClockMap> FromPieces(std::vector<Piece> pieces);

  // Returns true for a clock without a model: then its times are used as they are and have no
  // bound.
  bool is_identity() const { return is_identity_; }
  std::span<const Piece> pieces() const { return pieces_; }
  // Takes a binary search over the pieces; ClockMapCursor is faster for a stream of events.
  // Saturates at both ends of the scale.
  uint64_t ToReference(uint64_t raw_ns) const { return Apply(PieceFor(raw_ns), raw_ns); }
  // Returns the smallest raw time that maps to `reference_ns` or later; a binary search. Returns
  // UINT64_MAX if no raw time does.
  uint64_t ToRaw(uint64_t reference_ns) const;
  // Returns how far ToReference(raw_ns) can be from the truth; nullopt if that is unknown.
  std::optional<uint64_t> ErrorBoundNs(uint64_t raw_ns) const {
    return PieceFor(raw_ns).error_bound_ns;
  }

 private:
  friend class ClockMapCursor;
  // Saturates at both ends of the scale instead of wrapping.
  static uint64_t Apply(const Piece& piece, uint64_t raw_ns);
  const Piece& PieceFor(uint64_t raw_ns) const { return pieces_[PieceIndex(raw_ns)]; }
  // Returns the last piece that begins at or before raw_ns, or 0.
  size_t PieceIndex(uint64_t raw_ns) const;

  std::vector<Piece> pieces_;
  bool is_identity_ = true;
};

// Maps times that arrive roughly in ascending order. Remembers the current piece, so that an event
// needs no search. Refers to the map, which must outlive it. One thread at a time.
class ClockMapCursor {
 public:
  // The first call of either function always searches: the current piece is empty until then.
  explicit ClockMapCursor(const ClockMap& map) : map_(&map) {}

  // Maps a time; in the common case with one subtraction, one comparison and one multiplication.
  uint64_t ToReference(uint64_t raw_ns) {
    const uint64_t elapsed = raw_ns - plain_begin_;
    if (elapsed >= plain_length_) [[unlikely]]
      return ToReferenceBeyond(raw_ns);
    return reference_begin_ + elapsed +
           static_cast<uint64_t>((__int128{elapsed} * rate_) >> ClockMap::kRateBits);
  }
  // Returns the same as ClockMap::ErrorBoundNs, without a search while the times stay within one
  // piece.
  std::optional<uint64_t> ErrorBoundNs(uint64_t raw_ns) {
    if (raw_ns < begin_ || raw_ns >= end_) [[unlikely]]
      Seek(raw_ns);
    return map_->pieces_[piece_].error_bound_ns;
  }

 private:
  // Makes the piece of raw_ns the current one.
  void Seek(uint64_t raw_ns);
  // Maps a time for which the short form could overflow, after a search if it is in another piece.
  uint64_t ToReferenceBeyond(uint64_t raw_ns);

  const ClockMap* map_;
  size_t piece_ = 0;
  uint64_t begin_ = 1;  // of the current piece; empty at first
  uint64_t end_ = 0;
  // The part of the piece after its own begin and far from the end of the scale, where no operation
  // can overflow. It is empty before the first search, so that the first time always takes the long
  // way.
  uint64_t plain_begin_ = 0;
  uint64_t plain_length_ = 0;
  uint64_t reference_begin_ = 0;
  int64_t rate_ = 0;
};

// A device core as named by the events of one worker's stream. One logical core may have several
// physical ones, each with its own counter.
struct DeviceCore {
  uint32_t nc_idx = 0;                    // of the stream: the logical core
  std::optional<uint64_t> physical = {};  // device_core_idx; nullopt: not named
  friend auto operator<=>(const DeviceCore&, const DeviceCore&) = default;
};

// The place of an event in its core's ring: its nc_local_id and its execution. Both may be missing:
// not every event type has them.
struct DevicePlace {
  std::optional<uint64_t> sequence = {};
  std::optional<uint64_t> exec_id = {};
};

// One part of a device's clock, between two restarts of its counter: the range of places that it
// covers, both ends included, and the map from the counter to the host's REALTIME.
struct DeviceMapPart {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t first_exec_id = 0;
  uint64_t last_exec_id = 0;
  ClockMap map;
};

// The parts in ascending order of sequence. After a restart a counter may show the same time twice,
// so the place of an event determines its part. Without parts nothing is known about that core.
struct DeviceMap {
  std::vector<DeviceMapPart> parts;

  // Returns the part for an event, or nullptr if there is none or it is unclear, as between two
  // parts. Before the first and after the last part, these apply. Without a sequence, returns the
  // only part.
  const DeviceMapPart* For(const DevicePlace& place) const;
};

// The clocks of a capture: a map for each clock with a model, the identity for every other. Filled
// by one thread; then any thread may read it.
class ClockMaps {
 public:
  struct Device {
    std::optional<uint64_t> physical;
    DeviceMap map;
  };

  // Replaces an earlier map of the same clock.
  void Set(const WorkerIdentity& host, ClockDomain domain, ClockMap map);
  // Returns the map of this clock on the machine, in its boot, that runs the worker. Returns the
  // identity for a clock that was never set. The reference is valid until the next Set.
  const ClockMap& For(const WorkerIdentity& host, ClockDomain domain) const;

  // Sets a device's clock for the timestamps that it made for this worker: from its counter to the
  // host's REALTIME, whose map leads to the reference. Also called for a core without any evidence,
  // so that none of its events is attributed to another core.
  void SetDevice(const WorkerIdentity& worker, const DeviceCore& core, DeviceMap map);
  // Returns the physical cores of a logical one, in the order in which they were set. The span is
  // empty for a core that was never set, and valid until the next SetDevice.
  std::span<const Device> Devices(const WorkerIdentity& worker, uint32_t nc_idx) const;
  bool has_devices() const { return !devices_.empty(); }

 private:
  // The clocks of a host are one per boot: after a reboot the raw clock starts again.
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

// An interval of reference time, both ends included. The default is all of it.
struct ReferenceWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = ~uint64_t{0};
};

// The bound of a clock from one reference time to another; kNoBound: unknown.
struct ClockBound {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bound_ns = 0;
  friend bool operator==(const ClockBound&, const ClockBound&) = default;
};

// Returns the bounds of a map throughout a window, in order and without gaps. Pure. Pieces without
// length are skipped: they are where REALTIME was set ahead.
std::vector<ClockBound> BoundsIn(const ClockMap& map, const ReferenceWindow& window);

}  // namespace neurontrace
