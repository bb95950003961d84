// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "lib/clock/host_clocks.h"

namespace neurontrace {

// Has the kernel stamp what `socket` receives (SO_TIMESTAMPING, in software). UNAVAILABLE where it
// does not.
absl::Status EnableReceiveStamps(int socket);

// The stamp of a message that recvmsg(2) gave, by CLOCK_REALTIME; nullopt where there is none. The
// control buffer of one message is kReceiveControlBytes.
inline constexpr size_t kReceiveControlBytes = 128;
std::optional<uint64_t> ReceiveStampNs(const msghdr& message);

// Puts the kernel's receive stamps, which are of REALTIME, onto raw: without the time that passes
// until a program looks. A stamp is never put earlier than the packet came, whatever is done to
// REALTIME meanwhile; where that cannot be known, it is the moment of looking. One thread.
class ReceiveStamps {
 public:
  explicit ReceiveStamps(const HostClocks& clocks) : clocks_(clocks) {}

  // Once for all that was received in one go, after it was; then OnRaw for each of these.
  void Look();
  uint64_t OnRaw(std::optional<uint64_t> stamp_realtime_ns);

  // Stamps that were put at the moment of looking.
  uint64_t without_kernel() const { return without_kernel_; }

 private:
  const HostClocks& clocks_;
  std::optional<ClockSnapshot> before_;
  ClockSnapshot now_;
  bool steady_ = false;  // REALTIME went from before_ to now_ as it was steered
  uint64_t without_kernel_ = 0;
};

}  // namespace neurontrace
