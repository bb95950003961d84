// SPDX-License-Identifier: Apache-2.0
#include "simulate/kineto_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace neurontrace {
namespace {

constexpr size_t kWaitingBytesMax = size_t{64} << 20;

const char* OpName(FleetOp op) {
  switch (op) {
    case FleetOp::kTensor:
    case FleetOp::kData:
      return "allreduce";
    case FleetOp::kPipeline:
      return "sendrecv";
    case FleetOp::kWorld:
      return "barrier";
    case FleetOp::kNone:
      break;
  }
  return "";
}

bool IsOfDevice(FleetEventType type) {
  return type == FleetEventType::kRun || type == FleetEventType::kCollective ||
         type == FleetEventType::kDeviceBarrier || type == FleetEventType::kError;
}

}  // namespace

KinetoWriter::KinetoWriter(std::string directory, const FleetModel& model)
    : directory_(std::move(directory)),
      model_(model),
      waiting_(model.plan().ranks()),
      has_file_(model.plan().ranks()) {}

std::string KinetoWriter::PathOf(uint32_t rank) const {
  return fmt::format("{}/rank_{:05}.json", directory_, rank);
}

void KinetoWriter::Take(std::span<const FleetEvent> events) {
  for (const FleetEvent& event : events) {
    // A profiler writes an event when it ends: what is open is not in its file.
    if (event.is_open || event.end_ns < event.start_ns) continue;
    AppendEvent(event);
  }
  if (waiting_bytes_ >= kWaitingBytesMax) WriteAll();
}

void KinetoWriter::AppendEvent(const FleetEvent& event) {
  std::string& text = waiting_[event.rank];
  const size_t before = text.size();
  const bool is_device = IsOfDevice(event.type);
  const uint64_t length_ns = event.end_ns - event.start_ns;
  fmt::format_to(std::back_inserter(text),
                 ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":{},\"tid\":{},"
                 "\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"exec_id\":{}",
                 is_device ? "kernel" : "cpu_op", RuntimeEventName(event.type),
                 is_device ? 0 : 1'000 + event.rank, is_device ? 7 : 1, event.start_ns / 1'000,
                 event.start_ns % 1'000, length_ns / 1'000, length_ns % 1'000, event.exec_id);
  if (event.op != FleetOp::kNone) {
    fmt::format_to(std::back_inserter(text),
                   ",\"Collective name\":\"{}\",\"Process Group Name\":\"{}\"", OpName(event.op),
                   event.group);
  } else {
    fmt::format_to(std::back_inserter(text), ",\"model\":\"{}\"", model_.ModelName(event.model));
  }
  if (event.bytes > 0) fmt::format_to(std::back_inserter(text), ",\"bytes\":{}", event.bytes);
  text += "}}";
  waiting_bytes_ += text.size() - before;
}

void KinetoWriter::WriteAll() {
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    if (waiting_[rank].empty()) continue;
    Write(rank, waiting_[rank]);
    waiting_[rank] = std::string();
  }
  waiting_bytes_ = 0;
}

void KinetoWriter::Write(uint32_t rank, const std::string& text) {
  if (!status_.ok()) return;
  const std::string path = PathOf(rank);
  std::FILE* const file = std::fopen(path.c_str(), has_file_[rank] ? "ab" : "wb");
  bool is_good = file != nullptr;
  if (is_good && !has_file_[rank]) {
    const FleetPlan& plan = model_.plan();
    const std::string head = fmt::format(
        "{{\"schemaVersion\":1,\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{},"
        "\"world_size\":{}}},\n\"traceEvents\":[\n{{\"ph\":\"M\",\"name\":\"process_name\","
        "\"pid\":0,\"tid\":0,\"ts\":0,\"args\":{{\"name\":\"rank {}\"}}}}",
        rank, plan.ranks(), rank);
    is_good = std::fwrite(head.data(), 1, head.size(), file) == head.size();
  }
  has_file_[rank] = true;
  is_good = is_good && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  const bool is_closed = file == nullptr || std::fclose(file) == 0;
  if (!is_good || !is_closed)
    status_ = absl::UnavailableError(fmt::format("{}: {}", path, std::strerror(error)));
}

absl::Status KinetoWriter::Finish() {
  WriteAll();
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    if (!model_.is_missing(rank)) Write(rank, "\n]}\n");
  }
  return status_;
}

}  // namespace neurontrace
