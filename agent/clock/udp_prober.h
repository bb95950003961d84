// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "agent/clock/exchange_sink.h"
#include "agent/clock/probe_access.h"
#include "lib/base/task_runner.h"
#include "lib/base/unique_fd.h"
#include "lib/clock/host_clocks.h"
#include "lib/clock/probe_packet.h"
#include "lib/clock/receive_stamps.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Probes the aggregator's time over UDP (docs/formats/probe.md). A question is stamped just before
// it is sent; an answer is stamped by the kernel on receipt and counts once, if it authenticates as
// the aggregator's answer to a question at most a second old. Lives on the sequence of `runner`;
// references outlive it; nothing blocks. Packets that do not count are dropped and counted.
class UdpProber {
 public:
  // A later answer gives an interval too wide to be of use.
  static constexpr uint64_t kAnswerMaxNs = 1'000'000'000;

  struct Counters {
    uint64_t sent = 0;
    uint64_t answered = 0;
    // Packets that are no authentic answers of the aggregator, or whose times are not plausible.
    uint64_t refused = 0;
    // Authentic answers to a question that is already answered, was overwritten, or is too old.
    uint64_t late = 0;
    uint64_t send_errors = 0;
  };

  // `exchanges` receives each answered question.
  UdpProber(const HostClocks& clocks, TaskRunner& runner, ExchangeSink& exchanges);
  ~UdpProber();
  UdpProber(const UdpProber&) = delete;
  UdpProber& operator=(const UdpProber&) = delete;

  // Starts to probe this aggregator instead of the one before. Fails with UNAVAILABLE if no socket
  // can be made for the address.
  absl::Status Connect(const ProbeAccess& access);
  // Forgets all open questions.
  void Disconnect();
  // Returns true from a successful Connect until Disconnect.
  bool connected() const { return socket_.valid(); }

  // Sends `probes` questions at once. Send errors are counted and otherwise ignored, as UDP loses
  // packets anyway.
  void Send(int probes);

  const Counters& counters() const { return counters_; }
  // Answers whose time of arrival is that of the read, as the kernel gave no timestamp.
  uint64_t without_kernel_stamp() const { return stamps_.without_kernel(); }

 private:
  // An open question, at the place of its sequence number modulo kQuestionsMax.
  struct Question {
    uint64_t sequence = 0;  // 0: answered, or never asked
    uint64_t send_raw_ns = 0;
  };
  // Open questions; an older one is overwritten and its answer then counts as late. More than
  // ProbeSchedule sends in a second.
  static constexpr size_t kQuestionsMax = 256;

  // Reads what has arrived, in batches with a limit.
  void OnReadable();
  // Checks one packet, and reports the exchange if it answers an open question.
  void OnPacket(std::string_view packet, uint64_t receive_raw_ns);

  const HostClocks& clocks_;
  TaskRunner& runner_;
  ExchangeSink& exchanges_;
  UniqueFd socket_;
  uint64_t key_id_ = 0;
  std::optional<ProbeCipher> cipher_;
  ReceiveStamps stamps_;
  // The number of the last question since Connect.
  uint64_t sequence_ = 0;
  std::array<Question, kQuestionsMax> questions_{};
  Counters counters_;
};

}  // namespace neurontrace
