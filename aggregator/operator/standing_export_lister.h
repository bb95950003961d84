// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Lists the rules by which the aggregator exports captures when they end. Any thread. An interface
// because aggregator/exports, which implements it, depends on this folder.
class StandingExportLister {
 public:
  virtual ~StandingExportLister() = default;

  // Returns all rules with their results, at most a second old.
  virtual v1::ListStandingExportsReply List() const = 0;
};

}  // namespace neurontrace
