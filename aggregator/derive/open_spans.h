// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// What is under way on each thread: operations of a framework, and the runtime's calls in them.
// Spans must be added in the order of their starts. Used by one thread at a time.
class OpenSpans {
 public:
  // Spans of one thread that are under way. Beyond, the outer half is forgotten.
  static constexpr size_t kDepthMax = 4'096;
  // Spans and threads together. Beyond, what has ended is removed; if most has not, all is
  // forgotten.
  static constexpr size_t kOpenMax = 262'144;
  // Spans that Find examines, beginning with the innermost: files may contain spans that enclose
  // nothing.
  static constexpr size_t kSearchMax = 64;

  struct Thread {
    uint32_t worker = 0;
    uint64_t thread_id = 0;
    friend bool operator==(const Thread&, const Thread&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Thread& thread) {
      return H::combine(std::move(h), thread.worker, thread.thread_id);
    }
  };
  // An operation or a call.
  struct Span {
    uint64_t end_ns = 0;
    // The chain of an operation; 0 for a call.
    uint64_t chain = 0;
    std::optional<uint64_t> nrta_seq_id = {};  // of a call
    // Set by Add.
    uint64_t start_ns = 0;
  };
  // Where a span lies among those under way on its thread.
  struct Place {
    // Both enclose it, and are valid until the next call of Find or Add.
    const Span* innermost = nullptr;
    // The innermost operation.
    const Span* operation = nullptr;
    // One of those under way ends before it does.
    bool crosses = false;
  };

  // Returns what encloses a span from start_ns to end_ns on its thread. Takes time for at most
  // kSearchMax spans. Removes spans at the inner end that have ended.
  Place Find(const Thread& thread, uint64_t start_ns, uint64_t end_ns);
  // May forget spans at a limit.
  void Add(const Thread& thread, uint64_t start_ns, const Span& span);

  // Spans that were forgotten while they were under way.
  uint64_t forgotten() const { return forgotten_; }

 private:
  // Removes what has ended; forgets everything if that is not enough.
  void Sweep(uint64_t now_ns);

  absl::flat_hash_map<Thread, std::vector<Span>> threads_;
  size_t open_ = 0;  // over all threads; may have ended
  uint64_t forgotten_ = 0;
};

}  // namespace neurontrace
