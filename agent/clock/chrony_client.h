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
  std::string directory = "/run/chrony";  // its socket chronyd.sock, and ours beside it
  uint16_t port = 323;                    // on 127.0.0.1; 0: not tried
};

// Asks chronyd for its tracking report, over its Unix socket where permissions allow that, and over
// UDP to 127.0.0.1 otherwise. If one way gives no answer, the next question takes the other. Lives
// on the sequence of `runner`, which outlives it; nothing blocks. Has no timer: the caller asks
// periodically, and a question without an answer is found out by the next one.
class ChronyClient {
 public:
  // Called on the sequence with each valid answer.
  using OnAnswer = std::function<void(const ChronyTracking&)>;
  ChronyClient(ChronyPaths paths, TaskRunner& runner, Random& random, OnAnswer on_answer);
  ~ChronyClient();
  ChronyClient(const ChronyClient&) = delete;
  ChronyClient& operator=(const ChronyClient&) = delete;

  // Sends a question; the answer arrives by on_answer, or never. Returns false if nobody can be
  // asked, as where chronyd does not run.
  bool Ask();

  uint64_t refused() const { return refused_; }  // packets that were no answer

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
  std::string own_path_;  // of our end, to be removed
  uint32_t sequence_ = 0;
  bool waiting_ = false;  // for an answer
  bool try_udp_ = false;  // the unix socket did not answer
  uint64_t refused_ = 0;
};

}  // namespace neurontrace
