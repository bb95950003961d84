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
#include "aggregator/align/core/clock_map.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

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

}  // namespace neurontrace
