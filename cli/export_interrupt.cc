// SPDX-License-Identifier: Apache-2.0
#include "cli/export_interrupt.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/exit_code.h"
#include "cli/export_part.h"
#include "lib/base/standard_streams.h"

namespace neurontrace::cli {

ExportInterrupt::ExportInterrupt(InterruptWatcher* interrupts, std::string temporary)
    // From here on interrupts are counted from 1 again.
    : interrupts_(interrupts), temporary_(std::move(temporary)) {
  if (interrupts_ != nullptr) interrupts_->Redirect([this](int count) { OnInterrupt(count); });
}

ExportInterrupt::~ExportInterrupt() {
  if (interrupts_ != nullptr) interrupts_->Redirect(EndAtOnce);
}

void ExportInterrupt::OnInterrupt(int count) {
  // A second interrupt ends the program: the user does not want to wait for a disk or for the
  // reader of a pipe.
  if (count > 1) {
    RemoveTemporary(temporary_);
    EndAtOnce(count);
  }
  const MutexLock lock(mutex_);
  is_interrupted_ = true;
  if (call_ != nullptr) call_->TryCancel();
  came_.NotifyAll();
}

void ExportInterrupt::SetCall(grpc::ClientContext* call) {
  const MutexLock lock(mutex_);
  call_ = call;
  // The interrupt came between two calls, so the next one must not start its work.
  if (is_interrupted_ && call_ != nullptr) call_->TryCancel();
}

bool ExportInterrupt::Wait(std::chrono::milliseconds time) {
  const MutexLock lock(mutex_);
  return !came_.WaitFor(mutex_, time, [this]() NT_REQUIRES(mutex_) { return is_interrupted_; });
}

bool ExportInterrupt::is_interrupted() const {
  const MutexLock lock(mutex_);
  return is_interrupted_;
}

void ExportInterrupt::Hold() {
  // Redirect waits for a running OnInterrupt, so no interrupt has an effect after this.
  if (interrupts_ != nullptr) interrupts_->Redirect([](int) {});
}

void EndAtOnce(int) {
  Print(stderr, "neurontrace: interrupted\n");
  // Destructors and exit handlers are skipped because another thread may hold any lock.
  std::_Exit(kExitFailed);
}

}  // namespace neurontrace::cli
