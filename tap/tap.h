// SPDX-License-Identifier: Apache-2.0
// What the tap's thread does: follows the runtime's life cycle, serves the agent's commands, runs
// the trace and keeps the shared buffer's header and facts true. Step() does what is to be done now
// and never waits; the thread sleeps between steps. One thread, but for CloseDescriptors.
#pragma once

#include "tap/agent_connection.h"
#include "tap/capture_spec.h"
#include "tap/nrt_library.h"
#include "tap/ring_writer.h"
#include "tap/runtime_gate.h"
#include "tap/runtime_trace.h"
#include "tap/shared_buffer.h"
#include "tap/worker_facts.h"

namespace neurontrace::tap {

class Tap {
 public:
  static constexpr uint64_t kOrphanTimeoutNs = kTapOrphanTimeoutSeconds * kNsPerSecond;
  // A refused start is tried again this much later, each time twice as late.
  static constexpr uint64_t kStartRetryFirstNs = 5 * kNsPerSecond;
  static constexpr uint64_t kStartRetryMaxNs = 60 * kNsPerSecond;
  // After a capture the ring's pages are given back once the agent has committed all of it: looked
  // at after this time, and twice as late each time.
  static constexpr uint64_t kGiveBackFirstNs = kNsPerSecond;
  static constexpr uint64_t kGiveBackMaxNs = 64 * kNsPerSecond;
  static constexpr uint32_t kCommandsPerStep = 16;
  static constexpr uint64_t kAheadMaxNs = kTapAheadMaxSeconds * kNsPerSecond;
  // Who begins at a moment tells its agent this long after it: the taps of one machine wake at the
  // same moment, and none is to wait for a processor behind what agents do with the others' news.
  static constexpr uint64_t kQuietAfterBeginNs = 5 * kNsPerMs;

  Tap() = default;
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // Makes the shared buffer; false where the system refuses. All of the arguments outlive the tap.
  bool Open(RuntimeGate* gate, WorkerFacts* worker_facts, const NrtLibrary* library,
            const TapClock* clock, const char* socket_path, uint64_t ring_bytes);

  // Returns when to be called next at the latest (monotonic ns), or kNeverNs.
  uint64_t Step();
  // Waits until `deadline_ns`, a wake-up of the gate, or something from the agent.
  void Sleep(uint64_t deadline_ns);

  // In a forked child: closes what it inherited of the parent's tap, which is never used again
  // there. The mapping of the buffer was not inherited (MADV_DONTFORK).
  void CloseDescriptors();

  const SharedBuffer& buffer() const { return buffer_; }

 private:
  enum class Refusal : uint8_t { kNone, kBusy, kFailed };
  struct Collection {
    uint8_t capture_id[kTapCaptureIdBytes];
    uint64_t at_ns;
  };

  void ReleaseIfAsked();
  void FollowLifecycle();
  void WriteLifecycle(TapLifecycleEvent event);
  void ServeAgent(uint64_t now_ns);
  void ServePacket(long size, uint64_t now_ns);
  void HandleStart(uint64_t now_ns);
  void HandleStop(uint64_t now_ns);
  void HandleCollect(uint64_t now_ns);
  bool StopCollection(const uint8_t* capture_id, uint64_t now_ns);
  void Answer(TapResult result, const uint8_t* capture_id, const char* detail, uint64_t now_ns);
  void Tell(TapMessageType command, TapResult result, const uint8_t* capture_id, const char* detail,
            uint64_t now_ns);
  void StopCapture(uint64_t now_ns);
  void StopIfDue(uint64_t now_ns);
  void CollectIfDue(uint64_t now_ns);
  void NoteCollected(uint64_t now_ns);
  void ForgetCollections(uint64_t now_ns);
  bool IsWaiting(const uint8_t* capture_id) const;
  bool WasCollected(const uint8_t* capture_id) const;
  uint64_t NextCollectionNs() const;
  void StopOrphan(uint64_t now_ns);
  void StartIfWanted(uint64_t now_ns);
  void NoteStart(const RuntimeTrace::Start& start, uint64_t now_ns);
  void StopTrace(TapStopReason reason);
  void DrainIfDue(uint64_t now_ns);
  void LoseTrace(uint64_t now_ns);
  void RetryStartLater(Refusal refusal, uint64_t now_ns);
  TapState CurrentState() const;
  void PublishState(uint64_t now_ns);
  void ExplainState();
  void PublishFacts();
  void NotifyConsumer();
  void GiveMemoryBack(uint64_t now_ns);
  uint64_t NextDeadlineNs() const;

  RuntimeGate* gate_ = nullptr;
  WorkerFacts* worker_facts_ = nullptr;
  const NrtLibrary* library_ = nullptr;
  const TapClock* clock_ = nullptr;

  SharedBuffer buffer_;
  RingWriter ring_;
  RuntimeTrace trace_;
  FactsWriter facts_;
  RuntimeFacts runtime_facts_;
  AgentConnection connection_;

  RuntimeGate::View view_ = {};
  uint32_t inits_seen_ = 0;
  uint32_t closes_seen_ = 0;
  bool exit_told_ = false;
  uint8_t profilers_seen_ = 0;

  bool wanted_ = false;   // the agent wants spec_ recorded
  bool resumed_ = false;  // spec_'s trace ran before
  Refusal refusal_ = Refusal::kNone;
  uint64_t begin_at_ns_ = 0;        // not before
  uint64_t quiet_until_ns_ = 0;     // nobody is told about anything before
  uint64_t stop_at_ns_ = kNeverNs;  // of what is wanted
  uint64_t start_at_ns_ = 0;
  uint64_t start_pause_ns_ = kStartRetryFirstNs;
  NrtStatus nrt_status_ = kNrtSuccess;
  CaptureSpec spec_;  // valid while wanted_

  uint32_t collection_count_ = 0;
  Collection collections_[kTapCollectsMax] = {};  // that wait for their time
  Collection collecting_ = {};                    // while trace_ does
  // So that what is asked again by an agent that came back is not done again.
  uint32_t collected_next_ = 0;
  uint8_t collected_[kTapCollectsMax][kTapCaptureIdBytes] = {};

  TapState state_ = TapState::kNotInitialised;
  bool state_published_ = false;
  uint64_t give_back_at_ns_ = kNeverNs;
  uint64_t give_back_pause_ns_ = kGiveBackFirstNs;
  uint64_t facts_version_ = 0;
  bool facts_stale_ = true;
  bool facts_are_news_ = false;
  uint64_t notified_pos_ = 0;
  char detail_[kTapStatusDetailBytesMax] = {};
  AgentCommand command_;  // this and the packet: only while one is served
  uint8_t packet_[kTapMessageBytesMax];
};

const char* TapStateName(TapState state);

}  // namespace neurontrace::tap
