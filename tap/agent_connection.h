// SPDX-License-Identifier: Apache-2.0
// The tap's end of its socket to the agent. Nothing here ever waits: a missing, full, slow or
// hostile agent costs a bounded number of system calls. Connects again with growing pauses, longer
// ones for an agent that drops connections at once or sends nonsense. One thread.
#pragma once

#include <sys/un.h>

#include "tap/agent_protocol.h"
#include "tap/tap_clock.h"

namespace neurontrace::tap {

class AgentConnection {
 public:
  static constexpr uint64_t kRetryFirstNs = 100 * kNsPerMs;
  static constexpr uint64_t kRetryMaxNs = 5 * kNsPerSecond;
  // A connection that lasted this long was a good one: the next retry is quick again.
  static constexpr uint64_t kGoodConnectionNs = 5 * kNsPerSecond;
  static constexpr uint32_t kCommandBurst = 64;
  static constexpr uint64_t kCommandPeriodNs = kNsPerSecond / 8;  // one more command each
  static constexpr uint32_t kPendingMax = 16;

  // The agent's socket; a path that does not fit an address is never connected to.
  void SetPath(const char* path);

  // Connects if it is time to; true if a connection was made just now.
  bool ConnectIfDue(uint64_t now_ns);
  // The first message. Passes `memfd` and a fresh wake descriptor.
  void SendHello(const TapHello& hello, int memfd, uint64_t now_ns);

  // One packet: its size (which may exceed `capacity`: it was cut off), 0 for none, -1 when the
  // connection ended.
  long Receive(uint8_t* packet, size_t capacity, uint64_t now_ns);
  // Whether one more command is within the rate that an agent may send.
  bool TakeCommandToken(uint64_t now_ns);

  // Queues an answer and sends what can be sent; `detail` is cut at its limit.
  void SendStatus(const TapStatus& status, const char* detail, uint64_t now_ns);
  void Flush(uint64_t now_ns);
  // Makes the wake descriptor readable.
  void SendWake();

  // Ends the connection. `misbehaved`: the next attempt is as late as it gets.
  void Drop(uint64_t now_ns, bool misbehaved);

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  bool WantsToSend() const { return pending_count_ > 0; }
  uint64_t RetryAtNs() const { return connected() || !usable_ ? kNeverNs : retry_at_ns_; }
  uint64_t disconnected_since_ns() const { return disconnected_since_ns_; }

  // In a forked child: closes the parent's descriptors.
  void CloseDescriptors();

 private:
  struct Pending {
    TapStatus status;
    char detail[kTapStatusDetailBytesMax];
  };

  int fd_ = -1;
  int wake_fd_ = -1;
  bool usable_ = false;
  sockaddr_un address_ = {};
  uint64_t retry_at_ns_ = 0;
  uint64_t retry_pause_ns_ = kRetryFirstNs;
  uint64_t connected_since_ns_ = 0;
  uint64_t disconnected_since_ns_ = 0;
  uint32_t tokens_ = kCommandBurst;
  uint64_t tokens_at_ns_ = 0;
  uint32_t pending_first_ = 0;
  uint32_t pending_count_ = 0;
  Pending pending_[kPendingMax];
};

}  // namespace neurontrace::tap
