// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "agent/clock/exchange_sink.h"
#include "agent/clock/probe_access.h"
#include "agent/clock/probe_stream.h"
#include "agent/clock/udp_prober.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {

// Probes the aggregator's time in a gRPC call of its own, one question after the answer to the
// previous one, so that none waits behind another. Its intervals are wider than those over UDP,
// since neither end sees kernel timestamps. Lives on the sequence of `runner`; connector's objects,
// `clocks` and `runner` outlive it.
class StreamProber final : private ProbeStream::Listener {
 public:
  struct Counters {
    // gRPC calls started, and questions asked in them.
    uint64_t calls = 0;
    uint64_t sent = 0;
    uint64_t answered = 0;
    // Answers that belong to no open question, or whose times contradict each other.
    uint64_t refused = 0;
  };

  // `exchanges` receives each answered question, and outlives this.
  StreamProber(ProbeConnector connector, const HostClocks& clocks, TaskRunner& runner,
               ExchangeSink& exchanges);
  ~StreamProber() override;

  // Asks `probes` times, in a call that is started if none is open. Questions that are still to be
  // asked from an earlier Send are replaced, not added. An answer later than a second is ignored.
  void Send(int probes);
  // Ends the call. Send starts another one.
  void Disconnect();
  // Returns true from the Send that starts a call until the call is destroyed.
  bool connected() const { return stream_ != nullptr; }

  const Counters& counters() const { return counters_; }

 private:
  // Sends the next question, unless one is being written or unanswered.
  void Pump();
  // ProbeStream::Listener
  void OnReply(const ProbeReply& reply) override;
  void OnWritten() override;
  void OnClosed(const absl::Status& status) override;

  const ProbeConnector connector_;
  const HostClocks& clocks_;
  TaskRunner& runner_;
  ExchangeSink& exchanges_;
  std::unique_ptr<ProbeStream> stream_;
  // Questions of the last Send that are still to be asked.
  int to_send_ = 0;
  // True from a Send of the stream until its OnWritten.
  bool writing_ = false;
  // The number of the last question; it grows over all calls.
  uint64_t sequence_ = 0;
  // False while the last question waits for its answer.
  bool answered_ = true;
  // When the last question was asked, in ns of raw.
  uint64_t send_raw_ns_ = 0;
  Counters counters_;
  WeakTasks weak_tasks_;
};

// Decides when to probe, in beats of 50 ms. Regularly 4 probes twice a second: the exchange with
// the smallest round trip bounds the offset best (Mills, RFC 5905, clock filter), so a few are
// worth more than their mean. After a start, and whenever the clocks may have changed, 64 probes in
// half a second, so that a timeline is good from its beginning. A plain value.
class ProbeSchedule {
 public:
  // Regularly, kProbesPerBurst probes are sent in one of this many beats.
  static constexpr int kBeatsPerBurst = 10;
  static constexpr int kProbesPerBurst = 4;
  static constexpr int kProbesAtOnce = 7;  // in a beat of a rush
  static constexpr int kProbesPerRush = 64;
  static constexpr int kBeatsPerSecond = 20;
  static_assert(2 * kProbesPerBurst * kBeatsPerSecond / kBeatsPerBurst <=
                        int{limits::kProbesPerSecondMax} &&
                    4 * kProbesPerRush <= int{limits::kProbesAtOnceMax},
                "far below what an aggregator answers");

  // `phase` is any number, different for each agent, so that the agents of a fleet do not ask in
  // step.
  explicit ProbeSchedule(uint64_t phase)
      : beats_to_burst_(1 + static_cast<int>(phase % kBeatsPerBurst)) {}

  // Starts a rush; one that is under way starts again.
  void Rush() { rush_ = kProbesPerRush; }
  // Returns how many probes to send in this beat.
  int Beat() {
    const bool burst = --beats_to_burst_ <= 0;
    if (burst) beats_to_burst_ = kBeatsPerBurst;
    if (rush_ > 0) {
      const int probes = rush_ < kProbesAtOnce ? rush_ : kProbesAtOnce;
      rush_ -= probes;
      return probes;
    }
    return burst ? kProbesPerBurst : 0;
  }

 private:
  // Beats until the next regular burst, which is skipped during a rush.
  int beats_to_burst_;
  // Probes of the current rush that are still to be sent.
  int rush_ = 0;
};

// How an agent probes the time of its aggregator; the option --clock-probes.
enum class ProbeMode : uint8_t {
  // Over UDP, and in a gRPC call for as long as that gets no answers.
  kAuto,
  // Over UDP only, whether answers come or not.
  kUdp,
  // In a gRPC call only.
  kGrpc,
  kOff
};

// Decides when and by which way the aggregator is probed. Lives on one sequence, on which Beat is
// called every 50 ms; the probers outlive it. Nothing fails: without answers the aggregator widens
// its bounds.
class ClockProber {
 public:
  // In kAuto, probes change to gRPC after this many beats without an answer over UDP, although
  // there were questions. UDP is tried again every kRetryBeats and is taken back with its first
  // answer.
  static constexpr int kUnansweredBeatsMax = 30;
  static constexpr int kRetryBeats = 600;

  ClockProber(ProbeMode mode, UdpProber& udp, StreamProber& stream, Random& random);

  // Called when an aggregator has accepted this agent. Without `access` it answers no probes over
  // UDP.
  void OnWelcome(const std::optional<ProbeAccess>& access);
  // Called when the aggregator is gone; stops probing until the next OnWelcome.
  void OnLost();
  // Called when the clocks may have changed: older exchanges no longer bound the offset, so new
  // ones are urgent.
  void OnBreak() { schedule_.Rush(); }
  // Sends what is due.
  void Beat();

  // Returns true while answers are sought in a gRPC call.
  bool uses_stream() const { return welcomed_ && use_stream_; }

 private:
  // Changes the way if UDP has started or stopped to be answered.
  void Choose();

  const ProbeMode mode_;
  UdpProber& udp_;
  StreamProber& stream_;
  ProbeSchedule schedule_;
  // True between OnWelcome and OnLost; always false in kOff.
  bool welcomed_ = false;
  // True while questions are asked in a gRPC call.
  bool use_stream_ = false;
  uint64_t beats_ = 0;
  // The number of answers over UDP when Choose last compared it.
  uint64_t answered_ = 0;
  // The beat of the last answer over UDP, or of OnWelcome.
  uint64_t answered_beat_ = 0;
};

}  // namespace neurontrace
