// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "cli/interrupt_watcher.h"
#include "lib/base/mutex.h"

namespace neurontrace::cli {

// While it lives, an interrupt cancels the call at hand, and a second one ends the program.
class ExportInterrupt {
 public:
  // `temporary` is removed before a second interrupt ends the program; empty: nothing is. Without a
  // watcher there are no interrupts.
  ExportInterrupt(InterruptWatcher* interrupts, std::string temporary);
  ~ExportInterrupt();
  ExportInterrupt(const ExportInterrupt&) = delete;
  ExportInterrupt& operator=(const ExportInterrupt&) = delete;

  // The call at hand; null: none. One that is too late is cancelled at once.
  void SetCall(grpc::ClientContext* call);
  // False when an interrupt came before the time was over.
  bool Wait(std::chrono::milliseconds time);
  bool is_interrupted() const;

  // From now on interrupts do nothing: what is on the disk is put in order. No call continues.
  void Hold();

 private:
  void OnInterrupt(int count);  // on the watcher's thread

  InterruptWatcher* const interrupts_;
  const std::string temporary_;
  mutable Mutex mutex_;
  CondVar came_;
  grpc::ClientContext* call_ NT_GUARDED_BY(mutex_) = nullptr;
  bool is_interrupted_ NT_GUARDED_BY(mutex_) = false;
};

// For interrupts while there is nothing to be put in order: ends the program.
void EndAtOnce(int count);

}  // namespace neurontrace::cli
