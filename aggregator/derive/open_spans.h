// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// What is under way on each thread: operations of a framework, and calls of the runtime in them.
// Spans come in the order of their starts. One thread at a time.
class OpenSpans {
 public:
  // Spans of one thread under way. Beyond, the outer half is forgotten.
  static constexpr size_t kDepthMax = 4'096;
  // Spans and threads, over all. Beyond, what has ended is swept; if most has not, all is
  // forgotten.
  static constexpr size_t kOpenMax = 262'144;
  // So many are looked at, from the innermost on: files may have spans that enclose nothing.
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
  struct Span {
    uint64_t end_ns = 0;
    uint64_t chain = 0;                        // of an operation; 0: a call
    std::optional<uint64_t> nrta_seq_id = {};  // of a call
    uint64_t start_ns = 0;                     // set by Add
  };
  struct Place {
    // These enclose it; valid until the next call of Add.
    const Span* innermost = nullptr;
    const Span* operation = nullptr;  // the innermost one
    bool crosses = false;             // of those under way one ends before it does
  };

  // What a span from start_ns to end_ns lies in, on its thread.
  Place Find(const Thread& thread, uint64_t start_ns, uint64_t end_ns);
  void Add(const Thread& thread, uint64_t start_ns, const Span& span);

  // Spans that were forgotten while they were under way.
  uint64_t forgotten() const { return forgotten_; }

 private:
  void Sweep(uint64_t now_ns);

  absl::flat_hash_map<Thread, std::vector<Span>> threads_;
  size_t open_ = 0;  // over all threads; may have ended
  uint64_t forgotten_ = 0;
};

}  // namespace neurontrace
