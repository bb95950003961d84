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

// One record of a tap's ring, copied to the agent's memory.
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
// positions are checked against those seen before, a record is copied before it is examined, and
// nothing read from the memory is used as a length or an index without a check. Works after the
// worker's death too, as the mapping keeps the memory. Used by one thread at a time.
class TapBufferReader {
 public:
  using Facts = std::map<std::string, std::string, std::less<>>;

  // Maps the file; `memfd` remains the caller's. Fails with INVALID_ARGUMENT unless it is a sealed
  // memory file of the right size with a header that this agent understands; the message has the
  // reason.
  static absl::StatusOr<std::unique_ptr<TapBufferReader>> Open(int memfd);
  // Reads memory that the caller owns and that outlives the reader; for tests and fuzzing.
  static absl::StatusOr<std::unique_ptr<TapBufferReader>> Over(void* memory, size_t bytes);
  ~TapBufferReader();
  TapBufferReader(const TapBufferReader&) = delete;
  TapBufferReader& operator=(const TapBufferReader&) = delete;

  // Copies the next record to `buffer`; returns false if there is none. Fails with DATA_LOSS if the
  // ring is not valid; nothing can be read from it any more then.
  absl::StatusOr<bool> Next(RecordBuffer& buffer, TapRecord& record);

  // Puts back the record that Next returned last: it comes again.
  void StepBack(const TapRecord& record) { position_ = record.position; }
  // Returns true if Next would find something.
  bool HasMore() const;
  // Returns where Next continues.
  uint64_t position() const { return position_; }
  // Returns where the tap claims to write next: any value at all.
  uint64_t write_position() const;
  // Allows the tap to overwrite what precedes `position`. Moves forward only, up to position().
  void Commit(uint64_t position);
  uint64_t committed() const { return committed_; }
  // Gives the ring's memory back to the kernel, for a worker that is gone and whose records are all
  // committed. Should it be written to nevertheless, that is read as usual.
  void ReleaseMemory();
  // Returns how much the tap can still write before it reaches what is not committed.
  uint64_t free_bytes() const;
  uint64_t ring_bytes() const { return ring_bytes_; }

  // Asks for a wake-up when something is written. Returns true if something came in between, so
  // that the caller reads on.
  bool WaitForMore();

  // Returns what SetAgentNote stored, in this or an earlier run of the agent, or what the worker
  // wrote: any value at all.
  uint64_t agent_note() const;
  void SetAgentNote(uint64_t note);

  TapState state() const;  // any value at all
  // Counters of the tap that should only grow; any value at all.
  uint64_t deferred_fetches() const;
  uint64_t refused_control_records() const;
  uint64_t drain_ns() const;
  uint32_t claimed_pid() const { return claimed_pid_; }
  uint64_t process_start_ticks() const { return process_start_ticks_; }

  // Changes when the facts do.
  uint64_t facts_generation() const;
  // Returns a consistent copy of the facts, cleaned to printable UTF-8. Fails with UNAVAILABLE
  // while the tap is writing them (try again later), and with DATA_LOSS if they are not valid.
  absl::StatusOr<Facts> ReadFacts() const;

  ino_t inode() const { return inode_; }
  // Returns whether both are the same memory file, by the kernel's own numbers for it.
  bool IsSameFile(const TapBufferReader& other) const {
    return device_ == other.device_ && inode_ == other.inode_ && inode_ != 0;
  }

 private:
  TapBufferReader(uint8_t* base, size_t bytes, bool mapped);
  // Reads the constant fields once, and checks them.
  absl::Status CheckHeader();
  // Fails with DATA_LOSS for a position that moves back or beyond the ring.
  absl::Status CheckWritePosition(uint64_t write_position);
  // Copies bytes of the ring, which may wrap around.
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
