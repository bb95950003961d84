// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "agent/clock/chrony_tracking.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {

// Where chronyd listens; tests give other places.
struct ChronyPaths {
  // The directory of chronyd's socket, chronyd.sock. The client binds a socket of its own there, so
  // it needs write permission.
  std::string directory = "/run/chrony";
  // The UDP port of chronyd on 127.0.0.1; 0: UDP is not tried.
  uint16_t port = 323;
};

// Asks chronyd for its tracking report, over its Unix socket where permissions allow that, and over
// UDP to 127.0.0.1 otherwise. If one way gives no answer, the next question takes the other. Lives
// on the sequence of `runner`, which outlives it; nothing blocks. Has no timer: the caller asks
// periodically, and a question without an answer is found out by the next one.
class ChronyClient {
 public:
  // Called on the sequence with each valid answer.
  using OnAnswer = std::function<void(const ChronyTracking&)>;
  // `runner` and `random` outlive the client. Nothing is opened before the first Ask.
  ChronyClient(ChronyPaths paths, TaskRunner& runner, Random& random, OnAnswer on_answer);
  ~ChronyClient();
  ChronyClient(const ChronyClient&) = delete;
  ChronyClient& operator=(const ChronyClient&) = delete;

  // Sends a question; the answer arrives by on_answer, or never. Returns false if nobody can be
  // asked, as where chronyd does not run. A question that is still open counts as unanswered, so
  // calls need an interval in which chronyd can answer.
  bool Ask();

  // Returns how many packets arrived that did not answer an open question.
  uint64_t refused() const { return refused_; }

 private:
  // Open a socket, by the way that is to be tried next; return false if that is impossible.
  bool Connect();
  bool ConnectUnix();
  bool ConnectUdp();
  void Disconnect();
  // Reads the packets that have arrived, and reports the answer to the current question.
  void OnReadable();

  const ChronyPaths paths_;
  TaskRunner& runner_;
  Random& random_;
  const OnAnswer on_answer_;
  UniqueFd socket_;
  // Path of this end's Unix socket, which Disconnect removes; empty while UDP is in use.
  std::string own_path_;
  // Number of the last question, which its answer has to repeat.
  uint32_t sequence_ = 0;
  // True while the last question is unanswered, and after an error of the socket.
  bool waiting_ = false;
  // True if the next connection tries UDP before the Unix socket.
  bool try_udp_ = false;
  uint64_t refused_ = 0;
};

}  // namespace neurontrace
