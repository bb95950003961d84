// SPDX-License-Identifier: Apache-2.0
// What a trace says of itself as a whole: the half of PftraceExporter that needs no record.
#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>

#include "aggregator/export/pftrace/pftrace_exporter.h"

namespace neurontrace {
namespace {

using perfetto::EventType;

void AddAttribute(protozero::pbf_writer& attributes, std::string_view key, std::string_view value) {
  namespace fields = perfetto::attributes;
  protozero::pbf_writer attribute(attributes, fields::kAttribute);
  attribute.add_string(fields::kKey, key.data(), key.size());
  attribute.add_string(fields::kStringValue, value.data(), value.size());
}

// A larger one stands only in the trace's attributes.
constexpr size_t kCertificateArgumentBytesMax = 256u << 10;

}  // namespace

void PftraceExporter::WriteTraceAttributes(const ClockReport& clocks) {
  std::string body;
  protozero::pbf_writer attributes(body);
  AddAttribute(attributes, "io.neurontrace.version", NEURONTRACE_VERSION);
  AddAttribute(attributes, "io.neurontrace.capture_id", header_->capture->id.ToString());
  if (!header_->capture->name.empty()) {
    AddAttribute(attributes, "io.neurontrace.capture_name", header_->capture->name);
  }
  AddAttribute(attributes, "io.neurontrace.clock", clocks.timescale());
  AddAttribute(attributes, "io.neurontrace.clock.words", clocks.Words());
  if (!clocks.known().empty()) {
    AddAttribute(attributes, "io.neurontrace.clock.algorithm_version",
                 fmt::format("{}", clocks.algorithm_version()));
    AddAttribute(attributes, "io.neurontrace.clock.version", fmt::format("{}", clocks.version()));
    AddAttribute(attributes, "io.neurontrace.clock.final", clocks.is_final() ? "true" : "false");
    AddAttribute(attributes, "io.neurontrace.clock.instances",
                 fmt::format("{} of {}", clocks.known().size(), clocks.instances()));
  }
  if (const auto bound_ns = clocks.bound_max_ns()) {
    AddAttribute(attributes, "io.neurontrace.clock.bound_max_ns", fmt::format("{}", *bound_ns));
  }
  if (header_->certificate != nullptr) {
    AddAttribute(attributes, "io.neurontrace.verdict", header_->certificate->verdict);
    AddAttribute(attributes, "io.neurontrace.certificate", header_->certificate_json);
  }
  size_t number = 0;
  for (const std::string& warning : header_->warnings) {
    AddAttribute(attributes, fmt::format("io.neurontrace.warning.{}", number++), warning);
  }
  out_.TraceAttributes(body);
}

// Also as an event, because readers of before 2026 pass trace attributes over.
void PftraceExporter::WriteCertificate(uint64_t at_ns) {
  const Certificate& certificate = *header_->certificate;
  fields_.Start(EventType::kInstant, tracks_.WarningUuid());
  fields_.Name(interner_.EventName("certificate"));
  const auto name = [this](std::string_view text) { return interner_.AnnotationName(text); };
  fields_.String(name("verdict"), certificate.verdict);
  fields_.Bool(name("complete"), certificate.complete);
  fields_.Uint(name("expected"), certificate.account.expected);
  fields_.Uint(name("captured"), certificate.account.captured);
  fields_.Uint(name("stored"), certificate.account.stored);
  fields_.Uint(name("lost"), certificate.account.lost);
  fields_.Bool(name("lost_unknown"), certificate.account.lost_unknown);
  if (header_->certificate_json.size() <= kCertificateArgumentBytesMax) {
    fields_.String(name("certificate"), header_->certificate_json);
  }
  out_.Event(at_ns, fields_.bytes());
}

void PftraceExporter::WriteHead() {
  is_head_written_ = true;
  out_.StartOverIfDue();
  if (header_->certificate != nullptr) WriteCertificate(head_ns_);
  WriteWarnings(header_->warnings, head_ns_);
}

// Warnings are about the whole trace: those known at once stand at its head, later ones at its end.
void PftraceExporter::WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns) {
  for (size_t i = warnings_written_; i < warnings.size(); ++i) {
    out_.StartOverIfDue();
    fields_.Start(EventType::kInstant, tracks_.WarningUuid());
    fields_.Name(interner_.EventName(warnings[i]));
    out_.Event(at_ns, fields_.bytes());
  }
  warnings_written_ = warnings.size();
}

}  // namespace neurontrace
