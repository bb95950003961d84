// SPDX-License-Identifier: Apache-2.0
#include "tap/worker_facts.h"

#include <stdio.h>
#include <string.h>

#include "tap/environment_facts.h"
#include "tap/pthread_lock.h"

namespace neurontrace::tap {

void WorkerFacts::CaptureEnvironment(const char* const* environment) {
  const PthreadLock lock(&mutex_);
  environment_bytes_ = 0;
  environment_left_out_ = 0;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* assignment = *environment;
    const char* equals = strchr(assignment, '=');
    if (equals == nullptr) continue;
    if (!IsEnvironmentFact(assignment, static_cast<size_t>(equals - assignment))) continue;
    const uint64_t bytes = strlen(assignment) + 1;
    if (bytes > kEnvironmentValueBytesMax || bytes > kEnvironmentBytesMax - environment_bytes_) {
      ++environment_left_out_;
      continue;
    }
    memcpy(environment_ + environment_bytes_, assignment, bytes);
    environment_bytes_ += static_cast<uint32_t>(bytes);
  }
  version_.fetch_add(1, std::memory_order_release);
}

void WorkerFacts::NoteCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                                   const char* function) {
  const bool known = core >= 0 && core < static_cast<int32_t>(kTapMaxCores);
  const PthreadLock lock(&mutex_);
  Communicator& slot = communicators_[known ? static_cast<uint32_t>(core) : kTapMaxCores];
  if (slot.function == function && slot.device_id == device_id &&
      slot.device_count == device_count) {
    return;
  }
  slot = {function, device_id, device_count};
  version_.fetch_add(1, std::memory_order_release);
}

void WorkerFacts::AddTo(FactsWriter* writer) {
  char key[160];
  char value[96];
  const PthreadLock lock(&mutex_);
  for (uint32_t i = 0; i < kCommunicatorSlots; ++i) {
    const Communicator& slot = communicators_[i];
    if (slot.function == nullptr) continue;
    if (i < kTapMaxCores) {
      snprintf(key, sizeof key, "communicator.%u", i);
    } else {
      snprintf(key, sizeof key, "communicator.any");
    }
    snprintf(value, sizeof value, "%u %u %s", slot.device_id, slot.device_count, slot.function);
    writer->Add(key, value);
  }
  for (uint32_t at = 0; at < environment_bytes_;) {
    const char* assignment = environment_ + at;
    const char* equals = strchr(assignment, '=');
    snprintf(key, sizeof key, "env.%.*s", static_cast<int>(equals - assignment), assignment);
    writer->Add(key, equals + 1);
    at += static_cast<uint32_t>(strlen(assignment)) + 1;
  }
  if (environment_left_out_ > 0) writer->AddNumber("tap.env_left_out", environment_left_out_);
}

}  // namespace neurontrace::tap
