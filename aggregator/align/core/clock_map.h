// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

// The cursor is here because it is another way to read a map, and reads the map's pieces.
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
