// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/export_part.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// Where the CLI puts the files of an export: in a place that takes the real name in Keep, so that
// what has the real name is always whole; what is not kept is removed, or left in that place for
// another export of the same. Not thread-safe.
class ExportDestination {
 public:
  virtual ~ExportDestination() = default;

  // The files of an export, as its replies tell them. A file begins with those `held_bytes` that
  // are there. DATA_LOSS for replies that make no sense, FAILED_PRECONDITION where nothing can be
  // written.
  virtual absl::Status Begin(const std::string& name, uint64_t held_bytes) = 0;
  virtual absl::Status Write(uint32_t number, const std::string& data) = 0;
  virtual absl::Status End(uint32_t number) = 0;

  // What is there of an export that broke off; reads all of it. All files are told again from then
  // on. Nothing where it cannot be gone on with.
  virtual absl::StatusOr<std::vector<v1::HeldFile>> GoOn() = 0;
  // Removes what is there; all files are told again from then on.
  virtual absl::Status BeginAnew() = 0;

  // Everything is there. DATA_LOSS where a file has not ended.
  virtual absl::Status Keep() = 0;

  // The place; null for what is written straight into. Its path and whether it can be left are
  // constant.
  virtual ExportPart* part() = 0;
};

// One file, or a new directory: one that is there must be empty. Links are followed and stay.
// Standard output ("-"), devices and pipes are written straight into.
absl::StatusOr<std::unique_ptr<ExportDestination>> OpenDestination(ExportPart::Spec spec);

}  // namespace neurontrace::cli
