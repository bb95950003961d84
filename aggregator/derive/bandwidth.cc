// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/bandwidth.h"

#include <algorithm>

namespace neurontrace {

// The bins that end before a transfer begins are given out before it is added, so that samples are
// in order of time.
void Bandwidth::Take(const TimelineBatch& batch, std::vector<BandwidthSample>& done) {
  bins_of_call_ = 0;
  for (const TimelineRecord* record : batch.records) {
    if (record->kind != RecordKind::kSpan) continue;
    const ShapeFields& fields = fields_.Of(*record->shape);
    const bool is_in = fields.type == DerivedType::kCopyIn;
    if (!is_in && fields.type != DerivedType::kCopyOut) continue;
    // Without both ends nobody knows over which time the bytes are to be spread.
    if ((record->flags & (kOpen | kStartLost)) != 0) {
      ++counts_.open;
      continue;
    }
    const auto bytes = StartNumber(*record, fields, DerivedField::kSize);
    if (!bytes) {
      ++counts_.without_size;
      continue;
    }
    // The bin that contains the transfer's start is the current one from here on.
    Advance(record->start_ns, done);
    const auto direction =
        is_in ? TransferDirection::kHostToDevice : TransferDirection::kDeviceToHost;
    Begin(*record, LaneOf(record->stream, direction), *bytes);
  }
  Advance(batch.end_ns, done);
}

// Gives out bins until no lane has bytes; the last one of each lane has 0.
void Bandwidth::Finish(std::vector<BandwidthSample>& done) {
  while (!listed_.empty()) EmitBin(done);
}

// A lane is listed once per bin, so that a bin costs only the lanes that have bytes.
void Bandwidth::Add(uint32_t lane, double bytes) {
  if (lane >= bins_.size()) bins_.resize(size_t{lane} + 1);
  LaneBin& bin = bins_[lane];
  bin.bytes += bytes;
  if (bin.is_listed) return;
  bin.is_listed = true;
  listed_.push_back(lane);
}

// A transfer within one bin is added at once. A longer one is added bin by bin as time advances.
void Bandwidth::Begin(const TimelineRecord& record, uint32_t lane, uint64_t bytes) {
  ++counts_.transfers;
  counts_.bytes = counts_.bytes > UINT64_MAX - bytes ? UINT64_MAX : counts_.bytes + bytes;
  if (listed_.empty() && active_.empty()) {
    // Jumps over the time without transfers: it has no samples.
    bin_start_ns_ = record.start_ns - record.start_ns % bin_ns_;
  }
  // The usual case needs no division.
  if (record.end_ns <= bin_end_ns()) {
    Add(lane, static_cast<double>(bytes));
    return;
  }
  const uint64_t length_ns = record.end_ns - record.start_ns;
  const uint64_t further = (record.end_ns - 1 - bin_start_ns_) / bin_ns_;
  // A long transfer makes a sample for each bin that it spans: without these limits a few hostile
  // events could make millions.
  if (length_ns > kSpreadMaxNs || active_.size() >= kActiveMax ||
      further > kSpreadBinsMax - std::max(bins_ahead_, bins_of_call_)) {
    ++counts_.not_spread;
    Add(lane, static_cast<double>(bytes));
    return;
  }
  const double per_ns = static_cast<double>(bytes) / static_cast<double>(length_ns);
  Add(lane, per_ns * static_cast<double>(bin_end_ns() - record.start_ns));
  active_.push_back({lane, record.end_ns, per_ns});
  bins_ahead_ += further;
  bins_of_call_ += further;
}

// Stops as soon as no lane has bytes: times without transfers cost nothing.
void Bandwidth::Advance(uint64_t time_ns, std::vector<BandwidthSample>& done) {
  while (!listed_.empty() && bin_end_ns() <= time_ns) EmitBin(done);
}

// Continues with the next bin. A lane with bytes in this one stays listed for one more bin, in
// which it has 0 bytes unless further transfers add some.
void Bandwidth::EmitBin(std::vector<BandwidthSample>& done) {
  // Lanes are given out in order of stream and direction.
  std::sort(listed_.begin(), listed_.end());
  size_t kept = 0;
  for (const uint32_t lane : listed_) {
    LaneBin& bin = bins_[lane];
    done.push_back({lane / 2, static_cast<TransferDirection>(lane % 2), bin_start_ns_, bin.bytes});
    bin.is_listed = bin.bytes > 0;
    bin.bytes = 0;
    if (bin.is_listed) listed_[kept++] = lane;
  }
  listed_.resize(kept);
  bin_start_ns_ += bin_ns_;
  // The transfers that are under way have their share in the bin that begins.
  for (const Active& active : active_) {
    const uint64_t covered_ns = std::min(active.end_ns, bin_end_ns()) - bin_start_ns_;
    Add(active.lane, active.bytes_per_ns * static_cast<double>(covered_ns));
  }
  bins_ahead_ -= active_.size();
  std::erase_if(active_, [this](const Active& a) { return a.end_ns <= bin_end_ns(); });
}

}  // namespace neurontrace
