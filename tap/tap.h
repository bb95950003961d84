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

// The work of the tap's thread: follows the runtime's life cycle, serves the agent's commands, runs
// the trace and keeps the shared buffer's header and facts up to date. Step() does everything that
// is due and never waits; the thread sleeps between steps. One thread, except for CloseDescriptors.
// All times are ns of CLOCK_MONOTONIC.
namespace neurontrace::tap {

class Tap {
 public:
  static constexpr uint64_t kOrphanTimeoutNs = kTapOrphanTimeoutSeconds * kNsPerSecond;
  // A refused start is tried again after this time, each time twice as late.
  static constexpr uint64_t kStartRetryFirstNs = 5 * kNsPerSecond;
  static constexpr uint64_t kStartRetryMaxNs = 60 * kNsPerSecond;
  // After a capture the ring's memory is freed once the agent has committed all of it. This is
  // checked after this time, and then each time twice as late.
  static constexpr uint64_t kGiveBackFirstNs = kNsPerSecond;
  static constexpr uint64_t kGiveBackMaxNs = 64 * kNsPerSecond;
  static constexpr uint32_t kCommandsPerStep = 16;
  static constexpr uint64_t kAheadMaxNs = kTapAheadMaxSeconds * kNsPerSecond;
  // A tap that began a capture at a planned moment tells its agent only this long after it. The
  // taps of one machine wake at the same moment, and none should wait for a processor while agents
  // handle the news of the others.
  static constexpr uint64_t kQuietAfterBeginNs = 5 * kNsPerMs;

  Tap() = default;
  ~Tap();
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  // Creates the shared buffer. Returns false if the system refuses. All pointers must outlive the
  // tap.
  bool Open(RuntimeGate* gate, WorkerFacts* worker_facts, const NrtLibrary* library,
            const TapClock* clock, const char* socket_path, uint64_t ring_bytes);

  // Does what is due. Returns when to be called next at the latest, or kNeverNs.
  uint64_t Step();
  // Waits until `deadline_ns`, a wake-up of the gate, or a packet of the agent.
  void Sleep(uint64_t deadline_ns);

  // Called in a forked child: closes the inherited descriptors of the parent's tap, which is never
  // used again there. The mapping of the buffer is not inherited (MADV_DONTFORK).
  void CloseDescriptors();

  const SharedBuffer& buffer() const { return buffer_; }

 private:
  // Why the runtime refused the last start.
  enum class Refusal : uint8_t { kNone, kBusy, kFailed };
  // A COLLECT that waits for its time.
  struct Collection {
    uint8_t capture_id[kTapCaptureIdBytes];
    uint64_t at_ns;
  };

  // The parts of a step, in the order of Step().
  void ReleaseIfAsked();
  void FollowLifecycle();
  void WriteLifecycle(TapLifecycleEvent event);
  void ServeAgent(uint64_t now_ns);
  void ServePacket(long size, uint64_t now_ns);
  void HandleStart(uint64_t now_ns);
  void HandleStop(uint64_t now_ns);
  void HandleCollect(uint64_t now_ns);
  bool StopCollection(const uint8_t* capture_id, uint64_t now_ns);
  // Answers the command that is being served.
  void Answer(TapResult result, const uint8_t* capture_id, const char* detail, uint64_t now_ns);
  // Sends a status about `command`, also outside of its handler.
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
  uint64_t begin_at_ns_ = 0;        // the trace does not start before
  uint64_t quiet_until_ns_ = 0;     // no state is published and no agent is woken before
  uint64_t stop_at_ns_ = kNeverNs;  // of what is wanted
  uint64_t start_at_ns_ = 0;
  uint64_t start_pause_ns_ = kStartRetryFirstNs;
  NrtStatus nrt_status_ = kNrtSuccess;
  CaptureSpec spec_;  // valid while wanted_

  uint32_t collection_count_ = 0;
  Collection collections_[kTapCollectsMax] = {};  // that wait for their time
  Collection collecting_ = {};                    // while trace_ does
  // The last ids that were collected: an agent that was restarted repeats its commands.
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
  AgentCommand command_;  // valid while a packet is served, like packet_
  uint8_t packet_[kTapMessageBytesMax];
};

// Returns the name of a state as the facts and the agent show it.
const char* TapStateName(TapState state);

}  // namespace neurontrace::tap
