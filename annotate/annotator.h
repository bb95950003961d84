// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "annotate/annotation_format.h"
#include "annotate/name_table.h"
#include "tap/agent_connection.h"

namespace neurontrace::annotate {

// One call of the application, before its texts are looked up.
struct Annotation {
  AnnotationType type = AnnotationType::kMark;
  const NamedDomain* domain = nullptr;
  const char* message = nullptr;
  uint32_t message_bytes = 0;
  bool is_message_cut = false;
  uint32_t category = 0;
  bool has_color = false;
  uint32_t color = 0;
  AnnotationPayload payload_type = AnnotationPayload::kNone;
  bool is_payload_unknown = false;
  uint64_t payload = 0;
  uint64_t range_id = 0;
};

// Records the annotations of this process while the agent asks for them. The application's threads
// write to rings of the shared buffer and never wait. A thread of its own connects to the agent's
// socket, passes the buffer to it, and switches the recording on and off as the agent says. It is
// started by the first annotation, and by the first one in a forked child.
//
// Without an agent nothing is allocated but the thread. If the agent disappears during a recording
// and does not return for kTapOrphanTimeoutSeconds, the recording ends. Zero-initialised and never
// destroyed; see ProcessAnnotator.
// thread: annotate: talks to the agent, else sleeps
class Annotator {
 public:
  // Returns whether the call is to be recorded: one relaxed load if it is not. Any thread.
  bool IsRecording() {
    const uint32_t gate = gate_.load(std::memory_order_relaxed);
    if (gate == kIdle) return false;
    // Acquire: what was prepared for the recording is seen.
    return gate_.load(std::memory_order_acquire) == kRecording || Start();
  }

  // Records one call. Returns the level of a kPush or kPop, else 0. Any thread, after IsRecording
  // returned true.
  int Record(const Annotation& annotation);
  // Returns an id for a kStart, which no other range of this process has.
  uint64_t NextRangeId() { return next_range_.fetch_add(1, std::memory_order_relaxed) + 1; }

  NameTable& names() { return names_; }

  // Creates the shared buffer if there is none; returns false if the system refuses. Called on the
  // annotate thread; public for tests, which have none.
  bool CreateBuffer();
  // Switches the recording. Called as CreateBuffer is, which must have succeeded before.
  void SetRecording(bool recording);
  uint8_t* buffer() const { return base_; }

  // Called in a forked child: forgets the parent's buffer, connection and rings.
  void OnForkedChild();

 private:
  // Values of gate_. The first annotation starts the thread.
  static constexpr uint32_t kNotStarted = 0;
  static constexpr uint32_t kIdle = 1;
  static constexpr uint32_t kRecording = 2;
  static constexpr uint32_t kNoRing = UINT32_MAX;

  // The writer of a ring. Its thread alone uses `recording` and `levels`.
  struct Writer {
    std::atomic<uint32_t> thread_id;         // 0: the ring is free
    uint32_t recording;                      // the recording that `levels` are of
    uint16_t levels[kAnnotationDomainsMax];  // open ranges, by domain
  };

  // Starts the thread, once. Returns false.
  bool Start();
  static void* ThreadMain(void* self);
  // One round of the annotate thread: connects, handles orders, sleeps.
  void Step();
  void SendHello(uint64_t now_ns);
  // Handles the agent's packets that wait.
  void Receive(uint64_t now_ns);

  // Returns the ring of the calling thread, claimed if it had none; kNoRing if all are in use.
  uint32_t RingOfThread();
  uint32_t ClaimRing(uint32_t thread_id);
  AnnotationRingHeader& ring(uint32_t index) const {
    return *reinterpret_cast<AnnotationRingHeader*>(base_ + kAnnotationHeaderBytes +
                                                    index * kAnnotationRingSpan);
  }
  AnnotationBufferHeader& header() const {
    return *reinterpret_cast<AnnotationBufferHeader*>(base_);
  }
  // Returns the level of a push or pop, and counts it. kAnnotationNoLevel: not known.
  uint16_t LevelOf(Writer& writer, AnnotationType type, uint16_t domain, uint32_t recording);

  std::atomic<uint32_t> gate_{kNotStarted};
  std::atomic<uint32_t> recording_{0};  // the number of the recording, from 1
  std::atomic<uint32_t> process_{1};    // differs between a process and its forked children
  std::atomic<uint64_t> next_range_{0};
  NameTable names_;
  Writer writers_[kAnnotationRings] = {};

  // Set before the first recording, and constant until a fork.
  uint8_t* base_ = nullptr;
  int memfd_ = -1;

  // Of the annotate thread.
  tap::AgentConnection connection_;
  bool fork_handled_ = false;
};

// Returns the only annotator of this process, as NVTX's functions have no object to keep it in.
Annotator& ProcessAnnotator();

}  // namespace neurontrace::annotate
