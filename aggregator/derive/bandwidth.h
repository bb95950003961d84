// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

enum class TransferDirection : uint8_t {
  kHostToDevice,  // dmem_buf_copyin
  kDeviceToHost,  // dmem_buf_copyout
};

// Bytes that one core moved in one direction in one bin of time. A plain value.
struct BandwidthSample {
  uint32_t stream = 0;
  TransferDirection direction = TransferDirection::kHostToDevice;
  uint64_t start_ns = 0;  // reference time, a multiple of the bin
  double bytes = 0;

  double BytesPerSecond(uint64_t bin_ns) const { return bytes * 1e9 / static_cast<double>(bin_ns); }
};

struct BandwidthCounts {
  uint64_t transfers = 0;
  uint64_t bytes = 0;         // of these; UINT64_MAX where it is more than that
  uint64_t without_size = 0;  // transfers that do not say their size: in no sample
  uint64_t open = 0;          // whose end or start is not known: the same
  uint64_t not_spread = 0;    // beyond a limit below: all bytes count in the bin of the start
};

// Spreads the bytes of each transfer evenly over its time, into bins of one length, and gives out
// what each core moved in each bin, in the order of time. After the last bin with a transfer comes
// one with 0 bytes, so that a line that is drawn through the samples ends. One thread at a time;
// the table must outlive it.
class Bandwidth {
 public:
  static constexpr uint64_t kBinNs = 1'000'000;
  static constexpr size_t kActiveMax = 65'536;             // transfers under way at once
  static constexpr uint64_t kSpreadMaxNs = 1'000'000'000;  // length of one
  // Further bins of all transfers of one call of Take; and of all that are under way.
  static constexpr uint64_t kSpreadBinsMax = 262'144;

  explicit Bandwidth(ShapeFieldTable& fields, uint64_t bin_ns = kBinNs)
      : fields_(fields), bin_ns_(bin_ns == 0 ? kBinNs : bin_ns) {}

  uint64_t bin_ns() const { return bin_ns_; }
  // Takes a batch; appends the samples of the bins that are over by its end.
  void Take(const TimelineBatch& batch, std::vector<BandwidthSample>& done);
  void Finish(std::vector<BandwidthSample>& done);
  const BandwidthCounts& counts() const { return counts_; }
  // At most so many samples are not given out yet: of each lane one more when it comes to nothing.

 private:
  struct Active {
    uint32_t lane = 0;
    uint64_t end_ns = 0;
    double bytes_per_ns = 0;
  };
  // One lane in the bin at hand.
  struct LaneBin {
    double bytes = 0;
    bool is_listed = false;
  };

  // Core and direction: orders as (stream, direction) does.
  static uint32_t LaneOf(uint32_t stream, TransferDirection direction) {
    return 2 * stream + static_cast<uint32_t>(direction);
  }
  void Begin(const TimelineRecord& record, uint32_t lane, uint64_t bytes);
  void Add(uint32_t lane, double bytes);
  // Gives out every bin that ends at `time_ns` or before.
  void Advance(uint64_t time_ns, std::vector<BandwidthSample>& done);
  void GiveOutBin(std::vector<BandwidthSample>& done);
  uint64_t bin_end_ns() const { return bin_start_ns_ + bin_ns_; }

  ShapeFieldTable& fields_;
  const uint64_t bin_ns_;
  BandwidthCounts counts_;
  uint64_t bin_start_ns_ = 0;  // of the bin at hand
  std::vector<Active> active_;
  uint64_t bins_ahead_ = 0;       // of all in active_
  uint64_t bins_of_call_ = 0;     // that this call of Take has added to them
  std::vector<LaneBin> bins_;     // by lane
  std::vector<uint32_t> listed_;  // lanes with bytes in the bin at hand, or in the one before
};

}  // namespace neurontrace
