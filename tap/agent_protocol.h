// SPDX-License-Identifier: Apache-2.0
// The messages between a tap and an agent over the agent's unix socket (AF_UNIX, SOCK_SEQPACKET):
// one message per packet, each with TapMessageHeader first; little endian, no padding.
// docs/formats/tap_buffer.md describes them byte by byte.
//
//   tap -> agent   HELLO   once after each connect, with two descriptors (SCM_RIGHTS): the memfd of
//                          tap/buffer_format.h, and the wake descriptor, which becomes readable
//                          (8 bytes for each wake-up) when data came while `consumer_waiting` was 1
//   agent -> tap   START   starts or continues a capture; STOP ends it; COLLECT records what held
//                          rings contain. Each takes effect now or at a given time
//   tap -> agent   STATUS  the answer to each command, and each change of state
//
// START of the running capture and STOP of one that does not run change nothing and succeed. A
// START that cannot take effect yet (before its time or nrt_init, or while another profiler is
// active) is kept and takes effect when it can. There is one capture at a time: START of a second
// is refused.
//
// A START that holds begins the runtime's trace and fetches nothing: the rings keep the newest
// events, and the tap sleeps. COLLECT then drains them once, as a capture of its own between
// TRACE_STARTED (kTapRecordFlagCollected) and TRACE_STOPPED, and the hold continues. COLLECT of a
// capture that has been collected succeeds and does nothing.
//
// The version in a message's header is that of its layout. HELLO names the newest version of
// commands that the tap accepts, so that a later agent can send an older one.
//
// libneurontrace_annotate.so (annotate/annotation_format.h) connects to the same socket. Its HELLO
// is TapHello with the type ANNOTATE_HELLO, no state and no capture. The agent sends it nothing but
// ANNOTATE, whenever recording has to begin or to end.
//
// A wrong, oversized or too frequent command costs the agent its connection, never the worker
// anything. When the socket dies the trace continues into the ring. A capture whose agent has not
// come back after kTapOrphanTimeoutSeconds is stopped.
#pragma once

#include "tap/buffer_format.h"

namespace neurontrace {

// The agent's socket: this environment variable of the worker, or the default path if it is empty.
inline constexpr char kTapAgentSocketEnv[] = "NEURONTRACE_AGENT_SOCKET";
inline constexpr char kTapAgentSocketDefault[] = "/run/neurontrace/agent.sock";

inline constexpr uint32_t kTapMessageMagic = 0x5041'544e;  // "NTAP" in memory
inline constexpr uint16_t kTapProtocolVersion = 1;
inline constexpr uint32_t kTapMessageBytesMax = 16 * 1024;
// Limits of the event type names of one START.
inline constexpr uint32_t kTapEventNamesMax = 256;
inline constexpr uint32_t kTapEventNameBytesMax = 127;  // without the NUL
// The text of one STATUS.
inline constexpr uint32_t kTapStatusDetailBytesMax = 256;
// A capture whose agent has not come back for this long is stopped.
inline constexpr uint32_t kTapOrphanTimeoutSeconds = 60;
// A command for a time further ahead is refused; one for a time in the past is executed at once.
inline constexpr uint32_t kTapAheadMaxSeconds = 60;
// COLLECTs that wait for their time; a further one is refused.
inline constexpr uint32_t kTapCollectsMax = 4;
// A START outside these limits of events per core ring is refused (120 bytes a slot in the worker).
inline constexpr uint64_t kTapEventsPerCoreMin = 1024;
inline constexpr uint64_t kTapEventsPerCoreMax = uint64_t{1} << 22;

// Values are never reused.
enum class TapMessageType : uint16_t {
  kHello = 1,
  kStart = 2,
  kStop = 3,
  kStatus = 4,
  kCollect = 5,
  kAnnotateHello = 6,
  kAnnotate = 7,
};

// The beginning of every message.
struct TapMessageHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t type;    // TapMessageType
  uint32_t length;  // of the whole message: equals the packet's
  uint32_t reserved;
};
static_assert(sizeof(TapMessageHeader) == 16);

