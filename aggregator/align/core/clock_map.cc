// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/core/wide.h"
#include "lib/base/status.h"

namespace neurontrace {

ClockMap::ClockMap() : pieces_(1) {}

absl::StatusOr<ClockMap> ClockMap::FromPieces(std::vector<Piece> pieces) {
  if (pieces.empty()) return InvalidArgument("clock map: it has no pieces");
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].rate > kRateMax || pieces[i].rate < -kRateMax) {
      return InvalidArgument("clock map: piece {}: rate {} is beyond {}", i, pieces[i].rate,
                             kRateMax);
    }
    if (i == 0) continue;
    if (pieces[i].raw_begin_ns <= pieces[i - 1].raw_begin_ns) {
      return InvalidArgument("clock map: piece {} does not begin after the previous one", i);
    }
    // The check is at the last raw time of the piece before: that is where it is highest.
    if (Apply(pieces[i - 1], pieces[i].raw_begin_ns - 1) > pieces[i].reference_begin_ns) {
      return InvalidArgument("clock map: piece {} steps backwards at raw {}", i,
                             pieces[i].raw_begin_ns);
    }
  }
  ClockMap map;
  map.pieces_ = std::move(pieces);
  const Piece& first = map.pieces_.front();
  map.is_identity_ =
      map.pieces_.size() == 1 && first.rate == 0 && first.raw_begin_ns == first.reference_begin_ns;
  return map;
}

// rate is at most 2^40 in magnitude and elapsed less than 2^64, so the product fits into 128 bits.
uint64_t ClockMap::Apply(const Piece& piece, uint64_t raw_ns) {
  const Wide elapsed = Wide{raw_ns} - Wide{piece.raw_begin_ns};
  // Arithmetic shift: rounds down, so that the map stays monotone.
  return Saturate(Wide{piece.reference_begin_ns} + elapsed +
                  ((elapsed * Wide{piece.rate}) >> kRateBits));
}

// Every time has a piece, as the first one also applies before its begin.
size_t ClockMap::PieceIndex(uint64_t raw_ns) const {
  assert(!pieces_.empty());
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), raw_ns,
                       [](uint64_t raw, const Piece& piece) { return raw < piece.raw_begin_ns; });
  return after == pieces_.begin() ? 0 : static_cast<size_t>(after - pieces_.begin()) - 1;
}

