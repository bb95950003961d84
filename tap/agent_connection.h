// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/un.h>

#include "tap/agent_protocol.h"
#include "tap/tap_clock.h"

// The tap's end of its socket to the agent. Its methods never wait: a missing, full, slow or
// hostile agent costs a bounded number of system calls. Connects again with growing pauses, which
// are longer for an agent that drops connections at once or sends malformed packets. All times are
// ns of CLOCK_MONOTONIC. One thread, without memory allocation.
namespace neurontrace::tap {

class AgentConnection {
 public:
  // The pause after a failed attempt: the first, and the longest, as each is twice the last.
  static constexpr uint64_t kRetryFirstNs = 100 * kNsPerMs;
  static constexpr uint64_t kRetryMaxNs = 5 * kNsPerSecond;
  // A connection that lasted this long was a good one: the next attempt follows quickly.
  static constexpr uint64_t kGoodConnectionNs = 5 * kNsPerSecond;
  // A token bucket for commands: this many at once, then one for each period. Agents send a few for
  // each capture.
  static constexpr uint32_t kCommandBurst = 64;
  static constexpr uint64_t kCommandPeriodNs = kNsPerSecond / 8;
  // Answers that wait for the socket. An agent that lets more pile up is disconnected.
  static constexpr uint32_t kPendingMax = 16;

  // Sets the agent's socket; a path that does not fit an address is never connected to.
  void SetPath(const char* path);

  // Connects if the pause is over. Returns true if it made a connection.
  bool ConnectIfDue(uint64_t now_ns);
  // Sends the first message with `memfd` and a new wake descriptor. Drops the connection if that
  // fails.
  void SendHello(const TapHello& hello, int memfd, uint64_t now_ns);

  // Receives one packet and returns its size, which exceeds `capacity` if it was cut off; 0 if
  // there is none; -1 if the connection has ended.
  long Receive(uint8_t* packet, size_t capacity, uint64_t now_ns);
  // Returns whether one more command is within the rate that an agent may send, and counts it.
  bool TakeCommandToken(uint64_t now_ns);

  // Queues an answer and sends as much as the socket accepts. `detail` is cut at its limit.
  void SendStatus(const TapStatus& status, const char* detail, uint64_t now_ns);
  // Sends waiting answers as far as the socket accepts them. Drops the connection if it has failed.
  void Flush(uint64_t now_ns);
  // Makes the agent's wake descriptor readable.
  void SendWake();

  // Ends the connection. After `misbehaved` the next attempt is as late as possible.
  void Drop(uint64_t now_ns, bool misbehaved);

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Returns whether answers wait, so that the caller polls for POLLOUT.
  bool WantsToSend() const { return pending_count_ > 0; }
  // Returns when ConnectIfDue should be called next, or kNeverNs.
  uint64_t RetryAtNs() const { return connected() || !usable_ ? kNeverNs : retry_at_ns_; }
  // Returns when the last connection ended; 0 if there was none. Meaningless while connected.
  uint64_t disconnected_since_ns() const { return disconnected_since_ns_; }

  // Called in a forked child: closes the descriptors inherited from the parent.
  void CloseDescriptors();

 private:
  // An answer that has not been sent.
  struct Pending {
    TapStatus status;
    char detail[kTapStatusDetailBytesMax];
  };

  int fd_ = -1;          // the socket; -1: not connected
  int wake_fd_ = -1;     // the tap's end of the wake descriptor
  bool usable_ = false;  // address_ holds a path
  sockaddr_un address_ = {};
  uint64_t retry_at_ns_ = 0;
  uint64_t retry_pause_ns_ = kRetryFirstNs;
  uint64_t connected_since_ns_ = 0;
  uint64_t disconnected_since_ns_ = 0;
  uint32_t tokens_ = kCommandBurst;  // commands that are permitted now
  uint64_t tokens_at_ns_ = 0;
  // A queue in a ring buffer, as the tap must not allocate memory in a worker at the agent's wish.
  uint32_t pending_first_ = 0;
  uint32_t pending_count_ = 0;
  Pending pending_[kPendingMax] = {};
};

}  // namespace neurontrace::tap
