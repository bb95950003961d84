// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "cli/interrupt_watcher.h"
#include "lib/base/mutex.h"

namespace neurontrace::cli {

// While it lives, an interrupt cancels the current call, and a second one ends the program.
class ExportInterrupt {
 public:
  // `temporary` is removed before a second interrupt ends the program; empty: nothing is.
  // `interrupts` may be null, otherwise it must outlive this.
  ExportInterrupt(InterruptWatcher* interrupts, std::string temporary);
  ~ExportInterrupt();
  ExportInterrupt(const ExportInterrupt&) = delete;
  ExportInterrupt& operator=(const ExportInterrupt&) = delete;

  // Sets the current call; null: none. After an interrupt it is cancelled at once.
  void SetCall(grpc::ClientContext* call);
  // Waits. Returns false if an interrupt came before the time was over.
  bool Wait(std::chrono::milliseconds time);
  bool is_interrupted() const;

  // Makes further interrupts ineffective while files on the disk are completed. No call may follow.
  void Hold();

 private:
  // Called on the watcher's thread.
  void OnInterrupt(int count);

  InterruptWatcher* const interrupts_;
  const std::string temporary_;
  mutable Mutex mutex_;
  CondVar came_;
  grpc::ClientContext* call_ NT_GUARDED_BY(mutex_) = nullptr;
  bool is_interrupted_ NT_GUARDED_BY(mutex_) = false;
};

// Ends the program: for interrupts while nothing has to be cleaned up.
void EndAtOnce(int count);

}  // namespace neurontrace::cli
