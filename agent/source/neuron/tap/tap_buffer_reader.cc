// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/tap_buffer_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "agent/source/neuron/tap/sealed_memory.h"
#include "lib/base/clean_text.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Attempts at a consistent copy of the facts; the caller tries again on its next turn.
constexpr int kFactsAttempts = 8;
// Entries that are read of the facts area; further ones are ignored.
constexpr size_t kFactsMax = 1'024;

}  // namespace

TapBufferReader::TapBufferReader(uint8_t* base, size_t bytes, bool mapped)
    : base_(base), bytes_(bytes), mapped_(mapped) {}

TapBufferReader::~TapBufferReader() {
  if (mapped_) munmap(base_, bytes_);
}

absl::StatusOr<std::unique_ptr<TapBufferReader>> TapBufferReader::Open(int memfd) {
  ASSIGN_OR_RETURN(const SealedMemory memory,
                   MapSealedMemory(memfd, kTapRingOffset + kTapRingBytesMin,
                                   kTapRingOffset + kTapRingBytesMax, "tap"));
  std::unique_ptr<TapBufferReader> reader(new TapBufferReader(memory.base, memory.bytes, true));
  RETURN_IF_ERROR(reader->CheckHeader());
  reader->device_ = memory.device;
  reader->inode_ = memory.inode;
  return reader;
}

absl::StatusOr<std::unique_ptr<TapBufferReader>> TapBufferReader::Over(void* memory, size_t bytes) {
  if (bytes < kTapRingOffset) return InvalidArgument("{} bytes are too few for a header", bytes);
  std::unique_ptr<TapBufferReader> reader(
      new TapBufferReader(static_cast<uint8_t*>(memory), bytes, false));
  RETURN_IF_ERROR(reader->CheckHeader());
  return reader;
}

// Reading continues at the read position in the memory, up to which an earlier agent committed.
// Every field is loaded once, as the other side may change it between two loads.
absl::Status TapBufferReader::CheckHeader() {
  TapBufferHeader& h = header();
  const uint64_t magic = LoadOnce(h.magic);
  const uint32_t version = LoadOnce(h.format_version);
  ring_bytes_ = LoadOnce(h.ring_bytes);
  claimed_pid_ = LoadOnce(h.claimed_pid);
  process_start_ticks_ = LoadOnce(h.process_start_ticks);
  if (magic != kTapBufferMagic) return InvalidArgument("the tap's buffer has a wrong magic number");
  if (version != kTapBufferFormatVersion) {
    return InvalidArgument(
        "the tap's buffer has format {}, but this agent reads {}; use a tap and an agent of the "
        "same release",
        version, kTapBufferFormatVersion);
  }
  // Only this layout exists in format 1, so the fields are compared and not followed.
  if (LoadOnce(h.header_bytes) != kTapHeaderBytes || LoadOnce(h.facts_offset) != kTapFactsOffset ||
      LoadOnce(h.facts_bytes) != kTapFactsBytes || LoadOnce(h.ring_offset) != kTapRingOffset) {
    return InvalidArgument("the tap's buffer does not have the layout of format 1");
  }
  // The ring must be a power of two, as offsets in it are masked, and end with the mapping.
  if (!std::has_single_bit(ring_bytes_) || ring_bytes_ != bytes_ - kTapRingOffset) {
    return InvalidArgument("a ring of {} bytes does not fit a buffer of {}", ring_bytes_, bytes_);
  }
  committed_ = h.read_pos.load(std::memory_order_acquire);
  position_ = committed_;
  write_position_seen_ = committed_;
  if (committed_ % kTapRecordAlignment != 0) {
    return InvalidArgument("the tap's buffer has an invalid read position of {}", committed_);
  }
  return CheckWritePosition(h.write_pos.load(std::memory_order_acquire));
}

// The subtraction cannot wrap, as the position seen before is never below the committed one.
absl::Status TapBufferReader::CheckWritePosition(uint64_t write_position) {
  if (write_position < write_position_seen_ || write_position - committed_ > ring_bytes_ ||
      write_position % kTapRecordAlignment != 0) {
    return DataLoss(
        "the ring's write position moved from {} to {}, which is invalid with {} committed",
        write_position_seen_, write_position, committed_);
  }
  write_position_seen_ = write_position;
  return absl::OkStatus();
}

void TapBufferReader::CopyOut(uint64_t position, char* to, size_t bytes) const {
  CopyFromRing(base_ + kTapRingOffset, ring_bytes_, position, to, bytes);
}

uint64_t TapBufferReader::agent_note() const {
  return header().agent_note.load(std::memory_order_relaxed);
}

void TapBufferReader::SetAgentNote(uint64_t note) {
  header().agent_note.store(note, std::memory_order_relaxed);
}

uint64_t TapBufferReader::write_position() const {
  return header().write_pos.load(std::memory_order_acquire);
}

bool TapBufferReader::HasMore() const { return write_position() != position_; }

