// SPDX-License-Identifier: Apache-2.0
// The shared buffer of one worker: what the tap writes and the agent reads, through one sealed
// memfd.
//
//   [ header page, 4096 bytes | facts area, 60 KiB | ring, a power of two of bytes ]
//
// Everything is little endian and naturally aligned; docs/formats/tap_buffer.md describes it byte
// by byte. The two sides do not trust each other. The tap reads nothing back but `read_pos` and
// `consumer_waiting`, and validates both. The agent copies a record out before it checks it,
// because the writer may change it at any time.
//
// Positions are byte offsets that only grow (the place in the ring is `pos % ring_bytes`). At all
// times `read_pos <= write_pos <= read_pos + ring_bytes`. `write_pos` is published with release
// order after the bytes of a record. `read_pos` is COMMITTED: the agent moves it only when
// everything before it is durable, in its spool or at the aggregator. An agent that restarts thus
// continues from there and loses nothing.
//
// To sleep, the agent stores 1 in `consumer_waiting`, issues a full fence and reads `write_pos`
// once more. The tap publishes, issues a full fence and exchanges the flag with 0. One of the two
// sees the other's write, so no wake-up is lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace neurontrace {

inline constexpr uint64_t kTapBufferMagic = 0x4655'4250'4154'544eULL;  // "NTTAPBUF" in memory
inline constexpr uint32_t kTapBufferFormatVersion = 1;

// The places of the three parts. A reader accepts no others in this version of the format.
inline constexpr uint64_t kTapHeaderBytes = 4096;
inline constexpr uint64_t kTapFactsOffset = kTapHeaderBytes;
inline constexpr uint64_t kTapFactsBytes = 60 * 1024;
inline constexpr uint64_t kTapRingOffset = kTapFactsOffset + kTapFactsBytes;
inline constexpr uint64_t kTapRingBytesDefault = uint64_t{32} << 20;
inline constexpr uint64_t kTapRingBytesMin = uint64_t{1} << 20;
inline constexpr uint64_t kTapRingBytesMax = uint64_t{1} << 30;
static_assert(kTapRingOffset == 65536);

// Largest payload of one record; a larger fetch document is refused and counted by the tap.
inline constexpr uint64_t kTapRecordPayloadBytesMax = uint64_t{64} << 20;
// Documents leave this much of the ring free, so that a stop or a loss can always be recorded.
inline constexpr uint64_t kTapControlReserveBytes = 32 * 1024;
// Every record begins at a multiple of this.
inline constexpr uint64_t kTapRecordAlignment = 8;
inline constexpr uint32_t kTapMaxCores = 256;
inline constexpr uint32_t kTapNoCore = 0xffffffff;  // nc_idx: all cores, or not about a core
inline constexpr uint32_t kTapCaptureIdBytes = 16;  // a ULID; all zero: no capture

// The state of the tap. Values are never reused; a reader shows an unknown one as "unknown".
enum class TapState : uint32_t {
  kNotInitialised = 1,     // no successful nrt_init yet
  kIdle = 2,               // initialised, no trace running
  kStreaming = 3,          // our trace runs and is drained
  kBusyOtherProfiler = 4,  // another profiler has the runtime's only capture; we fetch nothing
  kRuntimeTooOld = 5,      // the runtime lacks the fetch API; nothing can be captured
  kClosed = 6,             // nrt_close was called; nrt_init may follow
  kExited = 7,             // the process is in exit(); nothing more will come
  kStartFailed = 8,        // the runtime refused the last start for another reason; retried
  kHolding = 9,            // our trace runs, and its events stay in the runtime's rings
};

// The key of the fact that names the state in which the facts were written, and the names of the
// states in which the runtime is unknown: a reader recognises by them that facts of the runtime are
// still to come.
inline constexpr char kTapStateFact[] = "tap.state";
inline constexpr char kTapNameNotInitialised[] = "not initialised";
inline constexpr char kTapNameClosed[] = "closed";

// Counters only grow. The tap alone writes them, with relaxed order; the agent reads them at any
// time and must not rely on their consistency with each other.
struct alignas(64) TapBufferCounters {
  std::atomic<uint64_t> documents;          // fetch documents written to the ring
  std::atomic<uint64_t> document_bytes;     // their JSON bytes
  std::atomic<uint64_t> refused_documents;  // fetched, but no room in the ring: dropped
  std::atomic<uint64_t> refused_bytes;      // JSON bytes of those
  std::atomic<uint64_t> refused_events;     // events in those, counted
  std::atomic<uint64_t> deferred_fetches;   // not fetched: no room, left in the runtime's own rings
  std::atomic<uint64_t> refused_control_records;  // TRACE_*, LIFECYCLE or LOSS records without room
  std::atomic<uint64_t> facts_truncated;          // facts that did not fit the facts area

