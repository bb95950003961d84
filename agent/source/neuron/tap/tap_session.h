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

// A tap's HELLO, checked for form but not for truth: everything in it is the tap's own claim.
struct TapGreeting {
  uint32_t claimed_pid = 0;
  uint64_t process_start_ticks = 0;
  TapState state = TapState::kNotInitialised;
  CaptureId capture_id;  // wanted or running; empty: none
  std::string tap_version;
  PeerFd buffer;
  PeerFd wake;
};

// A tap's answer to a command, or the report of a new state.
struct TapReport {
  TapState state = TapState::kNotInitialised;
  TapResult result = TapResult::kNone;
  std::optional<TapMessageType> command;
  int32_t nrt_status = 0;
  CaptureId capture_id;
  std::string detail;
};

// The parameters of a START.
struct TapStartOrder {
  CaptureId capture_id;
  uint64_t events_per_core = 0;
  uint64_t core_bitmap[4] = {};
  TapEventRule rule = TapEventRule::kAll;
  std::vector<std::string> names;
  // Keeps the events in the runtime's rings until a COLLECT, instead of fetching them.
  bool holds = false;
  uint64_t begin_at_monotonic_ns = 0;  // 0: at once
};

// One tap's connection: the messages of tap/agent_protocol.h, each checked before it has any
// effect. A tap that sends an invalid message, or too many, is disconnected. On the agent's
// sequence.
class TapSession {
 public:
  // Receives what the tap sends, on the agent's sequence.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Any status but OK ends the connection, with OnClosed.
    virtual absl::Status OnGreeting(TapSession& session, TapGreeting greeting) = 0;
    virtual void OnReport(TapSession& session, const TapReport& report) = 0;
    // The connection is over: OK when the tap closed it, otherwise what was wrong. This is the
    // session's last call, in which it may be destroyed.
    virtual void OnClosed(TapSession& session, const absl::Status& why) = 0;
  };

  // `socket` is connected and non-blocking. All references outlive the session.
  TapSession(PeerFd socket, PeerCloser& closer, TaskRunner& runner, const Clock& clock,
             Listener& listener);
  ~TapSession();
  TapSession(const TapSession&) = delete;
  TapSession& operator=(const TapSession&) = delete;

  // Returns the user who connected, by SO_PEERCRED; nothing if the kernel does not know.
  static std::optional<uid_t> ReadPeerUser(int socket);

  // The process that connected, by SO_PEERCRED; pid 0 for a process in a namespace that the agent
  // cannot see.
  const ucred& peer() const { return peer_; }
  bool greeted() const { return greeted_; }
  uint64_t connected_ns() const { return connected_ns_; }  // monotonic

  // Fails with UNAVAILABLE if the tap does not read or is gone; in the latter case OnClosed
  // follows.
  absl::Status SendStart(const TapStartOrder& order);
  // Stops the trace at `stop_at_monotonic_ns`; 0: at once.
  absl::Status SendStop(const CaptureId& capture_id, uint64_t stop_at_monotonic_ns = 0);
  // Has the tap fetch, for the snapshot `capture_id`, what its rings hold of the flight recorder
  // `recorder_id` at `at_monotonic_ns`.
  absl::Status SendCollect(const CaptureId& capture_id, const CaptureId& recorder_id,
                           uint64_t at_monotonic_ns);

 private:
  void OnReadable();
  // Reads and handles one message; returns false if there is none. Fails with UNAVAILABLE if the
  // tap has closed the connection, and with INVALID_ARGUMENT for an invalid message.
  absl::StatusOr<bool> ReadMessage();
  absl::Status TakeMessage(const char* data, size_t size, std::vector<PeerFd> descriptors);
  absl::Status TakeGreeting(const char* data, size_t size, std::vector<PeerFd> descriptors);
  absl::Status TakeReport(const char* data, size_t size);
  // Limits the rate of messages; returns false if there are too many.
  bool TakeToken();
  // Sends one packet without blocking.
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
