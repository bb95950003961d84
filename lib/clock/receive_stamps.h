// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/clock/host_clocks.h"

namespace neurontrace {

// Asks the kernel to stamp the packets that `socket` receives (SO_TIMESTAMPING in software, see
// timestamping.rst of the Linux documentation). Fails with UNAVAILABLE if it does not; probes work
// without stamps, less exactly.
absl::Status EnableReceiveStamps(int socket);

// The size of a control buffer for one message of recvmsg(2).
inline constexpr size_t kReceiveControlBytes = 128;
// Returns the stamp of a message that recvmsg(2) filled, in ns of CLOCK_REALTIME; nullopt if it has
// none.
std::optional<uint64_t> ReceiveStampNs(const msghdr& message);

// Converts the kernel's receive stamps, which are of REALTIME, to raw, and so excludes the time
// until a program looks. A stamp is never converted to a time before the packet came, whatever is
// done to REALTIME meanwhile; where that cannot be known, the result is the moment of looking. One
// thread.
class ReceiveStamps {
 public:
  // `clocks` must outlive this.
  explicit ReceiveStamps(const HostClocks& clocks) : clocks_(clocks) {}

  // Called once for all packets that were received together, after they were; then OnRaw for each
  // of them.
  void Poll();
  // Returns the time of arrival in ns of raw. Without a stamp it is the time of the last Look.
  uint64_t OnRaw(std::optional<uint64_t> stamp_realtime_ns);

  // Returns how many times OnRaw returned the moment of looking.
  uint64_t without_kernel() const { return without_kernel_; }

 private:
  const HostClocks& clocks_;
  // The snapshots of the last two looks: stamps of packets lie between them.
  std::optional<ClockSnapshot> before_;
  ClockSnapshot now_;
  bool steady_ = false;  // REALTIME went from before_ to now_ as it was steered
  uint64_t without_kernel_ = 0;
};

}  // namespace neurontrace
