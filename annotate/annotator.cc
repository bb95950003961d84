// SPDX-License-Identifier: Apache-2.0
#include "annotate/annotator.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "annotate/annotation_ring.h"
#include "annotate/nvtx_abi.h"
#include "tap/agent_protocol.h"
#include "tap/detached_thread.h"
#include "tap/shared_buffer.h"

namespace neurontrace::annotate {

namespace {

constexpr size_t kThreadStackBytes = 128 * 1024;
// Orders that are handled before the thread sleeps again.
constexpr int kPacketsPerStep = 16;

constinit Annotator process_annotator;

// What a thread of the application knows of itself. `process` tells a forked child that the rest
// is its parent's.
struct ThreadState {
  uint32_t process;
  uint32_t thread_id;
  uint32_t ring_plus_one;      // 0: it has none
  uint32_t refused_recording;  // no ring was free in this recording; not tried again
};
thread_local ThreadState thread_state;

void HandleForkedChild() { process_annotator.OnForkedChild(); }

// Returns whether the thread has ended. Threads of other processes cannot be in the table.
bool HasEnded(uint32_t thread_id) {
  const int saved = errno;
  const bool ended = syscall(SYS_tgkill, getpid(), thread_id, 0) != 0 && errno == ESRCH;
  errno = saved;
  return ended;
}

}  // namespace

Annotator& ProcessAnnotator() { return process_annotator; }

bool Annotator::Start() {
  uint32_t expected = kNotStarted;
  // The gate is shut first, so that this happens once, however many threads come.
  if (!gate_.compare_exchange_strong(expected, kIdle, std::memory_order_relaxed)) return false;
  if (!fork_handled_) {
    fork_handled_ = true;
    pthread_atfork(nullptr, nullptr, &HandleForkedChild);
  }
  // Without a thread the process stays unrecorded.
  tap::StartDetachedThread(&ThreadMain, this, kThreadStackBytes);
  return false;
}

void* Annotator::ThreadMain(void* self) {
  auto* const annotator = static_cast<Annotator*>(self);
  prctl(PR_SET_NAME, "nt-annotate");
  const char* path = getenv(kTapAgentSocketEnv);
  if (path == nullptr || path[0] == '\0') path = kTapAgentSocketDefault;
  annotator->connection_.SetPath(path);
  for (;;) annotator->Step();
  return nullptr;
}

void Annotator::Step() {
  uint64_t now_ns = tap::kSystemTapClock.monotonic_ns();
  if (connection_.ConnectIfDue(now_ns)) SendHello(now_ns);
  Receive(now_ns);
  if (gate_.load(std::memory_order_relaxed) == kRecording && !connection_.connected() &&
      now_ns - connection_.disconnected_since_ns() >= kTapOrphanTimeoutSeconds * kNsPerSecond) {
    SetRecording(false);
  }
  now_ns = tap::kSystemTapClock.monotonic_ns();
  const uint64_t retry_ns = connection_.RetryAtNs();
  // Connected, it sleeps until the agent says something or disappears.
  int timeout_ms = -1;
  if (retry_ns != tap::kNeverNs) {
    const uint64_t wait_ns = retry_ns > now_ns ? retry_ns - now_ns : 0;
    timeout_ms = static_cast<int>(wait_ns / tap::kNsPerMs) + 1;
  }
  pollfd watched = {connection_.fd(), POLLIN, 0};
  // poll(2) ignores a negative descriptor.
  poll(&watched, 1, timeout_ms);
}

void Annotator::SendHello(uint64_t now_ns) {
  if (!CreateBuffer()) {
    connection_.Drop(now_ns, true);
    return;
  }
  TapHello hello = {};
  hello.header = {kTapMessageMagic, kTapProtocolVersion,
                  static_cast<uint16_t>(TapMessageType::kAnnotateHello), sizeof hello, 0};
  hello.claimed_pid = static_cast<uint32_t>(getpid());
  hello.claimed_uid = static_cast<uint32_t>(getuid());
  hello.process_start_ticks = tap::ProcessStartTicks();
  hello.buffer_bytes = kAnnotationBufferBytes;
  hello.protocol_newest = kTapProtocolVersion;
  strncpy(hello.tap_version, NEURONTRACE_VERSION, sizeof hello.tap_version - 1);
  connection_.SendHello(hello, memfd_, now_ns);
}

void Annotator::Receive(uint64_t now_ns) {
  for (int i = 0; i < kPacketsPerStep && connection_.connected(); ++i) {
    TapAnnotate order = {};
    const long size = connection_.Receive(reinterpret_cast<uint8_t*>(&order), sizeof order, now_ns);
    if (size <= 0) return;
    const bool is_valid = size == sizeof order && order.header.magic == kTapMessageMagic &&
                          order.header.version == kTapProtocolVersion &&
                          order.header.length == sizeof order &&
                          order.header.type == static_cast<uint16_t>(TapMessageType::kAnnotate);
    if (!is_valid || !connection_.TakeCommandToken(now_ns)) {
      connection_.Drop(now_ns, true);
      return;
    }
    SetRecording(order.recording != 0);
  }
}

bool Annotator::CreateBuffer() {
  if (base_ != nullptr) return true;
  uint8_t* const base =
      tap::MapSealedMemfd("neurontrace_annotations", kAnnotationBufferBytes, &memfd_);
  if (base == nullptr) return false;
  base_ = base;
  InitAnnotationHeader(header());
  return true;
}

// The number changes before the gate opens, so that no call of this recording has that of another.
void Annotator::SetRecording(bool recording) {
  const bool is_recording = gate_.load(std::memory_order_relaxed) == kRecording;
  if (recording == is_recording) return;
  if (recording) recording_.fetch_add(1, std::memory_order_relaxed);
  gate_.store(recording ? kRecording : kIdle, std::memory_order_release);
}

uint32_t Annotator::RingOfThread() {
  ThreadState& self = thread_state;
  const uint32_t process = process_.load(std::memory_order_relaxed);
  if (self.process != process) {
    self = {process, static_cast<uint32_t>(syscall(SYS_gettid)), 0, 0};
  }
  if (self.ring_plus_one != 0) return self.ring_plus_one - 1;
  const uint32_t recording = recording_.load(std::memory_order_relaxed);
  // A search is a few dozen system calls, so a thread makes one for each recording.
  if (self.refused_recording == recording) return kNoRing;
  const uint32_t found = ClaimRing(self.thread_id);
  if (found == kNoRing) {
    self.refused_recording = recording;
  } else {
    self.ring_plus_one = found + 1;
  }
  return found;
}

// A ring with this thread's id was that of an ended thread, as ids of living threads differ.
uint32_t Annotator::ClaimRing(uint32_t thread_id) {
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    uint32_t owner = writers_[i].thread_id.load(std::memory_order_acquire);
    if (owner != 0 && owner != thread_id) continue;
    if (writers_[i].thread_id.compare_exchange_strong(owner, thread_id,
                                                      std::memory_order_acq_rel)) {
      writers_[i].recording = 0;
      return i;
    }
  }
  for (uint32_t i = 0; i < kAnnotationRings; ++i) {
    uint32_t owner = writers_[i].thread_id.load(std::memory_order_acquire);
    if (!HasEnded(owner)) continue;
    if (writers_[i].thread_id.compare_exchange_strong(owner, thread_id,
                                                      std::memory_order_acq_rel)) {
      writers_[i].recording = 0;
      return i;
    }
  }
  return kNoRing;
}

