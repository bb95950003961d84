// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// Returns a file whose content reaches `file` as one gzip member (RFC 1952) without a time or a
// name, so that equal content gives equal files. Fails with INTERNAL if zlib cannot be initialised.
// Used by all formats that are one file, and by the parts of a pftrace. Any thread may call; the
// file is used by one thread at a time.
absl::StatusOr<std::unique_ptr<OutputFile>> MakeGzipFile(std::unique_ptr<OutputFile> file);

// Opens `name`, or `name`.gz as a gzip file if `compression` is kGzip. Fails with INVALID_ARGUMENT
// for kPackets: only a pftrace has packets.
absl::StatusOr<std::unique_ptr<OutputFile>> OpenCompressed(OutputFiles& files,
                                                           std::string_view name,
                                                           ExportCompression compression);

}  // namespace neurontrace
