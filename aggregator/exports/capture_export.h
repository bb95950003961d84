// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/export/output_files.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// The files of an export, with the bytes written to all of them.
class ExportFiles : public OutputFiles {
 public:
  // Returns the bytes of all files so far, those that the receiver already had included.
  virtual uint64_t bytes_sent() const = 0;
};

// Exports a capture as an operator requested: checks the request, reads a snapshot of the store,
// maps times through `clocks`, writes `files`, and reports progress, and `done` at the end, through
// `write`. Everything happens on the calling thread except for the read-ahead of batch_pipe.h; it
// blocks until the export is complete.
//
// Fails with INVALID_ARGUMENT that names the unacceptable field, with FAILED_PRECONDITION if an
// ended capture holds nothing, and with CANCELLED if `write` returns false because the client no
// longer reads.
// `store_problem` is why the store takes no data at present, for the certificate; empty: it does.
absl::Status ExportStoredCapture(const Store& store, const CaptureRecord& record,
                                 const v1::ExportRequest& request, const CaptureClocks& clocks,
                                 std::string_view store_problem, ExportFiles& files,
                                 const ExportWriter& write);

}  // namespace neurontrace