uint16_t Annotator::LevelOf(Writer& writer, AnnotationType type, uint16_t domain,
                            uint32_t recording) {
  if (writer.recording != recording) {
    memset(writer.levels, 0, sizeof writer.levels);
    writer.recording = recording;
  }
  uint16_t& level = writer.levels[domain];
  if (type == AnnotationType::kPop) return level == 0 ? kAnnotationNoLevel : --level;
  // Deeper levels are not told apart, which only costs the pairing of these.
  return level < kAnnotationNoLevel - 1 ? level++ : level;
}

int Annotator::Record(const Annotation& annotation) {
  const uint32_t index = RingOfThread();
  if (index == kNoRing) {
    header().dropped_without_ring.fetch_add(1, std::memory_order_relaxed);
    return kNvtxNoPushPopTracking;
  }
  Writer& writer = writers_[index];
  const NamedDomain& domain = *annotation.domain;
  AnnotationRecord record = {};
  record.type = static_cast<uint8_t>(annotation.type);
  record.recording = recording_.load(std::memory_order_relaxed);
  const bool is_stacked =
      annotation.type == AnnotationType::kPush || annotation.type == AnnotationType::kPop;
  if (is_stacked) record.level = LevelOf(writer, annotation.type, domain.index, record.recording);
  record.payload_type = static_cast<uint8_t>(annotation.payload_type);
  record.payload = annotation.payload;
  record.range_id = annotation.range_id;
  record.thread_id = thread_state.thread_id;
  record.category = annotation.category;
  record.color = annotation.color;
  record.domain = domain.index;
  record.flags =
      static_cast<uint16_t>((annotation.is_message_cut ? kAnnotationFlagMessageCut : 0) |
                            (annotation.is_payload_unknown ? kAnnotationFlagPayloadUnknown : 0) |
                            (annotation.has_color ? kAnnotationFlagColor : 0));
  const CategoryName category = names_.FindCategory(domain, annotation.category);
  record.domain_bytes = domain.bytes;
  record.category_bytes = category.bytes;
  record.message_bytes = static_cast<uint16_t>(annotation.message_bytes);
  // Read as late as possible for a begin; the difference to an end is some ten nanoseconds.
  record.realtime_ns = tap::kSystemTapClock.realtime_ns();
  WriteAnnotation(ring(index), record, {domain.name, category.text, annotation.message});
  return record.level == kAnnotationNoLevel ? kNvtxNoPushPopTracking : record.level;
}

// The parent's locks may be held by threads that do not exist here. The mapping is not inherited.
void Annotator::OnForkedChild() {
  connection_.CloseDescriptors();
  if (memfd_ >= 0) close(memfd_);
  memfd_ = -1;
  base_ = nullptr;
  new (&connection_) tap::AgentConnection();
  names_.OnForkedChild();
  for (Writer& writer : writers_) writer.thread_id.store(0, std::memory_order_relaxed);
  process_.fetch_add(1, std::memory_order_relaxed);
  gate_.store(kNotStarted, std::memory_order_relaxed);
}

}  // namespace neurontrace::annotate