  std::atomic<uint64_t> fetches;        // calls of nrt_sys_trace_fetch_events
  std::atomic<uint64_t> empty_fetches;  // of these, without an event
  std::atomic<uint64_t> fetch_errors;   // of these, with a status other than success
  std::atomic<uint64_t> fetch_ns;       // time inside the runtime's fetch
  std::atomic<uint64_t> drain_ns;       // processor time of drain rounds, fetches included
  std::atomic<uint64_t> drain_rounds;
  std::atomic<uint64_t> invalid_read_pos;  // values of read_pos that were refused
  std::atomic<uint64_t> invalid_commands;  // commands from the agent that were refused
};
static_assert(sizeof(TapBufferCounters) == 128);

// The first page of the file. Fields of one writer share cache lines with no other writer's. The
// offsets are part of the format.
struct TapBufferHeader {
  // Constant once the agent has the file.
  uint64_t magic;
  uint32_t format_version;
  uint32_t header_bytes;
  uint64_t facts_offset;
  uint64_t facts_bytes;
  uint64_t ring_offset;
  uint64_t ring_bytes;   // a power of two
  uint32_t claimed_pid;  // in the worker's own pid namespace
  uint32_t claimed_uid;
  uint64_t process_start_ticks;  // /proc/self/stat field 22
  char tap_version[32];          // NUL padded
  uint64_t created_realtime_ns;
  uint8_t reserved0[24];

  // Written by the tap.
  alignas(64) std::atomic<uint32_t> state;  // TapState
  std::atomic<uint32_t> init_count;         // successful nrt_init calls seen
  std::atomic<uint64_t> state_changes;      // grows with each change of `state`
  uint8_t reserved1[48];
  alignas(64) std::atomic<uint64_t> write_pos;
  uint8_t reserved2[56];

  // Written by the agent: hostile to the tap.
  alignas(64) std::atomic<uint64_t> read_pos;
  std::atomic<uint32_t> consumer_waiting;  // 1: the agent sleeps on the wake descriptor
  uint32_t reserved3;
  // A value that an agent keeps for its successor. The tap does not read it.
  std::atomic<uint64_t> agent_note;
  uint8_t reserved4[40];

