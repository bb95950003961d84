// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "cli/interrupt_watcher.h"
#include "lib/base/mutex.h"

namespace neurontrace::cli {

// While it lives, an interrupt cancels the current call, and a second one removes the temporary
// files and ends the program. Used by exports on the main thread; OnInterrupt runs on the
// watcher's.
class ExportInterrupt {
 public:
  // `temporary` is removed before a second interrupt ends the program; empty: nothing is.
  // `interrupts` may be null, otherwise it must outlive this.
  ExportInterrupt(InterruptWatcher* interrupts, std::string temporary);
  // Redirects interrupts to EndAtOnce. Returns only when OnInterrupt is not running.
  ~ExportInterrupt();
  ExportInterrupt(const ExportInterrupt&) = delete;
  ExportInterrupt& operator=(const ExportInterrupt&) = delete;

  // Sets the current call; null: none. After an interrupt it is cancelled at once.
  void SetCall(grpc::ClientContext* call);
  // Waits. Returns false if an interrupt came before the time was over, and at once if one has
  // come.
  bool Wait(std::chrono::milliseconds time);
  // Returns whether an interrupt has come since the construction.
  bool is_interrupted() const;

  // Makes further interrupts ineffective while files on the disk are completed. No call may follow.
  void Hold();

 private:
  // Called on the watcher's thread.
  void OnInterrupt(int count);

  InterruptWatcher* const interrupts_;
  // A path that is removed before the program ends; empty: none.
  const std::string temporary_;
  mutable Mutex mutex_;
  // Signalled by an interrupt.
  CondVar came_;
  // The call to cancel; must be reset before it is destroyed.
  grpc::ClientContext* call_ NT_GUARDED_BY(mutex_) = nullptr;
  bool is_interrupted_ NT_GUARDED_BY(mutex_) = false;
};

// Ends the program: for interrupts while nothing has to be cleaned up.
void EndAtOnce(int count);

}  // namespace neurontrace::cli
