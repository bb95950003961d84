// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "agent/source/source_metrics.h"
#include "lib/base/task_runner.h"
#include "lib/base/unique_fd.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// A worker that asks for orders, by the kernel: it cannot claim another process or user.
struct KinetoClient {
  uint32_t pid = 0;  // in the agent's pid namespace; 0: not visible there
  uid_t uid = 0;
  // Below the directory, where an answer goes.
  std::string address;
};

// Decides what workers are to record. Implemented by KinetoRecorder. On the agent's sequence.
class KinetoOrders {
 public:
  virtual ~KinetoOrders() = default;
  // A worker asks for orders; `takes_activities` is false while its profiler is in use. Returns the
  // configuration for its profiler, or an empty text for nothing.
  virtual std::string OnRequest(const KinetoClient& client, bool takes_activities) = 0;
  // The order that OnRequest has returned was not delivered.
  virtual void OnNotDelivered(const KinetoClient& client) = 0;
};

// The socket of Kineto's daemon protocol in directory mode (KINETO_IPC_SOCKET_DIR): DIR/dynolog,
// which PyTorch's workers ask for orders every five seconds. Whoever may write to the directory may
// ask, and may be traced; nothing else depends on what they send. Every datagram is bounded and
// checked, the sender's process comes from the kernel, and answers go only to sockets of the
// sender's user in the same directory. Kineto leaves its socket behind when its process ends, so
// dead ones are removed from time to time. On the agent's sequence; never blocks.
class KinetoSocket {
 public:
  static constexpr char kName[] = "dynolog";
  // Of the directory: the agent's user and the group may use it, and only owners may delete.
  static constexpr mode_t kDirectoryMode = 01770;
  static constexpr mode_t kSocketMode = 0660;
  // How often dead sockets are looked for. One is removed when it was dead twice in a row, as it
  // also seems to be while its process binds it.
  static constexpr uint64_t kSweepPeriodNs = 60'000'000'000;

  struct Options {
    std::string directory;  // absolute, without a trailing slash
    // The group that may use it; -1: the agent's own.
    int group = -1;
  };

  // Makes the directory if it does not exist, and starts to listen. Fails with FAILED_PRECONDITION
  // if another agent listens there, if the directory is not the agent's or is open to everybody, or
  // if the system refuses; with INVALID_ARGUMENT for a path that is too long. The references
  // outlive the socket.
  static absl::StatusOr<std::unique_ptr<KinetoSocket>> Listen(const Options& options,
                                                              TaskRunner& runner,
                                                              KinetoOrders& orders,
                                                              AgentSourceMetrics& metrics);
  // Removes the socket; workers find nobody then, and try again.
  ~KinetoSocket();
  KinetoSocket(const KinetoSocket&) = delete;
  KinetoSocket& operator=(const KinetoSocket&) = delete;

 private:
  KinetoSocket(std::string directory, UniqueFd lock, UniqueFd socket, TaskRunner& runner,
               KinetoOrders& orders, AgentSourceMetrics& metrics);
  // Answers the datagrams that wait, up to a limit for each turn.
  void ReceiveAll();
  // Returns false if none waits.
  bool ReceiveOne();
  void Handle(const KinetoClient& client, std::string_view datagram);
  // Returns whether answers may go to the client's address.
  bool IsOwnSocket(const KinetoClient& client) const;
  bool Send(const KinetoClient& client, const std::string& datagram);
  void ScheduleSweep();
  // Removes the sockets of clients that were dead last time, too.
  void RemoveDeadSockets();

  const std::string directory_;
  const UniqueFd lock_;  // held for as long as this agent listens
  const UniqueFd socket_;
  TaskRunner& runner_;
  KinetoOrders& orders_;
  AgentSourceMetrics& metrics_;
  std::set<std::string> dead_;  // paths, by the last look
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