absl::StatusOr<bool> TapBufferReader::Next(RecordBuffer& buffer, TapRecord& record) {
  RETURN_IF_ERROR(CheckWritePosition(write_position()));
  const uint64_t available = write_position_seen_ - position_;
  if (available == 0) return false;
  // Written bytes are always whole records, so a rest that is shorter than a header is no record.
  TapRecordHeader head;
  if (available < sizeof head) return DataLoss("the ring ends within a record at {}", position_);
  // Copies the length only and checks it. The ring is shared with the worker, so that the copy of
  // the whole record below may contain another length.
  CopyOut(position_, reinterpret_cast<char*>(&head.length), sizeof head.length);
  const uint32_t length = head.length;
  if (length < sizeof head || length > sizeof head + kTapRecordPayloadBytesMax ||
      TapRecordSpan(length) > available) {
    return DataLoss("the record at {} has a length of {}, with {} bytes in the ring", position_,
                    length, available);
  }
  char* const copy = buffer.Prepare(length);
  CopyOut(position_, copy, length);
  std::memcpy(&head, copy, sizeof head);
  if (head.length != length ||
      head.crc32c != Crc32c(copy + kTapRecordCrcOffset, length - kTapRecordCrcOffset)) {
    return DataLoss("the record at {} has a wrong checksum", position_);
  }
  record.position = position_;
  record.next_position = position_ + TapRecordSpan(length);
  record.type = head.type;
  record.flags = head.flags;
  record.nc_idx = head.nc_idx;
  record.host_realtime_ns = head.host_realtime_ns;
  record.capture_id = *CaptureId::FromBytes(
      {reinterpret_cast<const char*>(head.capture_id), sizeof head.capture_id});
  record.payload = copy + sizeof head;
  record.payload_bytes = length - sizeof head;
  position_ = record.next_position;
  return true;
}

// The store releases the bytes to the tap, which may overwrite them at once; nothing in them is
// read after it.
void TapBufferReader::Commit(uint64_t position) {
  position = std::min(position, position_);
  if (position <= committed_) return;
  committed_ = position;
  header().read_pos.store(position, std::memory_order_release);
}

void TapBufferReader::ReleaseMemory() {
  // If the kernel refuses, the memory stays as it was.
  if (mapped_) (void)madvise(base_ + kTapRingOffset, ring_bytes_, MADV_REMOVE);
}

bool TapBufferReader::WaitForMore() {
  header().consumer_waiting.store(1, std::memory_order_relaxed);
  // Dekker's pattern: the request must be visible before the write position is read, as the tap
  // writes its position before it reads the request. Otherwise both could miss each other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return HasMore();
}

TapState TapBufferReader::state() const {
  return static_cast<TapState>(header().state.load(std::memory_order_acquire));
}

// The write position is not checked here, so the difference is limited to the ring.
uint64_t TapBufferReader::free_bytes() const {
  return ring_bytes_ - std::min(ring_bytes_, write_position() - committed_);
}

uint64_t TapBufferReader::deferred_fetches() const {
  return header().counters.deferred_fetches.load(std::memory_order_relaxed);
}

uint64_t TapBufferReader::drain_ns() const {
  return header().counters.drain_ns.load(std::memory_order_relaxed);
}

uint64_t TapBufferReader::refused_control_records() const {
  return header().counters.refused_control_records.load(std::memory_order_relaxed);
}

uint64_t TapBufferReader::facts_generation() const {
  const auto& facts = *reinterpret_cast<const TapFactsHeader*>(base_ + kTapFactsOffset);
  return facts.generation.load(std::memory_order_acquire);
}

absl::StatusOr<TapBufferReader::Facts> TapBufferReader::ReadFacts() const {
  constexpr size_t kEntriesMax = kTapFactsBytes - sizeof(TapFactsHeader);
  std::string entries;
  bool copied = false;
  for (int attempt = 0; attempt < kFactsAttempts && !copied; ++attempt) {
    // A sequence lock: the generation is odd while the tap writes, and equal on both sides of a
    // clean copy. The checksum covers a tap that does not follow this.
    const uint64_t before = facts_generation();
    auto& facts = *reinterpret_cast<TapFactsHeader*>(base_ + kTapFactsOffset);
    const uint32_t used = LoadOnce(facts.used_bytes);
    const uint32_t crc = LoadOnce(facts.crc32c);
    // The length is checked before it is used: it may be any value while the tap writes, or at any
    // time.
    if (before % 2 != 0 || used > kEntriesMax) continue;
    entries.resize(used);
    CopyOnce(&facts + 1, entries.data(), used);
    std::atomic_thread_fence(std::memory_order_acquire);
    copied = facts_generation() == before && Crc32c(entries.data(), entries.size()) == crc;
  }
  if (!copied) return Unavailable("the tap's facts keep changing");
  // The copy is consistent, but its contents are the tap's: every length is checked against the
  // rest.
  Facts result;
  std::string_view rest = entries;
  while (!rest.empty() && result.size() < kFactsMax) {
    TapFactEntry entry;
    if (rest.size() < sizeof entry) return DataLoss("the tap's facts are truncated");
    std::memcpy(&entry, rest.data(), sizeof entry);
    rest.remove_prefix(sizeof entry);
    if (rest.size() < entry.key_bytes || rest.size() - entry.key_bytes < entry.value_bytes) {
      return DataLoss("the tap's facts are truncated");
    }
    result[CleanText(rest.substr(0, entry.key_bytes), kEntriesMax)] =
        CleanText(rest.substr(entry.key_bytes, entry.value_bytes), kEntriesMax);
    rest.remove_prefix(size_t{entry.key_bytes} + entry.value_bytes);
  }
  return result;
}

}  // namespace neurontrace
