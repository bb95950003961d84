// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "agent/clock/exchange_sink.h"

namespace neurontrace {

// For tests: keeps the exchanges.
class FakeExchangeSink final : public ExchangeSink {
 public:
  void AddExchange(const ClockExchange& exchange) override { exchanges.push_back(exchange); }

  std::vector<ClockExchange> exchanges;
};

}  // namespace neurontrace
