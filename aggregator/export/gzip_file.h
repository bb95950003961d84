// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// What is written to it reaches `file` as one gzip member (RFC 1952) without a time or a name, so
// that the same bytes give the same file. INTERNAL where zlib cannot begin.
absl::StatusOr<std::unique_ptr<OutputFile>> MakeGzipFile(std::unique_ptr<OutputFile> file);

// Opens `name`, or `name`.gz as a gzip file where `compression` says so. INVALID_ARGUMENT for
// kPackets: only a pftrace has packets.
absl::StatusOr<std::unique_ptr<OutputFile>> OpenCompressed(OutputFiles& files,
                                                           std::string_view name,
                                                           ExportCompression compression);

}  // namespace neurontrace