// Searches the whole scale instead of inverting the piece: it needs 64 steps and is exact where
// pieces round or stand still.
uint64_t ClockMap::ToRaw(uint64_t reference_ns) const {
  if (is_identity_) return reference_ns;
  uint64_t low = 0;
  uint64_t high = UINT64_MAX;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (ToReference(middle) >= reference_ns) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Requires a map with pieces, as every map has.
void ClockMapCursor::Seek(uint64_t raw_ns) {
  assert(map_ != nullptr);
  const auto& pieces = map_->pieces_;
  piece_ = map_->PieceIndex(raw_ns);
  begin_ = piece_ == 0 ? 0 : pieces[piece_].raw_begin_ns;
  end_ = piece_ + 1 == pieces.size() ? UINT64_MAX : pieces[piece_ + 1].raw_begin_ns;
  const ClockMap::Piece& piece = pieces[piece_];
  plain_begin_ = piece.raw_begin_ns;
  // Half of what is left of the scale: the rate adds less than the other half.
  plain_length_ = std::min(end_ > piece.raw_begin_ns ? end_ - piece.raw_begin_ns : 0,
                           (UINT64_MAX - piece.reference_begin_ns) / 2);
  reference_begin_ = piece.reference_begin_ns;
  rate_ = piece.rate;
  assert(raw_ns >= begin_ && raw_ns <= end_);
}

uint64_t ClockMapCursor::ToReferenceBeyond(uint64_t raw_ns) {
  if (raw_ns < begin_ || raw_ns >= end_) Seek(raw_ns);
  return ClockMap::Apply(map_->pieces_[piece_], raw_ns);
}

// Only the machine and its boot matter: all workers of one host share its clocks.
ClockMaps::Key ClockMaps::KeyOf(const WorkerIdentity& host, ClockDomain domain) {
  return {host.instance_id, host.boot_id, domain};
}

void ClockMaps::Set(const WorkerIdentity& host, ClockDomain domain, ClockMap map) {
  maps_.insert_or_assign(KeyOf(host, domain), std::move(map));
}

const ClockMap& ClockMaps::For(const WorkerIdentity& host, ClockDomain domain) const {
  const auto it = maps_.find(KeyOf(host, domain));
  return it == maps_.end() ? identity_ : it->second;
}

// Sequences decide first. Execution numbers decide where a late record or a gap between two parts
// leaves the sequence unclear, and only if they ascend across the restart.
const DeviceMapPart* DeviceMap::For(const DevicePlace& place) const {
  if (parts.size() <= 1) return parts.empty() ? nullptr : &parts.front();
  if (!place.sequence) return nullptr;
  const auto after = std::upper_bound(
      parts.begin(), parts.end(), *place.sequence,
      [](uint64_t sequence, const DeviceMapPart& part) { return sequence < part.first_sequence; });
  if (after == parts.begin()) return &parts.front();
  const auto begun = after - 1;
  // Execution numbers that restarted in between tell nothing.
  const auto ascend = [](const DeviceMapPart& a, const DeviceMapPart& b) {
    return a.last_exec_id < b.first_exec_id;
  };
  if (begun != parts.begin() && place.exec_id && ascend(*(begun - 1), *begun) &&
      *place.exec_id <= (begun - 1)->last_exec_id) {
    return &*(begun - 1);  // recorded late
  }
  if (after == parts.end() || *place.sequence <= begun->last_sequence) return &*begun;
  if (!place.exec_id || !ascend(*begun, *after)) return nullptr;
  if (*place.exec_id <= begun->last_exec_id) return &*begun;
  return *place.exec_id >= after->first_exec_id ? &*after : nullptr;
}

// A logical core has only a few physical ones, so a scan is enough.
void ClockMaps::SetDevice(const WorkerIdentity& worker, const DeviceCore& core, DeviceMap map) {
  std::vector<Device>& devices = devices_[{worker, core.nc_idx}];
  for (Device& device : devices) {
    if (device.physical != core.physical) continue;
    device.map = std::move(map);
    return;
  }
  devices.push_back({core.physical, std::move(map)});
}

std::span<const ClockMaps::Device> ClockMaps::Devices(const WorkerIdentity& worker,
                                                      uint32_t nc_idx) const {
  const auto it = devices_.find({worker, nc_idx});
  if (it == devices_.end()) return {};
  return it->second;
}

std::vector<ClockBound> BoundsIn(const ClockMap& map, const ReferenceWindow& window) {
  std::vector<ClockBound> bounds;
  const auto pieces = map.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    // The first piece also applies before its begin, and the last for ever.
    const uint64_t begin_ns = i == 0 ? 0 : pieces[i].reference_begin_ns;
    const bool is_last = i + 1 == pieces.size();
    const uint64_t end_ns = is_last ? UINT64_MAX : pieces[i + 1].reference_begin_ns;
    if (begin_ns > window.end_ns) break;
    // REALTIME was set ahead here: a range of timestamps that never occurred and took no time.
    const bool is_gap = !pieces[i].error_bound_ns && i > 0 && end_ns == begin_ns;
    if (is_gap) continue;
    // The next piece applies from where this one ends.
    if (!is_last && end_ns <= window.begin_ns) continue;
    bounds.push_back({std::max(begin_ns, window.begin_ns), std::min(end_ns, window.end_ns),
                      pieces[i].error_bound_ns.value_or(kNoBound)});
  }
  return bounds;
}

}  // namespace neurontrace
