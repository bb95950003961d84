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
  // From libneurontrace_annotate.so: the buffer is that of annotate/annotation_format.h, and state
  // and capture mean nothing.
  bool annotates = false;
  // The pid in the tap's own namespace, and field 22 of its /proc/self/stat.
  uint32_t claimed_pid = 0;
  uint64_t process_start_ticks = 0;
  TapState state = TapState::kNotInitialised;
  // The capture that the tap wants or runs; empty: none.
  CaptureId capture_id;
  std::string tap_version;
  // The memory file of the shared buffer, not examined yet.
  PeerFd buffer;
  // A packet socket, readable when something was written while the agent waited for it.
  PeerFd wake;
};

// A tap's answer to a command, or the report of a new state.
struct TapReport {
  TapState state = TapState::kNotInitialised;
  // kNone for a report of a new state.
  TapResult result = TapResult::kNone;
  // The command that is answered; nothing for a report of a new state.
  std::optional<TapMessageType> command;
  // Status of the last call of the runtime's trace functions that failed; 0: none.
  int32_t nrt_status = 0;
  CaptureId capture_id;
  std::string detail;
};

// The parameters of a START.
struct TapStartOrder {
  CaptureId capture_id;
  // The size of each core's ring in the runtime, in events.
  uint64_t events_per_core = 0;
  // Bit i of word i / 64 is core i; all zero: every core.
  uint64_t core_bitmap[4] = {};
  // How the runtime filters by `names`, which kAll ignores.
  TapEventRule rule = TapEventRule::kAll;
  std::vector<std::string> names;
  // Keeps the events in the runtime's rings until a COLLECT, instead of fetching them.
  bool holds = false;
  // When it begins, by CLOCK_MONOTONIC; 0: at once.
  uint64_t begin_at_monotonic_ns = 0;
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

  // Returns the process that connected, by SO_PEERCRED; pid 0 for a process in a namespace that the
  // agent cannot see.
  const ucred& peer() const { return peer_; }
  // Returns whether the tap's HELLO was accepted for form.
  bool greeted() const { return greeted_; }
  uint64_t connected_ns() const { return connected_ns_; }  // monotonic

  // Fails with UNAVAILABLE if the tap does not read or is gone; in the latter case OnClosed
  // follows. Fails with INVALID_ARGUMENT if the names do not fit into a message.
  absl::Status SendStart(const TapStartOrder& order);
  // Stops the trace at `stop_at_monotonic_ns`; 0: at once. Fails as SendStart does.
  absl::Status SendStop(const CaptureId& capture_id, uint64_t stop_at_monotonic_ns = 0);
  // Switches the recording of annotations, for a greeting that annotates.
  absl::Status SendAnnotate(bool recording);
  // Has the tap fetch, for the snapshot `capture_id`, what its rings hold of the flight recorder
  // `recorder_id` at `at_monotonic_ns`.
  absl::Status SendCollect(const CaptureId& capture_id, const CaptureId& recorder_id,
                           uint64_t at_monotonic_ns);

 private:
  // Handles the messages that wait, up to a limit for each turn.
  void OnReadable();
  // Reads and handles one message; returns false if there is none. Fails with UNAVAILABLE if the
  // tap has closed the connection, and with INVALID_ARGUMENT for an invalid message.
  absl::StatusOr<bool> ReadMessage();
  // Check one message and hand its contents to the listener. Fail with INVALID_ARGUMENT, or with
  // the listener's error.
  absl::Status HandleMessage(const char* data, size_t size, std::vector<PeerFd> descriptors);
  absl::Status HandleGreeting(TapMessageType type, const char* data, size_t size,
                              std::vector<PeerFd> descriptors);
  absl::Status HandleReport(const char* data, size_t size);
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
  // Messages that the tap may still send, and up to when further ones were granted, monotonic.
  uint32_t tokens_;
  uint64_t tokens_ns_;
};

}  // namespace neurontrace
