// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// Identifies a capture: a ULID (48 bits of milliseconds since the epoch, 80 random bits;
// github.com/ulid/spec). Ids sort by time, need no coordination, and do not collide. A plain value.
class CaptureId {
 public:
  static constexpr size_t kBytes = 16;
  static constexpr size_t kTextLength = 26;

  CaptureId() = default;  // all zero: "no capture"
  // Returns a new id. `random` must be unpredictable where ids must not be guessed.
  static CaptureId Make(const Clock& clock, Random& random);
  // Parses 26 characters of Crockford's base 32 in either case. Fails with INVALID_ARGUMENT for any
  // other text.
  static absl::StatusOr<CaptureId> Parse(std::string_view text);
  // Returns the id of 16 bytes as they are in messages and keys. Fails with INVALID_ARGUMENT for
  // any other size.
  static absl::StatusOr<CaptureId> FromBytes(std::string_view bytes);

  // Returns 26 upper-case characters, which Parse accepts.
  std::string ToString() const;
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  bool empty() const { return bytes_ == std::array<uint8_t, kBytes>{}; }
  // Returns CLOCK_REALTIME of the aggregator when it made the id, in ns with the precision of a
  // millisecond.
  uint64_t CreatedRealtimeNs() const;

  friend auto operator<=>(const CaptureId&, const CaptureId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const CaptureId& id) {
    return H::combine(std::move(h), id.bytes_);
  }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};

// One traced process. Unique over machines, reboots and reuse of process ids. Text from outside is
// cleaned before it gets here.
struct WorkerIdentity {
  std::string instance_id;
  std::string boot_id;
  uint32_t pid = 0;
  uint64_t start_time_ticks = 0;  // /proc/PID/stat, field 22
  std::string container_id;       // empty outside containers

  friend auto operator<=>(const WorkerIdentity&, const WorkerIdentity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const WorkerIdentity& w) {
    return H::combine(std::move(h), w.instance_id, w.boot_id, w.pid, w.start_time_ticks,
                      w.container_id);
  }
};

// Values are on the wire: never change one. They equal those of neurontrace.v1.StreamKind.
enum class StreamKind : uint8_t {
  kUnspecified = 0,
  kNeuronCore = 1,
  kFramework = 2,
  kHost = 3,
  kAnnotation = 4,  // what one process gives to NVTX
};

// Returns whether events of such a stream have the form of a framework's trace: their event type is
// a category, and their name an attribute.
constexpr bool HasFrameworkEvents(StreamKind kind) {
  return kind == StreamKind::kFramework || kind == StreamKind::kAnnotation;
}

// The events of one core (or framework file, or host sampler, or process that annotates) of one
// worker during one capture. It is compared with what peers send back, so text from outside goes
// through CleanText (lib/base/clean_text.h) before it gets here.
struct StreamIdentity {
  std::string agent_id;
  WorkerIdentity worker;
  StreamKind kind = StreamKind::kUnspecified;
  uint32_t nc_idx = 0;  // limits::kNoNcIdx where there is none
  std::string name;     // file name of a framework trace; "annotations"

  // Returns false also for the stream of a worker's events without a core.
  bool has_core() const { return kind == StreamKind::kNeuronCore && nc_idx != limits::kNoNcIdx; }

  friend auto operator<=>(const StreamIdentity&, const StreamIdentity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const StreamIdentity& s) {
    return H::combine(std::move(h), s.agent_id, s.worker, s.kind, s.nc_idx, s.name);
  }
};

// Returns text for people: "i-0abc pid 4711 nc 3", "i-0abc worker0.pt.trace.json", "i-0abc host".
std::string ToString(const StreamIdentity& stream);
std::string ToString(const WorkerIdentity& worker);

}  // namespace neurontrace
