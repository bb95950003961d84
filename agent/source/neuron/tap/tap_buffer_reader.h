// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/source/neuron/tap/record_buffer.h"
#include "lib/trace/ids.h"
#include "tap/buffer_format.h"

namespace neurontrace {

// One record of a tap's ring, in memory of our own.
struct TapRecord {
  uint64_t position = 0;
  uint64_t next_position = 0;
  uint16_t type = 0;  // TapRecordType, or one this agent does not know
  uint16_t flags = 0;
  uint32_t nc_idx = kTapNoCore;
  uint64_t host_realtime_ns = 0;
  CaptureId capture_id;
  char* payload = nullptr;  // in the RecordBuffer, padding behind it
  size_t payload_bytes = 0;
};

// The agent's side of a tap's shared buffer (docs/formats/tap_buffer.md). The other side is not
// trusted: it may write anything into the memory, at any time. So constant fields are read once,
// positions are checked against those seen before, a record is copied out before it is looked at,
// and nothing read from the memory is used as a length or an index without a check. Works on after
// the worker's death, as the mapping keeps the memory. One thread at a time.
class TapBufferReader {
 public:
  using Facts = std::map<std::string, std::string, std::less<>>;

  // Maps the file; `memfd` stays the caller's. INVALID_ARGUMENT for what is no sealed memory file
  // of the right size, with a header this agent understands; the message says which.
  static absl::StatusOr<std::unique_ptr<TapBufferReader>> Open(int memfd);
  // Over memory that somebody else holds and that outlives the reader: for tests and fuzzing.
  static absl::StatusOr<std::unique_ptr<TapBufferReader>> Over(void* memory, size_t bytes);
  ~TapBufferReader();
  TapBufferReader(const TapBufferReader&) = delete;
  TapBufferReader& operator=(const TapBufferReader&) = delete;

  // Copies the next record to `buffer`. False if there is none. DATA_LOSS for a ring that makes no
  // sense; nothing can be read from it any more.
  absl::StatusOr<bool> Next(RecordBuffer& buffer, TapRecord& record);

  // Gives back the record that Next took last: it comes again.
  void StepBack(const TapRecord& record) { position_ = record.position; }
  // True if Next would find something.
  bool HasMore() const;
  // Where Next reads next.
  uint64_t position() const { return position_; }
  // Where the tap says it writes next: any value at all.
  uint64_t write_position() const;
  // Where the tap may write over what lies before. Only ever moves on, up to position().
  void Commit(uint64_t position);
  uint64_t committed() const { return committed_; }
  // Gives the ring's memory back to the machine, for a worker that is gone and of which everything
  // is committed. Should it be written to after all, that is read as always.
  void ReleaseMemory();
  // What the tap can still write before all that is not committed is in its way.
  uint64_t free_bytes() const;
  uint64_t ring_bytes() const { return ring_bytes_; }

  // Asks for a wake-up when something is written. True if something came in between: read on.
  bool WaitForMore();

  // What SetAgentNote stored, or an agent before this one, or the worker: any value at all.
  uint64_t agent_note() const;
  void SetAgentNote(uint64_t note);

  TapState state() const;  // any value at all
  // Counters of the tap that only grow, any value at all.
  uint64_t deferred_fetches() const;
  uint64_t refused_control_records() const;
  uint64_t drain_ns() const;
  uint32_t claimed_pid() const { return claimed_pid_; }
  uint64_t process_start_ticks() const { return process_start_ticks_; }

  // Grows when the facts change.
  uint64_t facts_generation() const;
  // A consistent copy of the facts, cleaned to printable UTF-8. UNAVAILABLE while the tap is
  // writing them (try again later), DATA_LOSS where they make no sense.
  absl::StatusOr<Facts> ReadFacts() const;

  ino_t inode() const { return inode_; }
  // The same memory file, told by the kernel's own number for it.
  bool IsSameFile(const TapBufferReader& other) const {
    return device_ == other.device_ && inode_ == other.inode_ && inode_ != 0;
  }

 private:
  TapBufferReader(uint8_t* base, size_t bytes, bool mapped);
  absl::Status CheckHeader();
  absl::Status CheckWritePosition(uint64_t write_position);
  void CopyOut(uint64_t position, char* to, size_t bytes) const;
  TapBufferHeader& header() const { return *reinterpret_cast<TapBufferHeader*>(base_); }

  // Constant once opened.
  uint8_t* const base_;
  const size_t bytes_;
  const bool mapped_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t ring_bytes_ = 0;
  uint32_t claimed_pid_ = 0;
  uint64_t process_start_ticks_ = 0;

  uint64_t position_ = 0;
  uint64_t committed_ = 0;
  uint64_t write_position_seen_ = 0;
};

}  // namespace neurontrace