  // Written by the tap.
  TapBufferCounters counters;
};
static_assert(offsetof(TapBufferHeader, tap_version) == 64);
static_assert(offsetof(TapBufferHeader, state) == 128);
static_assert(offsetof(TapBufferHeader, write_pos) == 192);
static_assert(offsetof(TapBufferHeader, read_pos) == 256);
static_assert(offsetof(TapBufferHeader, agent_note) == 272);
static_assert(offsetof(TapBufferHeader, counters) == 320);
static_assert(sizeof(TapBufferHeader) == 448 && sizeof(TapBufferHeader) <= kTapHeaderBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Values are never reused.
enum class TapRecordType : uint16_t {
  kFetchDocument = 1,  // payload: the JSON bytes of one fetch, without NUL
  kTraceStarted = 2,   // payload: TapTraceStarted, then names; sequence numbers begin again here
  kTraceStopped = 3,   // payload: TapTraceStopped
  kLifecycle = 4,      // payload: TapLifecycle
  kLoss = 5,           // payload: TapLoss, of the core that the record names
};

// One record occupies align8(length) bytes of the ring and may wrap around its end.
struct TapRecordHeader {
  uint32_t length;                         // header and payload, without the padding
  uint32_t crc32c;                         // of the `length - 8` bytes that follow this field
  uint16_t type;                           // TapRecordType; a reader skips a type it does not know
  uint16_t flags;                          // kTapRecordFlag*
  uint32_t nc_idx;                         // process-local logical core, or kTapNoCore
  uint64_t host_realtime_ns;               // when the fetch returned, or the thing happened
  uint8_t capture_id[kTapCaptureIdBytes];  // the capture in effect
};
static_assert(sizeof(TapRecordHeader) == 40);
inline constexpr uint64_t kTapRecordCrcOffset = 8;  // the checksum covers from here to `length`

inline constexpr uint16_t kTapRecordFlagFinalDrain = 1;  // fetched after the decision to stop
inline constexpr uint16_t kTapRecordFlagResumed = 2;     // TRACE_STARTED: same capture continues
inline constexpr uint16_t kTapRecordFlagMore = 4;        // FETCH: came back full, more may wait
// TRACE_STARTED: the following events come from rings that were held, perhaps for long. Sequence
// numbers continue, and those missing before a core's first event were overwritten meanwhile, which
// is not a loss.
inline constexpr uint16_t kTapRecordFlagCollected = 8;

enum class TapEventRule : uint32_t { kAll = 0, kOnlyThese = 1, kAllButThese = 2 };

// The configuration of a trace that has started.
struct TapTraceStarted {
  uint64_t max_events_per_nc;
  uint64_t nc_bitmap[4];  // bit i of word i / 64: core i; all zero: every core
  uint32_t event_rule;    // TapEventRule
  uint32_t name_count;    // NUL-terminated names follow
};
static_assert(sizeof(TapTraceStarted) == 48);

enum class TapStopReason : uint32_t {
  kCommand = 1,        // the agent said STOP
  kRuntimeClosed = 2,  // nrt_close
  kProcessExit = 3,    // exit() without nrt_close
  kYielded = 4,        // the application starts or stops a profiler; resumed afterwards
  kOrphaned = 5,       // no agent for kTapOrphanTimeoutSeconds
  kFetchFailed = 6,    // the runtime refused fetches repeatedly: another caller ended the trace
  kCollected = 7,      // the contents of the held rings have been written; the rings are still held
};

// The end of a trace, with the numbers of its documents.
struct TapTraceStopped {
  uint32_t reason;     // TapStopReason
  int32_t nrt_status;  // of nrt_sys_trace_stop; 0 where it was not called
  uint64_t documents;  // written to the ring since TRACE_STARTED
  uint64_t refused_documents;
  uint32_t final_drain_complete;  // 0: the time budget ended before every core came back thin
  uint32_t reserved;
};
static_assert(sizeof(TapTraceStopped) == 32);

enum class TapLifecycleEvent : uint32_t { kInit = 1, kClose = 2, kExit = 3 };

// A call of the runtime's life cycle by the application.
struct TapLifecycle {
  uint32_t event;  // TapLifecycleEvent
  int32_t nrt_status;
};
static_assert(sizeof(TapLifecycle) == 8);

// The outcome of fetches of one core (or of all at once: kTapNoCore) between two times, other than
// documents in the ring. The record precedes the core's next document, or at the latest
// TRACE_STOPPED. A reader thus knows of refused events when it meets the hole that they left in
// nc_local_id. Deferred and failed fetches are no losses by themselves: their events stay in the
// runtime's rings, and if those overwrite them, a hole appears that refused events do not explain.
struct TapLoss {
  uint64_t refused_documents;  // fetched, and no room for them
  uint64_t refused_bytes;
  uint64_t refused_events;  // counted in the documents
  uint64_t deferred_fetches;
  uint64_t first_realtime_ns;
  uint64_t last_realtime_ns;
  uint64_t failed_fetches;  // the runtime answered with an error
  // One more than the highest nc_local_id in those documents; 0: they had none. With it a reader
  // counts what was overwritten before a refused document even if no other one follows.
  uint64_t refused_ids_end;
};
static_assert(sizeof(TapLoss) == 64);

// The facts area: this header, then entries of TapFactEntry, key bytes and value bytes, without
// padding. Protected by a seqlock: `generation` is odd while the tap writes. A reader copies the
// area and compares the generation before and after.
struct TapFactsHeader {
  std::atomic<uint64_t> generation;
  uint32_t used_bytes;  // of entries
  uint32_t crc32c;      // of the used bytes of entries
};
struct TapFactEntry {
  uint16_t key_bytes;
  uint16_t reserved;
  uint32_t value_bytes;
};
static_assert(sizeof(TapFactsHeader) == 16 && sizeof(TapFactEntry) == 8);

// Returns the bytes that a record of this length occupies in the ring.
inline constexpr uint64_t TapRecordSpan(uint64_t length) {
  return (length + (kTapRecordAlignment - 1)) & ~(kTapRecordAlignment - 1);
}

}  // namespace neurontrace
