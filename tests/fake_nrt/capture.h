// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <optional>

#include "tests/fake_nrt/core_ring.h"
#include "tests/fake_nrt/fetch_buffer.h"

namespace neurontrace {

// No process has more logical cores than this.
inline constexpr uint32_t kCoresMax = 256;

// The cores of the simulated instance (a trn2.48xlarge: 128 physical ones) as this process sees
// them.
struct Topology {
  uint32_t physical_per_logical = 2;
  uint32_t total = 64;    // logical cores of the instance
  uint32_t first = 0;     // instance-wide index of the process's logical core 0
  uint32_t visible = 64;  // logical cores of the process

  // Reads NEURON_RT_VIRTUAL_CORE_SIZE (or NEURON_LOGICAL_NC_CONFIG), NEURON_RT_VISIBLE_CORES and
  // NEURON_RT_NUM_CORES. Nothing when they are out of range or contradict what the runtime allows
  // (the visible cores have to increase). In a list with holes the simulated physical cores are
  // numbered from the lowest on, as if there were none.
  static std::optional<Topology> FromEnvironment();
};

// What nrt_sys_trace_config_* and nrt_inspect_config_* set.
struct CaptureSettings {
  uint64_t max_events_per_nc = 1 << 20;
  std::bitset<kCoresMax> cores = std::bitset<kCoresMax>().set();
  EventTypeSet types = EventTypeSet().set();
};

// What nrt_sys_trace_fetch_options_* set.
struct FetchBounds {
  uint64_t max_events_per_nc = UINT64_MAX;
  std::optional<uint64_t> nc_idx;
};

enum class CaptureOwner { kNone, kSysTrace, kInspect };

// The one capture that a process can have, whoever started it, with the rings of all its cores. Any
// thread may call anything; fetches take turns.
class Capture {
 public:
  using GlobalIds = std::array<std::atomic<int32_t>, kCoresMax>;

  // False when a capture runs already, or without memory.
  bool Start(CaptureOwner owner, const CaptureSettings& settings, uint32_t cores);
  // Frees the rings with what is in them; returns who had owned the capture.
  CaptureOwner Stop();
  CaptureOwner owner() const { return owner_.load(); }

  // Writes the document of what the bounds allow, and takes it out of the rings.
  bool Fetch(const FetchBounds& bounds, uint32_t cores, const GlobalIds& gids, FetchBuffer& out);
  // Bytes to expect of that document.
  size_t ExpectBytes(const FetchBounds& bounds, uint32_t cores) const;

  CoreRing& ring(uint32_t nc_idx) { return rings_[nc_idx]; }
  RingTotals totals() const;

 private:
  // Says in the file of FAKE_NRT_CAPTURE_LOG the outcome of each core's events.
  void Log() const;

  std::mutex change_mutex_;  // of Start and Stop
  std::mutex fetch_mutex_;
  std::atomic<CaptureOwner> owner_{CaptureOwner::kNone};
  uint64_t captures_ = 0;            // guarded by change_mutex_
  std::bitset<kCoresMax> captured_;  // cores of the running capture; guarded by change_mutex_
  std::array<CoreRing, kCoresMax> rings_;
};

}  // namespace neurontrace
