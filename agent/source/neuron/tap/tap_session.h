// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/source/neuron/tap/peer_descriptors.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/trace/ids.h"
#include "tap/agent_protocol.h"

namespace neurontrace {

// What a tap says of itself when it connects, checked for form but not for truth.
struct TapGreeting {
  uint32_t claimed_pid = 0;
  uint64_t process_start_ticks = 0;
  TapState state = TapState::kNotInitialised;
  CaptureId capture_id;  // wanted or running; empty: none
  std::string tap_version;
  PeerFd buffer;
  PeerFd wake;
};

// A tap's answer to a command, or word of a change of state.
struct TapReport {
  TapState state = TapState::kNotInitialised;
  TapResult result = TapResult::kNone;
  std::optional<TapMessageType> command;
  int32_t nrt_status = 0;
  CaptureId capture_id;
  std::string detail;
};

// What a START asks for.
struct TapStartOrder {
  CaptureId capture_id;
  uint64_t events_per_core = 0;
  uint64_t core_bitmap[4] = {};
  TapEventRule rule = TapEventRule::kAll;
  std::vector<std::string> names;
  // Only for a tap of protocol 2; one before begins at once, and fetches.
  bool holds = false;
  uint64_t begin_at_monotonic_ns = 0;  // 0: at once
};

// One tap's connection: the messages of tap/agent_protocol.h, each checked before anything is done
// with it. On the agent's sequence.
class TapSession {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // Anything but OK ends the connection, with OnClosed.
    virtual absl::Status OnGreeting(TapSession& session, TapGreeting greeting) = 0;
    virtual void OnReport(TapSession& session, const TapReport& report) = 0;
    // The connection is over; OK when the tap hung up, else what was wrong with it. The session's
    // last call, in which it may be destroyed.
    virtual void OnClosed(TapSession& session, const absl::Status& why) = 0;
  };

  // `socket` is connected and does not block. All that is referred to outlives the session.
  TapSession(PeerFd socket, PeerCloser& closer, TaskRunner& runner, const Clock& clock,
             Listener& listener);
  ~TapSession();
  TapSession(const TapSession&) = delete;
  TapSession& operator=(const TapSession&) = delete;

  // The user who connected, as the kernel says; nothing where it does not.
  static std::optional<uid_t> ReadPeerUser(int socket);

  // Who connected, as the kernel says; pid 0 for a process in a namespace this one cannot see.
  const ucred& peer() const { return peer_; }
  bool greeted() const { return greeted_; }
  uint64_t connected_ns() const { return connected_ns_; }  // monotonic

  // UNAVAILABLE when the tap does not read, or is gone; OnClosed follows for the latter.
  absl::Status SendStart(const TapStartOrder& order);
  // At `stop_at_monotonic_ns`, or, by a tap of protocol 1 and with 0, at once.
  absl::Status SendStop(const CaptureId& capture_id, uint64_t stop_at_monotonic_ns = 0);
  // UNIMPLEMENTED by a tap of protocol 1.
  absl::Status SendCollect(const CaptureId& capture_id, const CaptureId& recorder_id,
                           uint64_t at_monotonic_ns);
  // Of the commands that are sent.

 private:
  void OnReadable();
  absl::StatusOr<bool> ReadMessage();
  absl::Status TakeMessage(const char* data, size_t size, std::vector<PeerFd> descriptors);
  absl::Status TakeGreeting(const char* data, size_t size, std::vector<PeerFd> descriptors);
  absl::Status TakeReport(const char* data, size_t size);
  bool TakeToken();
  absl::Status Send(const std::string& message);

  PeerFd socket_;
  PeerCloser& closer_;
  TaskRunner& runner_;
  const Clock& clock_;
  Listener& listener_;
  ucred peer_ = {};
  const uint64_t connected_ns_;

  bool greeted_ = false;
  uint32_t tokens_;
  uint64_t tokens_ns_;
};

}  // namespace neurontrace
