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
    : interrupts_(interrupts), temporary_(std::move(temporary)) {
  if (interrupts_ != nullptr) interrupts_->Redirect([this](int count) { OnInterrupt(count); });
}

ExportInterrupt::~ExportInterrupt() {
  if (interrupts_ != nullptr) interrupts_->Redirect(EndAtOnce);
}

void ExportInterrupt::OnInterrupt(int count) {
  // The user does not want to wait for a disk or for the reader of a pipe.
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
  if (interrupts_ != nullptr) interrupts_->Redirect([](int) {});
}

void EndAtOnce(int) {
  Print(stderr, "neurontrace: interrupted\n");
  // Without destructors and exit handlers: another thread may be in the middle of anything.
  std::_Exit(kExitFailed);
}

}  // namespace neurontrace::cli
