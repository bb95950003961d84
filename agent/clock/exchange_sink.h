// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Receives the exchanges that the probers complete. Called on their sequence.
class ExchangeSink {
 public:
  virtual ~ExchangeSink() = default;
  virtual void AddExchange(const ClockExchange& exchange) = 0;
};

}  // namespace neurontrace
