// SPDX-License-Identifier: Apache-2.0
// Anything at all as one of the messages that agents, aggregators and operators send each other,
// the first byte says which. What the door takes makes a message that it takes again, as the same
// value: so nothing behind the door holds what the next restart, or the other side, would refuse.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/export_options.h"
#include "lib/wire/suspension_codec.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace {
namespace {

// Of texts that are no UTF-8 protobuf would write a line each.
[[maybe_unused]] const auto kQuiet = google::protobuf::SetLogHandler(nullptr);

template <typename Message>
void CheckValidators(const std::string& bytes) {
  Message message;
  if (!message.ParseFromString(bytes)) return;
  const auto value = FromProto(message);
  if (!value.ok()) return;
  Message sent;
  ToProto(*value, &sent);
  const auto again = FromProto(sent);
  if (!again.ok()) {
    fprintf(stderr, "taken, and then not: %s\n%s\n", std::string(again.status().message()).c_str(),
            sent.DebugString().c_str());
    abort();
  }
  if (!(*again == *value)) {
    fprintf(stderr, "taken twice, and different:\n%s\n%s\n", message.DebugString().c_str(),
            sent.DebugString().c_str());
    abort();
  }
}

void Fuzz(int kind, const std::string& bytes) {
  switch (kind % 15) {
    case 0:
      return CheckValidators<v1::WorkerIdentity>(bytes);
    case 1:
      return CheckValidators<v1::StreamIdentity>(bytes);
    case 2:
      return CheckValidators<v1::RankEvidence>(bytes);
    case 3:
      return CheckValidators<v1::Loss>(bytes);
    case 4:
      return CheckValidators<v1::CaptureSpec>(bytes);
    case 5:
      return CheckValidators<v1::CaptureBegin>(bytes);
    case 6:
      return CheckValidators<v1::WorkerInventory>(bytes);
    case 7:
      return CheckValidators<v1::CaptureWorkerStatus>(bytes);
    case 8:
      return CheckValidators<v1::StreamCursor>(bytes);
    case 9:
      return CheckValidators<v1::GoneBefore>(bytes);
    case 10:
      return CheckValidators<v1::AgentHello>(bytes);
    case 11:
      return CheckValidators<v1::TriggerRule>(bytes);
    case 12:
      return CheckValidators<v1::TriggerFired>(bytes);
    case 14:
      return CheckValidators<v1::Suspension>(bytes);
    default: {
      v1::ExportRequest request;
      if (!request.ParseFromString(bytes)) return;
      if (CheckExportOptions(request).ok()) MakesManyFiles(request);
    }
  }
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  neurontrace::Fuzz(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
