// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "annotate/annotation_format.h"

namespace neurontrace {

// One record of a process's rings, copied to the agent's memory and checked. The texts are cleaned.
struct ReadAnnotation {
  AnnotationRecord record = {};
  std::string domain;
  std::string category;
  std::string message;
};

// The agent's side of the buffer of annotate/annotation_format.h
// (docs/formats/annotation_buffer.md). The other side is not trusted: it may write anything into
// the memory, at any time. So positions are checked against those seen before, a record is copied
// before it is examined, and nothing read from the memory is used as a length without a check.
// Works after the process's death too. Used by one thread at a time.
class AnnotationReader {
 public:
  // Maps the file; `memfd` remains the caller's. Fails with INVALID_ARGUMENT unless it is a sealed
  // memory file with the layout of this version; the message has the reason.
  static absl::StatusOr<std::unique_ptr<AnnotationReader>> Open(int memfd);
  // Reads memory that the caller owns and that outlives the reader; for tests and fuzzing. `memory`
  // has kAnnotationBufferBytes.
  static absl::StatusOr<std::unique_ptr<AnnotationReader>> Over(void* memory);
  ~AnnotationReader();
  AnnotationReader(const AnnotationReader&) = delete;
  AnnotationReader& operator=(const AnnotationReader&) = delete;

  // Takes the next record of a ring, whose room the process may use again; returns false if there
  // is none. Fails with DATA_LOSS if the ring is not valid; nothing can be read from the buffer any
  // more then. Records of unknown types are returned too.
  absl::StatusOr<bool> Next(uint32_t ring, ReadAnnotation& read);
  // Returns how many records were dropped since the last call. Fails with DATA_LOSS if a counter
  // moved back.
  absl::StatusOr<uint64_t> TakeDropped();

  ino_t inode() const { return inode_; }

 private:
  AnnotationReader(uint8_t* base, bool mapped) : base_(base), mapped_(mapped) {}
  absl::Status CheckHeader();
  AnnotationBufferHeader& header() const {
    return *reinterpret_cast<AnnotationBufferHeader*>(base_);
  }
  AnnotationRingHeader& ring(uint32_t index) const {
    return *reinterpret_cast<AnnotationRingHeader*>(base_ + kAnnotationHeaderBytes +
                                                    index * kAnnotationRingSpan);
  }
  // Copies bytes of a ring, which may wrap around.
  void CopyOut(uint32_t index, uint64_t position, char* to, size_t bytes) const;

  uint8_t* const base_;
  const bool mapped_;
  ino_t inode_ = 0;
  std::array<uint64_t, kAnnotationRings> positions_{};    // where reading continues
  std::array<uint64_t, kAnnotationRings + 1> dropped_{};  // as last seen; the last is the header's
};

}  // namespace neurontrace
