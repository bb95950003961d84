// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/upload/ack_times.h"
#include "agent/upload/ack_window.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/upload_stream.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// Delivers the queue's chunks to the aggregator: over one Upload call, within a window, in order
// within each stream. After a lost connection everything without an acknowledgement is sent again;
// the aggregator drops what it has. A chunk that is refused permanently is replaced by an empty one
// that reports the loss, so that its stream continues. If the aggregator requests chunks that no
// longer exist here, the first one that does reports the gap. Reconnects with a growing delay.
// Lives on the agent's sequence. Owned by the agent; its counters are exported as metrics.
class Uploader final : public UploadStream::Listener, public DeliveryQueue::Listener {
 public:
  // Since construction; only grow. docs/operator/metrics.md describes them.
  struct Counters {
    uint64_t chunks_sent = 0;  // every time
    uint64_t bytes_sent = 0;
    uint64_t calls = 0;              // Upload calls begun
    uint64_t chunks_refused = 0;     // for good
    uint64_t gaps = 0;               // the aggregator asked for earlier chunks
    uint64_t gone = 0;               // of these, ones that are not here any more
    uint64_t busy = 0;               // the aggregator asked to wait
    uint64_t streams_abandoned = 0;  // what was left of them is lost
    uint64_t answers = 0;
  };

  // All references, and what `connector` refers to, outlive the uploader.
  Uploader(DeliveryQueue& queue, UploadConnector connector, TaskRunner& runner, const Clock& clock,
           Random& random, uint32_t unacked_max = limits::kUnackedChunksMax);
  ~Uploader() override;

  // True once the aggregator has listed the running captures; false ends the call.
  void SetEnabled(bool enabled);

  // Takes the cursors of a welcome: chunks before them are stored and need not be sent. Called
  // before SetEnabled(true), so that nothing is sent that the aggregator already has.
  void HandleCursors(const CaptureId& capture_id, const std::vector<StreamCursor>& cursors);
  // The capture is over at the aggregator: what is left of it is given up.
  void ForgetCapture(const CaptureId& capture_id);
  // ForgetAllBut: the aggregator has listed all captures that it knows, and others have ended.
  void ForgetAllBut(const std::set<CaptureId>& captures);

  // Returns true while a call is open, whether or not the aggregator answers.
  bool connected() const { return stream_ != nullptr; }
  // Chunks sent and not acknowledged.
  size_t unacked() const { return window_.in_flight(); }
  const Counters& counters() const { return counters_; }
  // Times from when a chunk was first sent in the current call to its acknowledgement.
  const AckTimes& ack_times() const { return ack_times_; }

  // UploadStream::Listener
  void OnWritten() override;
  void OnAck(const v1::UploadAck& ack) override;
  void OnClosed(const absl::Status& status) override;

  // DeliveryQueue::Listener
  void OnReady(StreamNumber stream) override;
  void OnLoaded(StreamNumber stream, bool try_later) override;
  void OnFirstDropped(StreamNumber stream) override;
  void OnUnsentDropped(StreamNumber stream) override;

 private:
  // A stream that had to send earlier chunks again. Refusals of what was still under way then carry
  // no new information.
  struct GoingBack {
    uint64_t asked_for = 0;
    uint32_t first_refused = 0;  // how often the first chunk, which says what is gone, was refused
  };

  // Starts a call, unless one is open; everything without an acknowledgement is sent again. Does
  // nothing while disabled.
  void Connect();
  // Restarts a call that gets no acknowledgement although chunks are under way. Checked every
  // kSilenceMaxNs of uploader.cc for as long as the call lasts.
  void WatchForSilence(uint64_t answers_before);
  // Sends what the window allows, one chunk at a time.
  void Pump();
  // Writes one chunk, with the gap before it if there is one.
  void Send(StreamNumber stream, DeliveryQueue::Entry& entry);
  void RecordAckTime(const DeliveryQueue::Entry& entry);
  // Settles the chunks before `next_sequence`, which the aggregator has stored.
  void HandleStored(StreamNumber stream, uint64_t next_sequence);
  // Handles a refusal by its code; what a code means is in proto/neurontrace/v1.
  void HandleRefusal(StreamNumber stream, const v1::UploadAck& ack);
  // Replaces a chunk that is refused permanently by one that reports the loss.
  void Replace(StreamNumber stream, const v1::UploadAck& ack);
  // The aggregator lacks earlier chunks of the stream.
  void HandleGap(StreamNumber stream, const v1::UploadAck& ack);
  // Sends the stream again from `sequence` on.
  void GoBack(StreamNumber stream, uint64_t sequence);
  // Sends nothing of the stream for about this long.
  void PauseFor(StreamNumber stream, uint32_t delay_ms);
  // Gives the stream up with everything that is left of it.
  void Abandon(StreamNumber stream, const std::string& reason);
  void After(uint64_t delay_ns, std::function<void()> task);  // unless destroyed by then

  DeliveryQueue& queue_;
  const UploadConnector connector_;
  TaskRunner& runner_;
  const Clock& clock_;
  Random& random_;
  Backoff backoff_;
  AckWindow window_;
  bool enabled_ = false;
  // A timer for Connect is pending, so that two of them never run at once.
  bool reconnecting_ = false;
  // A Write waits for OnWritten; the stream takes one at a time.
  bool writing_ = false;
  uint64_t call_begun_ns_ = 0;
  uint64_t call_number_ = 0;  // tells a timer of an earlier call from one of this
  std::unique_ptr<UploadStream> stream_;
  std::map<StreamNumber, GoingBack> rewinding_;
  Counters counters_;
  AckTimes ack_times_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