// Sent by the tap once for each connection. All fields are claims, which the agent compares with
// the kernel's.
struct TapHello {
  TapMessageHeader header;
  uint32_t claimed_pid;
  uint32_t claimed_uid;
  uint64_t process_start_ticks;
  uint64_t buffer_bytes;     // size of the memfd
  uint32_t state;            // TapState
  uint16_t protocol_newest;  // version of commands that the tap takes
  uint16_t reserved;
  uint8_t capture_id[kTapCaptureIdBytes];  // the capture wanted or running; zero: none
  char tap_version[32];
};
static_assert(sizeof(TapHello) == 96);

// Asks for a capture. See RuntimeTrace::Begin for what each field does in the runtime.
struct TapStart {
  TapMessageHeader header;
  uint8_t capture_id[kTapCaptureIdBytes];
  uint64_t max_events_per_nc;
  uint64_t nc_bitmap[4];  // as in TapTraceStarted
  uint32_t event_rule;    // TapEventRule
  uint32_t name_count;
  uint32_t flags;                  // of kTapStartFlag*
  uint32_t names_bytes;            // NUL-terminated names follow; this is all of them
  uint64_t begin_at_monotonic_ns;  // of CLOCK_MONOTONIC; 0: at once
};
static_assert(sizeof(TapStart) == 96);
inline constexpr uint32_t kTapStartFlagHold = 1;  // begin the trace, but fetch nothing

// Ends a capture or a collection.
struct TapStop {
  TapMessageHeader header;
  uint8_t capture_id[kTapCaptureIdBytes];
  uint64_t stop_at_monotonic_ns;  // 0: at once
};
static_assert(sizeof(TapStop) == 40);

// Asks for the contents of held rings.
struct TapCollect {
  TapMessageHeader header;
  uint8_t capture_id[kTapCaptureIdBytes];   // that what is collected is recorded under
  uint8_t recorder_id[kTapCaptureIdBytes];  // of the capture that holds the rings
  uint64_t at_monotonic_ns;                 // 0: at once
};
static_assert(sizeof(TapCollect) == 56);

// Switches the recording of annotations in a process whose HELLO was kAnnotateHello.
struct TapAnnotate {
  TapMessageHeader header;
  uint32_t recording;  // 0: stop; anything else: record
  uint32_t reserved;
};
static_assert(sizeof(TapAnnotate) == 24);

// The outcome of a command.
enum class TapResult : uint32_t {
  kNone = 0,      // not an answer: the state changed
  kOk = 1,        // done: the capture runs, or no longer runs
  kAccepted = 2,  // kept until its time, or until the runtime is initialised, free or willing:
                  // see `state`. STOP and COLLECT are answered again, with kOk, once done
  kAnotherCapture = 3,  // another capture runs (its id is in capture_id). COLLECT: too many wait,
                        // and capture_id is the one asked for
  kNotRunning = 4,      // STOP of a capture that is not running here
  kUnsupported = 5,     // the runtime lacks what this needs
  kInvalid = 6,         // not understood; the connection ends
  kTooFarAhead = 7,     // its time is more than kTapAheadMaxSeconds ahead
  kNothingHeld = 8,     // COLLECT: the rings are not held, or no longer were at its time
};

// The answer to a command, or a report of a new state.
struct TapStatus {
  TapMessageHeader header;
  uint32_t state;      // TapState
  uint32_t result;     // TapResult
  uint32_t command;    // TapMessageType that is answered, or 0
  int32_t nrt_status;  // of the last trace call that failed, else 0
  uint8_t capture_id[kTapCaptureIdBytes];
  uint32_t detail_bytes;  // UTF-8 text follows
  uint32_t reserved;
};
static_assert(sizeof(TapStatus) == 56);

}  // namespace neurontrace
